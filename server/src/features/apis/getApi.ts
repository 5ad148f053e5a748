import { z } from "zod";
import { query } from "../../platform/rpc/operation.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { ApiId } from "../../platform/vocabulary/schema.ts";
import { ApiOutput, toApiOutput } from "./record.ts";
import { ApiReader } from "./statements.ts";

export const getApi = query("apis.getApi", {
  summary: "Get an API",
  description: "Includes the values that were set with `apis.updateApi`. Fields without a value are omitted.",
  permissions: ["apis.{apiId}.read_api"],
  input: z.strictObject({ apiId: ApiId }),
  output: ApiOutput,
  problems: ["api_not_found"],
  examples: [
    {
      summary: "Get an API",
      input: { apiId: exampleApi.apiId },
      output: { id: exampleApi.apiId, ...exampleApi },
    },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM" },
      problem: "api_not_found",
    },
  ],
}).handle(async ({ apiId }, { store, principal, fail }) => {
  principal.authorize(`apis.${apiId}.read_api`);
  const api = await store.of(ApiReader).find(apiId);
  return api ? toApiOutput(api) : fail("api_not_found");
});
