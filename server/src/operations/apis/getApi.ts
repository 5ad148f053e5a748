import { z } from "zod";
import { query } from "../../rpc/operation.ts";
import { exampleApi } from "../examples.ts";
import { ApiId } from "../schema.ts";
import { ApiOutput, apiRecord } from "./record.ts";

export const getApi = query("apis.getApi", {
  summary: "Get an API",
  description: "What `apis.updateApi` set for it is there when it is set.",
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
      summary: "An API that is not there",
      input: { apiId: "api_03yhWPSEYjF9lWCM" },
      problem: "api_not_found",
    },
  ],
}).handle(async ({ apiId }, { store, principal, fail }) => {
  principal.authorize(`apis.${apiId}.read_api`);
  const api = await store.apis.find(apiId);
  return api ? apiRecord(api) : fail("api_not_found");
});
