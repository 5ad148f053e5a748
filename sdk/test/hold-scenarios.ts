/**
 * What the middleware of every language must do with the option `hold`, as a list that names no language:
 * `hold-scenarios.json`. Each is one request with a new key of 100 credits.
 *
 * - `cost` (40), `ttl` (60000), `limits`, `failOpen`: options of `verify`. `method` (GET): of the request.
 * - `settle`: the function of the answer. `perByte`: it charges so many credits for each byte. `throw`: it fails. `credits`: it
 *   returns them. Omitted: there is none.
 * - `handler`: it reports the amounts of `report`, and answers with `status` (200) and the `chunks`, each of which the end
 *   user receives before the next is sent. Then its answer ends, or as `end` says: `throw`: it fails, before the status is
 *   sent if there are no chunks; `wait`: it goes on until the end user has hung up; `extended`: it goes on until the
 *   hold expires later than at first, by more than half of its `ttl`.
 * - `hangUp`: the end user closes the connection `before` the answer, when the handler runs, or `within` it, after the chunks.
 * - `faults`: what the first calls that settle or release a hold meet. A number: that status. `lost`: the service executes
 *   the call, and its answer is lost. `away`: the connection fails. `network: "away"`: all calls fail.
 * - `status`: of the answer, if the handler does not run.
 * - `credits`: of the key afterwards. `state`: of its only hold; omitted: there is none.
 * - `answer`: members of what the function of the answer gets; null: absent. `settlement`: members of the settlement that
 *   was sent. `ends`: how often settlements and releases were sent.
 * - `errors` (0): how many were reported. `unsettled`: the settlement in the only one.
 */
import { readFileSync } from "node:fs";
import type { Settlement } from "../src/hold.ts";

export interface HoldScenario {
  name: string;
  cost?: number;
  ttl?: number;
  limits?: { name: string; limit: number; duration: number; cost: number }[];
  failOpen?: boolean;
  method?: string;
  settle?: "throw" | { perByte: number } | { credits: number };
  handler: HoldHandler;
  hangUp?: "before" | "within";
  faults?: ("lost" | "away" | number)[];
  network?: "away";
  status?: number;
  credits: number;
  state?: "settled" | "released" | "open";
  answer?: Record<string, unknown>;
  settlement?: Settlement;
  ends?: number;
  errors?: number;
  unsettled?: Settlement;
}

export interface HoldHandler {
  report?: Settlement;
  status?: number;
  chunks: string[];
  end?: "throw" | "wait" | "extended";
}

export const holdScenarios: HoldScenario[] = JSON.parse(
  readFileSync(new URL("hold-scenarios.json", import.meta.url), "utf8"),
);
