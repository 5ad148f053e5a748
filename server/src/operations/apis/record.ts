import { z } from "zod";
import type { ApiRow } from "../../store/schema.ts";

/** An API as it is shown. */
export const ApiOutput = z
  .strictObject({
    id: z.string(),
    apiId: z.string(),
    name: z.string(),
    prefix: z.string().optional().describe("Default prefix of its keys."),
    byteLength: z.int().optional().describe("Default length of its keys."),
    deleteProtection: z.boolean().optional().describe("Present and true while the API cannot be deleted."),
    allowedIps: z.array(z.string()).optional().describe("The only addresses that may use its keys, as CIDRs."),
  })
  .meta({ id: "Api", description: "A namespace of keys. `id` and `apiId` are the same." });

export function apiRecord(api: ApiRow): z.input<typeof ApiOutput> {
  return {
    id: api.id,
    apiId: api.id,
    name: api.name,
    ...(api.prefix !== null && { prefix: api.prefix }),
    ...(api.byte_length !== null && { byteLength: api.byte_length }),
    ...(api.delete_protection === 1 && { deleteProtection: true }),
    ...(api.allowed_ips !== null && { allowedIps: JSON.parse(api.allowed_ips) as string[] }),
  };
}
