import { z } from "zod";
import { pagedQuery } from "../../platform/rpc/operation.ts";
import { exampleApi, exampleKey, exampleKeyInput } from "../../platform/vocabulary/examples.ts";
import { isInOrder, OTHER_ORDER, pageInput, pageUntil, placeOf } from "../../platform/vocabulary/paging.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { KeyOutput, toKeyOutput, VAULT_MISSING } from "../keys/record.ts";
import { KEYS_EXAMINED_MAX } from "../keys/statements/key-search.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { deletedInput, keyFilter, keyFilterInput } from "./key-filter.ts";
import { ApiReader } from "./statements.ts";

const LIST = "apis.listKeys";

export const listKeys = pagedQuery("apis.listKeys", {
  summary: "List the keys of an API",
  description:
    "Ordered by creation time, or by `orderBy`. Includes disabled and expired keys, but not deleted ones: `deleted` lists " +
    "those, with `deletedAt` and without `plaintext`. With a filter, one call examines at most 100,000 keys: a page can have " +
    "fewer entries than `limit`, or none, although `hasMore` is true. " +
    "An API that the root key may not read looks like one that does not exist.",
  permissions: ["apis.{apiId}.read_key", "apis.{apiId}.read_api", "apis.{apiId}.decrypt_key"],
  input: z.strictObject({
    apiId: text(1).describe("Identifier of the API."),
    ...pageInput(LIST, 100),
    ...keyFilterInput,
    ...deletedInput,
    orderBy: z
      .enum(["createdAt", "name", "expires", "lastUsedAt"])
      .default("createdAt")
      .describe(
        "What the keys are in order by. Names are compared regardless of case. Any order but `createdAt` needs an API with " +
          "at most 100,000 keys, or an `externalId` or `budgetId` with at most as many.",
      ),
    order: z
      .enum(["asc", "desc"])
      .default("asc")
      .describe("`desc`: the newest, the last name or the latest time first."),
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
      summary: "Deleted keys that can be restored",
      input: { apiId: exampleApi.apiId, deleted: true, search: "nobody" },
      output: [],
    },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM" },
      problem: "api_not_found",
    },
  ],
}).handle(
  async (
    { apiId, limit, cursor, orderBy, order, decrypt, deleted, ...given },
    { store, vault, principal, now, fail },
  ) => {
    const readable = principal.may(`apis.${apiId}.read_key`) && principal.may(`apis.${apiId}.read_api`);
    const api = await store.of(ApiReader).find(apiId);
    if (!api || !readable) return fail("api_not_found");
    if (decrypt) {
      if (!vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
      principal.authorize(`apis.${apiId}.decrypt_key`);
    }
    const selection = { apiId, filter: keyFilter(given), deleted, now };
    const from = placeOf(LIST, cursor);
    if (!isInOrder(from, orderBy)) return fail("invalid_input", OTHER_ORDER);
    const keys = store.of(KeyReader);
    const place = { order, from, limit };
    const page = await (orderBy === "createdAt"
      ? keys.page(selection, place)
      : keys.sortedPage(selection, orderBy, place));
    if (!page) {
      return fail(
        "invalid_input",
        `An API with more than ${KEYS_EXAMINED_MAX} keys is listed in order of creation: omit \`orderBy\`, or select the keys ` +
          "of one owner with `externalId`, or those of one budget with `budgetId`.",
      );
    }
    const { keys: found, next } = page;
    const plaintexts = decrypt && !deleted ? await vault.reveal(found.map((key) => key.id)) : undefined;
    const credits = await keys.creditsOf(found, now);
    return pageUntil(
      LIST,
      found.map((key) => toKeyOutput(key, { credits: credits.get(key.id), plaintext: plaintexts?.get(key.id) })),
      next,
    );
  },
);
