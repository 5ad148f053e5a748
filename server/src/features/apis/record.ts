import { z } from "zod";
import type { ApiRow } from "../../platform/store/schema.ts";
import { duration, EXPIRES_MAX } from "../../platform/vocabulary/schema.ts";
import { ApiPortalOutput, type StoredApiPortal } from "../portal/record.ts";
import { toUpstreamOutput, UpstreamOutput } from "../upstreams/record.ts";

const MINUTE = 60_000;

const life = () => duration(MINUTE, EXPIRES_MAX);

/** A policy as callers set it. */
export const PolicyInput = z
  .strictObject({
    expiry: z
      .strictObject({
        default: life()
          .optional()
          .describe("The life of a new key that is created without `expires`, in milliseconds."),
        max: life()
          .optional()
          .describe(
            "The longest life of a key, in milliseconds from its creation. Without `default`, each key must be created with " +
              "`expires`.",
          ),
      })
      .check(({ value: { default: usual, max }, issues }) => {
        if (usual === undefined || max === undefined || usual <= max) return;
        issues.push({
          code: "custom",
          input: usual,
          path: ["default"],
          message: "is longer than `max`",
          params: { keyword: "maximum", fix: `Send at most ${max}, or a longer \`max\`.` },
        });
      })
      .optional(),
    limitsRequired: z
      .boolean()
      .optional()
      .describe(
        "Whether each key needs a limit: in `ratelimits` or `concurrency` of the key, of its plan, of its identity, or of " +
          "the plan of that. Credits, budgets and limits in shadow mode are none.",
      ),
    prefixFixed: z
      .boolean()
      .optional()
      .describe("Whether each key has the `prefix` of the API, and none if the API has none."),
  })
  .describe("What new keys must have. It is set as a whole. Null: nothing.");

export type KeyPolicy = z.output<typeof PolicyInput>;

export const PolicyOutput = z
  .strictObject({
    expiry: z
      .strictObject({
        default: z.int().optional().describe("Milliseconds."),
        max: z.int().optional().describe("Milliseconds."),
      })
      .optional(),
    limitsRequired: z.boolean().optional(),
    prefixFixed: z.boolean().optional(),
  })
  .describe("What new keys must have. Absent: nothing.");

/** The policy of an API; one without rules if it has none. */
export function policyOf(api: Pick<ApiRow, "policy"> | undefined): KeyPolicy {
  return api?.policy ? JSON.parse(api.policy) : {};
}

/** An API as the API operations return it. */
export const ApiOutput = z
  .strictObject({
    id: z.string(),
    apiId: z.string(),
    name: z.string(),
    prefix: z.string().optional().describe("Default prefix of new keys."),
    byteLength: z.int().optional().describe("Default number of random bytes in new keys."),
    deleteProtection: z.boolean().optional().describe("Present and true if the API cannot be deleted."),
    allowedIps: z
      .array(z.string())
      .optional()
      .describe("Addresses and CIDRs that may use its keys. Absent: every address."),
    leakAction: z
      .enum(["mark", "disable"])
      .optional()
      .describe("What happens to its keys that are reported as leaked. Absent: `mark`."),
    expiryNotices: z
      .array(z.int())
      .optional()
      .describe("The days before the expiry of a key at which it has an event. Absent: 7 and 1."),
    upstream: UpstreamOutput.optional().describe("The endpoint that is asked about unknown keys. Absent: none."),
    ownKeyAccess: z
      .boolean()
      .optional()
      .describe("Present and true if holders of its keys may read them with `keys.getOwnKey`."),
    resources: z
      .array(z.string())
      .optional()
      .describe("The resources for which its keys get access tokens. Absent: they get none."),
    ownKeyDerivation: z
      .boolean()
      .optional()
      .describe("Present and true if holders of its keys may derive keys from them with `keys.deriveOwnKey`."),
    policy: PolicyOutput.optional(),
    portal: ApiPortalOutput.optional(),
  })
  .meta({ id: "Api", description: "A namespace of keys. `id` and `apiId` are equal." });

export function toApiOutput(api: ApiRow): z.input<typeof ApiOutput> {
  return {
    id: api.id,
    apiId: api.id,
    name: api.name,
    ...(api.prefix !== null && { prefix: api.prefix }),
    ...(api.byte_length !== null && { byteLength: api.byte_length }),
    ...(api.delete_protection === 1 && { deleteProtection: true }),
    ...(api.expiry_notices !== null && { expiryNotices: JSON.parse(api.expiry_notices) as number[] }),
    ...(api.allowed_ips !== null && { allowedIps: JSON.parse(api.allowed_ips) as string[] }),
    ...(api.leak_action !== null && { leakAction: api.leak_action }),
    ...(api.upstream !== null && { upstream: toUpstreamOutput(api.upstream) }),
    ...(api.own_key_access === 1 && { ownKeyAccess: true }),
    ...(api.resources !== null && { resources: JSON.parse(api.resources) as string[] }),
    ...(api.own_key_derivation === 1 && { ownKeyDerivation: true }),
    ...(api.policy !== null && { policy: policyOf(api) }),
    ...(api.portal !== null && { portal: JSON.parse(api.portal) as StoredApiPortal }),
  };
}
