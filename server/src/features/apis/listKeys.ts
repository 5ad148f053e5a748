import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleApi, exampleKey, exampleKeyInput } from "../../platform/vocabulary/examples.ts";
import { pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { KeyOutput, toKeyOutput, VAULT_MISSING } from "../keys/record.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { keyFilter, keyFilterInput } from "./key-filter.ts";
import { ApiReader } from "./statements.ts";

const LIST = "apis.listKeys";

export const listKeys = pagedQuery("apis.listKeys", {
  summary: "List the keys of an API",
  description:
    "Ordered by creation time. Includes disabled and expired keys, but not deleted ones. With a filter, one call " +
    "examines at most 100,000 keys: a page can have fewer entries than `limit`, or none, although `hasMore` is true. " +
    "An API that the root key may not read looks like one that does not exist.",
  permissions: ["apis.{apiId}.read_key", "apis.{apiId}.read_api", "apis.{apiId}.decrypt_key"],
  input: z.strictObject({
    apiId: text(1).describe("Identifier of the API."),
    ...pageInput(LIST, 100),
    ...keyFilterInput,
    order: z.enum(["asc", "desc"]).default("asc").describe("Order by creation time; `desc`: the newest first."),
    decrypt: z.boolean().default(false).describe("Whether to return the `plaintext` of recoverable keys."),
    revalidateKeysCache: z
      .boolean()
      .default(false)
      .describe("Accepted for compatibility, without effect: the list is always current."),
  }),
  output: z.array(KeyOutput),
  problems: ["api_not_found", "precondition_failed"],
  examples: [
    { summary: "The first page", input: { apiId: exampleApi.apiId, limit: 50 }, output: [exampleKey] },
    {
      summary: "The keys of one customer",
      input: { apiId: exampleApi.apiId, externalId: exampleKeyInput.externalId },
      output: [exampleKey],
    },
    {
      summary: "Search, the newest first",
      input: { apiId: exampleApi.apiId, search: "ACME", state: "active", order: "desc" },
      output: [exampleKey],
    },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM" },
      problem: "api_not_found",
    },
  ],
}).handle(async ({ apiId, limit, cursor, order, decrypt, ...given }, { store, vault, principal, now, fail }) => {
  const readable = principal.may(`apis.${apiId}.read_key`) && principal.may(`apis.${apiId}.read_api`);
  const api = await store.of(ApiReader).find(apiId);
  if (!api || !readable) return fail("api_not_found");
  if (decrypt) {
    if (!vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
    principal.authorize(`apis.${apiId}.decrypt_key`);
  }
  const selection = { apiId, filter: keyFilter(given), now };
  const { keys, next } = await store.of(KeyReader).page(selection, { order, from: placeOf(LIST, cursor), limit });
  const plaintexts = decrypt ? await vault.reveal(keys.map((key) => key.id)) : undefined;
  return pageUntil(
    LIST,
    keys.map((key) => toKeyOutput(key, now, plaintexts?.get(key.id))),
    next,
  );
});
