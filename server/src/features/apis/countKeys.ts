import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { text } from "../../platform/vocabulary/schema.ts";
import { KeyReader } from "../keys/statements/keys.ts";
import { deletedInput, keyFilter, keyFilterInput } from "./key-filter.ts";
import { ApiReader } from "./statements.ts";

export const countKeys = query("apis.countKeys", {
  summary: "Count the keys of an API",
  description:
    "Counts what `apis.listKeys` lists with the same filters, in the first 100,000 keys. An API that the root key may " +
    "not read looks like one that does not exist.",
  permissions: ["apis.{apiId}.read_key", "apis.{apiId}.read_api"],
  input: z.strictObject({ apiId: text(1).describe("Identifier of the API."), ...keyFilterInput, ...deletedInput }),
  output: z.strictObject({
    count: z.int(),
    isComplete: z.boolean().describe("Whether all keys were examined. If not, there may be more."),
  }),
  problems: ["api_not_found"],
  examples: [
    {
      summary: "The active keys",
      input: { apiId: exampleApi.apiId, state: "active" },
      output: { count: 1, isComplete: true },
    },
    { summary: "An API that does not exist", input: { apiId: "api_03yhWPSEYjF9lWCM" }, problem: "api_not_found" },
  ],
}).handle(async ({ apiId, deleted, ...given }, { store, principal, now, fail }) => {
  const readable = principal.may(`apis.${apiId}.read_key`) && principal.may(`apis.${apiId}.read_api`);
  if (!(await store.of(ApiReader).find(apiId)) || !readable) return fail("api_not_found");
  return store.of(KeyReader).count({ apiId, filter: keyFilter(given), deleted, now });
});
