import { z } from "zod";
import { mutation } from "../../platform/rpc/operation.ts";
import { exampleApi } from "../../platform/vocabulary/examples.ts";
import { ApiId, Empty } from "../../platform/vocabulary/schema.ts";
import { ApiWriter } from "./statements.ts";

export const deleteApi = mutation("apis.deleteApi", {
  summary: "Delete an API and its keys",
  description:
    "The next verification of any of its keys on the same node answers NOT_FOUND. An API with delete protection " +
    "cannot be deleted.",
  permissions: ["apis.{apiId}.delete_api"],
  input: z.strictObject({ apiId: ApiId }),
  output: Empty,
  problems: ["api_not_found", "protected_resource"],
  examples: [
    { summary: "Delete an API", input: { apiId: exampleApi.apiId }, output: {} },
    {
      summary: "An API that does not exist",
      input: { apiId: "api_03yhWPSEYjF9lWCM" },
      problem: "api_not_found",
    },
  ],
}).handle(async ({ apiId }, { store, principal, now, invalidate, audit, fail }) => {
  principal.authorize(`apis.${apiId}.delete_api`);
  const apis = store.of(ApiWriter);
  const api = await apis.find(apiId);
  if (!api) return fail("api_not_found");
  if (api.delete_protection === 1) {
    return fail("protected_resource", "This API has delete protection enabled. Disable it before deleting the API.");
  }
  await apis.markDeleted(apiId, now);
  invalidate.api(apiId);
  const { name } = api;
  audit([apiId], { name }, [{ type: "api.deleted", objectId: apiId, data: { apiId, name } }]);
  return {};
});
