/**
 * What the middleware of every language must do, as a list that names no language: `middleware-scenarios.json`. A step is
 * a call of an operation, as in `scenarios.json`, or a request of an end user:
 *
 * - `request`: what the end user sends. A header with several values is sent several times. `$name` in a text stands for
 *   the value that an earlier step saved, here and everywhere else; `$apiId` is there from the beginning.
 * - `verify`, `ratelimit`: the middleware in front of the handler, in this order, with these options. `{ "header": "X" }`
 *   stands for a function that returns the header X of the request, or nothing. `identifier: "address"` is the address of
 *   the connection; where the framework knows none, the test gives a function that returns a constant.
 * - `rootKey`: of the client of the middleware. Default: one that may do everything. `timeout`: of the client.
 * - `network`: the service is `away`, or `silent`.
 * - `status`, `headers`: of the answer. Null: the header is absent. `matches`: a regular expression.
 * - `error`: members of the `error` in the body. The handler must not have run.
 * - `verified`: members of the verified key that the handler gets; null: it runs, and gets none.
 * - `sent`: members of the body of the last call of the service. `calls`: how many there were.
 *
 * Every request that is rejected has `Content-Type: application/json`, `Cache-Control: no-store`, `X-Latchkey-Code` with
 * the `code` of the error, and a body `{ "meta": { … }, "error": { "title", "detail", "status", "type": "about:blank",
 * "code" } }`, whose `meta.requestId` is present if the service gave one. Only 401 has `WWW-Authenticate`. No answer contains a
 * key. The answer to a request that passes has no `X-Latchkey-Code`.
 */
import { readFileSync } from "node:fs";

/** The options of `verify` that texts can describe. */
export interface VerifyStep {
  apiId: string | string[];
  permissions?: string;
  cost?: number;
  limits?: { name: string; cost?: number; limit?: number; duration?: number }[];
  header?: string;
  address?: { header: string };
  path?: string;
  tags?: string[];
  failOpen?: boolean;
}

/** The options of `ratelimit` that texts can describe. */
export interface RatelimitStep {
  namespace: string;
  limit: number;
  duration: number;
  cost?: number;
  identifier: "owner" | "address" | { header: string };
  address?: { header: string };
  failOpen?: boolean;
}

/** A call of an operation, to prepare the requests. */
export interface CallStep {
  call: string;
  input: Record<string, unknown>;
  rootKey?: string;
  save?: Record<string, string>;
}

/** A request of an end user. */
export interface RequestStep {
  request: { method: string; path: string; headers: Record<string, string | string[]> };
  verify?: VerifyStep;
  ratelimit?: RatelimitStep;
  rootKey?: string;
  timeout?: number;
  network?: "away" | "silent";
  status: number;
  headers?: Record<string, string | { matches: string } | null>;
  error?: { code: string; title?: string; detail?: string };
  verified?: Record<string, unknown> | null;
  sent?: Record<string, unknown>;
  calls?: number;
}

/** A scenario: its steps share the values that they save. */
export interface Scenario {
  name: string;
  steps: (CallStep | RequestStep)[];
}

/** The list. */
export const middlewareScenarios: readonly Scenario[] = JSON.parse(
  readFileSync(new URL("middleware-scenarios.json", import.meta.url), "utf8"),
);
