import { z } from "zod";
import type { Sql } from "../../platform/store/store.ts";
import type { Vault } from "../../platform/vault/vault.ts";
import { duration, text } from "../../platform/vocabulary/schema.ts";
import { ApiReader } from "../apis/statements.ts";
import type { UpstreamVerifier } from "./upstreams.ts";

/** How many headers a question can have beside those of the connection. */
export const UPSTREAM_HEADERS_MAX = 10;
const URL_LENGTH_MAX = 2_000;

/** Headers that the connection or the question itself sets. */
const OWN_HEADERS =
  /^(accept-encoding|connection|content-.*|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

/** An upstream verifier as callers set it. */
export const UpstreamInput = z.strictObject({
  url: text(1, URL_LENGTH_MAX)
    .refine((url) => /^https?:\/\//.test(url) && URL.canParse(url), {
      error: "must be a URL that begins with https:// or http://",
      params: { keyword: "pattern", fix: "Send the address of the endpoint, such as https://example.com/verify." },
    })
    .meta({ pattern: "^https?://" })
    .describe("The endpoint. `http://` and private addresses need `LATCHKEY_UPSTREAM_ALLOW_PRIVATE=yes`."),
  headers: z
    .array(
      z.strictObject({
        name: text(1, 64, { regex: /^[A-Za-z0-9-]+$/, says: "may hold letters, digits and hyphens" }).refine(
          (name) => !OWN_HEADERS.test(name),
          { error: "is set by the service", params: { keyword: "not", fix: "Leave this header out." } },
        ),
        value: text(1, 2_000, {
          regex: /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/,
          says: "may hold visible ASCII characters, and blanks inside",
        }),
      }),
    )
    .max(UPSTREAM_HEADERS_MAX)
    .default([])
    .describe(
      "Headers of each question, such as `Authorization`. Their values are stored encrypted and never returned.",
    ),
  timeout: duration(100, 10_000).default(2_000).describe("Milliseconds that a verification waits for an answer."),
  onOutage: z
    .enum(["unavailable", "not_found"])
    .default("unavailable")
    .describe(
      "The answer to a verification whose question gets none: status 503, or NOT_FOUND. Known keys are not affected.",
    ),
});

/** An upstream verifier as operations return it. */
export const UpstreamOutput = z.strictObject({
  url: z.string(),
  headers: z.array(z.string()).describe("The names of the headers."),
  timeout: z.int().describe("Milliseconds."),
  onOutage: z.enum(["unavailable", "not_found"]),
});

/** An upstream verifier as the row of its API has it, as JSON. */
export interface StoredUpstream extends z.output<typeof UpstreamOutput> {
  /** The JSON of the headers with their values, sealed for the API; null without headers. */
  sealed: string | null;
}

/** The upstream verifier of an API with its headers opened; null: it has none. */
export async function findUpstream(
  sql: Sql,
  { apiId, workspaceId }: { apiId: string; workspaceId: string },
  vault: Pick<Vault, "openHeaders">,
): Promise<UpstreamVerifier | null> {
  const api = await new ApiReader(sql, workspaceId).find(apiId);
  if (!api || api.upstream === null) return null;
  const { url, timeout, onOutage, sealed } = JSON.parse(api.upstream) as StoredUpstream;
  const headers = sealed === null ? [] : JSON.parse(await vault.openHeaders(sql, workspaceId, apiId, sealed));
  return { url, headers, timeout, onOutage };
}

/** What callers see of a stored verifier. */
export function shownUpstream({ url, headers, timeout, onOutage }: StoredUpstream): z.output<typeof UpstreamOutput> {
  return { url, headers, timeout, onOutage };
}

export function toUpstreamOutput(stored: string): z.output<typeof UpstreamOutput> {
  return shownUpstream(JSON.parse(stored));
}
