import { z } from "zod";
import { query } from "../../rpc/operation.ts";
import { exampleApi } from "../examples.ts";
import { ApiId } from "../schema.ts";

export const getApi = query("apis.getApi", {
  summary: "Get an API",
  description: "`id` and `apiId` are the same.",
  permissions: ["apis.{apiId}.read_api"],
  input: z.strictObject({ apiId: ApiId }),
  output: z.strictObject({
    id: z.string(),
    apiId: z.string(),
    name: z.string(),
    prefix: z.string().optional().describe("Default prefix of its keys."),
    byteLength: z.int().optional().describe("Default length of its keys."),
    deleteProtection: z.boolean().optional().describe("Present and true while the API cannot be deleted."),
    allowedIps: z.array(z.string()).optional().describe("The only addresses that may use its keys, as CIDRs."),
  }),
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
  if (!api) return fail("api_not_found");
  return {
    id: api.id,
    apiId: api.id,
    name: api.name,
    ...(api.prefix !== null && { prefix: api.prefix }),
    ...(api.byte_length !== null && { byteLength: api.byte_length }),
    ...(api.delete_protection === 1 && { deleteProtection: true }),
    ...(api.allowed_ips !== null && { allowedIps: JSON.parse(api.allowed_ips) as string[] }),
  };
});
