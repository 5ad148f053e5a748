import { z } from "zod";
import { grantPattern, parseGrant } from "../../../../engine/src/rules/grants.ts";
import { grantsOf } from "../../platform/store/access/root-key-lookup.ts";
import { asSecret, text } from "../../platform/vocabulary/schema.ts";
import type { ListedRootKey } from "./statements.ts";

/** A grant is an id of up to 255 characters between two short words. */
const GRANT_LENGTH_MAX = 300;
const GRANTS_PER_ROOT_KEY_MAX = 1_000;

const Grant = text(1, GRANT_LENGTH_MAX)
  .refine((grant) => parseGrant(grant) !== null, {
    error: "is not a permission of root keys, such as apis.*.create_key",
    params: { keyword: "pattern", fix: "Use a permission from the reference, with an id or `*` in the middle." },
  })
  .meta({ pattern: grantPattern });

/** The permissions of a root key, as a caller sends them. */
export const RootKeyPermissions = z
  .array(Grant)
  .min(1)
  .max(GRANTS_PER_ROOT_KEY_MAX)
  .describe(
    "Permissions such as `apis.*.create_key`, or `*` for an administrator. Each of the three segments may be `*`. The " +
      "calling root key must have all of them.",
  );

export const LeakActionInput = z
  .enum(["mark", "disable"])
  .describe(
    "What happens if it is reported as leaked. `mark`, the default: it gets `leakedAt` and still works. `disable`: it is " +
      "disabled too, unless it is the last administrator of its workspace.",
  );

/** The grants in canonical spelling, without duplicates. */
export function canonicalGrants(permissions: readonly string[]): string[] {
  return [...new Set(permissions.map((permission) => parseGrant(permission)!))];
}

/** A root key as the API operations return it. */
export const RootKeyOutput = z
  .strictObject({
    rootKeyId: z.string(),
    name: z.string(),
    start: z
      .string()
      .describe("The readable beginning of the root key. Empty for the root key of the service's configuration."),
    permissions: z.array(z.string()),
    enabled: z.boolean(),
    source: z.enum(["issued", "environment"]).describe("`environment`: the root key of the service's configuration."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
    lastUsedAt: z.int().optional().describe("Time of a recent call, within about a minute. Absent: never used."),
    expires: z.int().optional().describe("Unix time in milliseconds. Absent: never."),
    leakAction: z
      .enum(["mark", "disable"])
      .optional()
      .describe("What happens if it is reported as leaked. Absent: `mark`."),
    leakedAt: z
      .int()
      .optional()
      .describe("When it was first reported as leaked, as Unix time in milliseconds. Absent: never."),
    createdBy: z
      .string()
      .optional()
      .describe("The id of the root key that created it. Absent: the command line, the configuration, or unknown."),
  })
  .meta({ id: "RootKey", description: "A root key, which authenticates a program to the service." });

export function toRootKeyOutput(rootKey: ListedRootKey): z.input<typeof RootKeyOutput> {
  return {
    rootKeyId: rootKey.id,
    name: rootKey.name,
    start: rootKey.start,
    permissions: grantsOf(rootKey),
    enabled: rootKey.enabled === 1,
    source: rootKey.source,
    createdAt: rootKey.created_at,
    ...(rootKey.updated_at !== null && { updatedAt: rootKey.updated_at }),
    ...(rootKey.last_used_at !== null && { lastUsedAt: rootKey.last_used_at }),
    ...(rootKey.expires_at !== null && { expires: rootKey.expires_at }),
    ...(rootKey.leak_action !== null && { leakAction: rootKey.leak_action }),
    ...(rootKey.leaked_at !== null && { leakedAt: rootKey.leaked_at }),
    ...(rootKey.created_by !== null && { createdBy: rootKey.created_by }),
  };
}

/** The output fields that contain a new root key. */
export const IssuedOutput = {
  rootKeyId: z.string(),
  key: asSecret(z.string()).describe("The root key. Only this response contains it: the service stores a hash."),
};

export const LAST_ADMINISTRATOR =
  "This root key is the last administrator of its workspace. First create another one with permission `*` and no expiry.";
