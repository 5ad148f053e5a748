import { z } from "zod";
import { grantPattern, parseGrant } from "../../rules/grants.ts";
import { grantsOf } from "../../store/administration/root-keys.ts";
import type { RootKeyRow } from "../../store/schema.ts";
import { text } from "../schema.ts";

/** Nothing longer is a grant: an id has up to 255 characters, and stands between two short words. */
const GRANT_LENGTH_MAX = 300;
const GRANTS_PER_ROOT_KEY_MAX = 1_000;

const Grant = text(1, GRANT_LENGTH_MAX)
  .refine((grant) => parseGrant(grant) !== null, {
    error: "is no permission of root keys; they look like apis.*.create_key",
    params: { keyword: "pattern", fix: "Take one of those that the reference names, with an id or `*` in the middle." },
  })
  .meta({ pattern: grantPattern });

/** What a root key is to be allowed, as a caller writes it. */
export const Permissions = z
  .array(Grant)
  .min(1)
  .max(GRANTS_PER_ROOT_KEY_MAX)
  .describe(
    "Such as `apis.*.create_key`, or `*` for an administrator. Each of the three segments may be `*`. You must have " +
      "them yourself.",
  );

/** Each grant once, in canonical spelling. */
export function canonical(permissions: readonly string[]): string[] {
  return [...new Set(permissions.map((permission) => parseGrant(permission)!))];
}

/** A root key as it is shown. */
export const RootKeyOutput = z
  .strictObject({
    rootKeyId: z.string(),
    name: z.string(),
    start: z.string().describe("The readable beginning of the root key; empty where it was chosen by configuration."),
    permissions: z.array(z.string()),
    enabled: z.boolean(),
    source: z.enum(["issued", "environment"]).describe("`environment`: given by the service's configuration."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    updatedAt: z.int().optional(),
    expires: z.int().optional().describe("Unix time in milliseconds. Absent: never."),
  })
  .meta({ id: "RootKey", description: "What programs call the service with." });

export function rootKeyRecord(rootKey: RootKeyRow): z.input<typeof RootKeyOutput> {
  return {
    rootKeyId: rootKey.id,
    name: rootKey.name,
    start: rootKey.start,
    permissions: grantsOf(rootKey),
    enabled: rootKey.enabled === 1,
    source: rootKey.source,
    createdAt: rootKey.created_at,
    ...(rootKey.updated_at !== null && { updatedAt: rootKey.updated_at }),
    ...(rootKey.expires_at !== null && { expires: rootKey.expires_at }),
  };
}

/** The answer that shows a root key. */
export const IssuedOutput = {
  rootKeyId: z.string(),
  key: z.string().describe("The root key. It is in this answer and nowhere else: only a hash of it is kept."),
};

export const LAST_ADMINISTRATOR =
  "This root key is the last administrator of its workspace. Make another one first: permission `*`, without an expiry.";
