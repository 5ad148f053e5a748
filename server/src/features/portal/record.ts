import { z } from "zod";
import type { DerivedLimit } from "../../../../engine/src/directory/derived-key.ts";
import type { StoredBalance } from "../../../../engine/src/rules/refill.ts";
import { CreditsOutput, toCreditsOutput } from "../credits/record.ts";
import type { ListedDerivedKey } from "../keys/statements/derived-keys.ts";
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
  derivedKeys: z.int().optional().describe("How many living keys were derived of it, on all levels. Absent: none."),
});

/** A derived key as the owner of the key at its top sees it. */
export const OwnDerivedKeyOutput = z.strictObject({
  keyId: z.string(),
  parentKeyId: z.string().describe("The key, or the derived key, that it was derived from."),
  start: z.string(),
  createdAt: z.int().describe("Unix time in milliseconds."),
  expires: z.int().describe("When it ends at the latest, as Unix time in milliseconds."),
  credits: z.strictObject({ remaining: z.int() }).optional().describe("What it may still spend. Absent: no bound."),
  ratelimits: z.array(LimitOutput).optional().describe("Limits besides those of its parent."),
});

export function toOwnDerivedKey(row: ListedDerivedKey): z.input<typeof OwnDerivedKeyOutput> {
  const limits: DerivedLimit[] = row.ratelimits === null ? [] : JSON.parse(row.ratelimits);
  return {
    keyId: row.id,
    parentKeyId: row.parent_id,
    start: row.start,
    createdAt: row.created_at,
    expires: row.expires_at,
    ...(row.credits_max !== null && { credits: { remaining: row.remaining ?? 0 } }),
    ...(limits.length > 0 && { ratelimits: limits.map(shownLimit) }),
  };
}

function shownLimit({ name, limit, duration }: { name: string; limit: number; duration: number }) {
  return { name, limit, duration };
}

/** What is known of a key of an owner besides its row. */
interface Besides {
  /** Those of `KeyReader.creditsOf`. */
  readonly credits: StoredBalance | undefined;
  readonly left: Left | undefined;
  /** The number of living keys that were derived of it. */
  readonly derived: number;
}

export function toOwnKey(key: StoredKey, { credits, left, derived }: Besides): z.input<typeof OwnKeyOutput> {
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
    ...(credits && { credits: toCreditsOutput(credits) }),
    ...(limits.length > 0 && {
      ratelimits: limits.map(shownLimit),
    }),
    ...(left && { left }),
    ...(derived > 0 && { derivedKeys: derived }),
  };
}
