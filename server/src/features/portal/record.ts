import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { withDueRefill } from "../../../../engine/src/rules/refill.ts";
import { CreditsOutput, toCreditsOutput } from "../credits/record.ts";
import type { StoredKey } from "../keys/statements/stored-key.ts";
import { PortalActions, PortalPageInput } from "./fields.ts";
import type { Left } from "./left.ts";
import { portalActions, portalLanguages, portalRequirement } from "./terms.ts";

/** What sessions of an API's portal inherit. */
export const ApiPortalInput = z.strictObject({
  actions: PortalActions.optional(),
  page: PortalPageInput.optional(),
});

export type StoredApiPortal = z.output<typeof ApiPortalInput>;

/** The permissions that the actions of these settings need. */
export function apiPortalRequirements(portal: StoredApiPortal | null | undefined, apiId: string): string[] {
  return (portal?.actions ?? []).map((action) => portalRequirement(action, apiId));
}

/** The same as the API operations return it. */
export const ApiPortalOutput = z
  .strictObject({
    actions: z.array(z.enum(portalActions)).optional(),
    page: z
      .strictObject({
        name: z.string().optional(),
        logoUrl: z.string().optional(),
        color: z.string().optional(),
        language: z.enum(portalLanguages).optional(),
        returnUrl: z.string().optional(),
      })
      .optional(),
  })
  .describe("What sessions of the portal inherit unless they say otherwise. Absent: nothing.");

const LimitOutput = z.strictObject({ name: z.string(), limit: z.int(), duration: z.int() });

/** A key as its owner sees it: without `meta`, permissions and what else only the operator needs. */
export const OwnKeyOutput = z.strictObject({
  keyId: z.string(),
  start: z.string(),
  enabled: z.boolean(),
  createdAt: z.int().describe("Unix time in milliseconds."),
  lastUsedAt: z.int().optional().describe("Time of a recent verification."),
  name: z.string().optional(),
  leakedAt: z.int().optional().describe("Time at which it was reported as leaked. Absent: it was not."),
  expires: z.int().optional().describe("Unix time in milliseconds. Absent: never."),
  roles: z.array(z.string()).optional(),
  credits: CreditsOutput.optional().describe("Absent: unlimited."),
  ratelimits: z.array(LimitOutput).optional().describe("Limits of the key, and those that the owner's keys share."),
  left: z
    .strictObject({ remaining: z.int(), unit: z.string().optional() })
    .optional()
    .describe(
      "The most that one call may cost now: the least remainder of the credits of the key and of the budgets that it " +
        "spends from. Absent: the session does not show it, or nothing limits the cost.",
    ),
});

export function toOwnKey(key: StoredKey, now: Instant, left: Left | undefined): z.input<typeof OwnKeyOutput> {
  // Limits in shadow mode deny nothing, and owners of keys need not know them.
  const limits = [...key.ratelimits, ...(key.identity?.ratelimits ?? [])].filter(({ shadow }) => shadow === 0);
  return {
    keyId: key.id,
    start: key.start,
    enabled: key.enabled === 1,
    createdAt: key.created_at,
    ...(key.last_used_at !== null && { lastUsedAt: key.last_used_at }),
    ...(key.name !== null && { name: key.name }),
    ...(key.leaked_at !== null && { leakedAt: key.leaked_at }),
    ...(key.expires_at !== null && { expires: key.expires_at }),
    ...(key.roles.length > 0 && { roles: key.roles }),
    ...(key.balance && { credits: toCreditsOutput(withDueRefill(key.balance, now)) }),
    ...(limits.length > 0 && {
      ratelimits: limits.map(({ name, limit, duration }) => ({ name, limit, duration })),
    }),
    ...(left && { left }),
  };
}
