import { z } from "zod";
import { pagedQuery } from "../../rpc/operation.ts";
import { exampleApi, exampleKey, exampleKeyInput } from "../examples.ts";
import { KeyOutput, toKeyOutput, VAULT_MISSING } from "../keys/record.ts";
import { pageInput, pageOf, placeOf } from "../paging.ts";
import { text } from "../schema.ts";

const LIST = "apis.listKeys";

export const listKeys = pagedQuery("apis.listKeys", {
  summary: "List the keys of an API",
  description:
    "Ordered by creation time. Includes disabled and expired keys, but not deleted ones. " +
    "An API that the root key may not read looks like one that does not exist.",
  permissions: ["apis.{apiId}.read_key", "apis.{apiId}.read_api", "apis.{apiId}.decrypt_key"],
  input: z.strictObject({
    apiId: text(1).describe("Identifier of the API."),
    ...pageInput(LIST, 100),
    externalId: text(1, 255).optional().describe("Only keys of the identity with this external id."),
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
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM" },
      problem: "api_not_found",
    },
  ],
}).handle(async ({ apiId, limit, cursor, externalId, decrypt }, { store, vault, principal, now, fail }) => {
  const readable = principal.may(`apis.${apiId}.read_key`) && principal.may(`apis.${apiId}.read_api`);
  const api = await store.apis.find(apiId);
  if (!api || !readable) return fail("api_not_found");
  if (decrypt) {
    if (!vault.isOpen) return fail("precondition_failed", VAULT_MISSING);
    principal.authorize(`apis.${apiId}.decrypt_key`);
  }
  const keys = await store.keys.page({ apiId, externalId, from: placeOf(LIST, cursor), limit: limit + 1 });
  const plaintexts = decrypt ? await vault.reveal(keys.slice(0, limit).map((key) => key.id)) : undefined;
  return pageOf(LIST, keys, limit, (key) => toKeyOutput(key, now, plaintexts?.get(key.id)));
});
