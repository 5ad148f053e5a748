import { z } from "zod";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { withDueRefill } from "../../../../engine/src/rules/refill.ts";
import { CreditsOutput, toCreditsOutput } from "../credits/record.ts";
import type { StoredKey } from "../keys/statements/stored-key.ts";

const LimitOutput = z.strictObject({ name: z.string(), limit: z.int(), duration: z.int() });

/** A key as its owner sees it: without `meta`, permissions and what else only the operator needs. */
export const OwnKeyOutput = z.strictObject({
  keyId: z.string(),
  start: z.string(),
  enabled: z.boolean(),
  createdAt: z.int().describe("Unix time in milliseconds."),
  lastUsedAt: z.int().optional().describe("Time of a recent verification."),
  name: z.string().optional(),
  expires: z.int().optional().describe("Unix time in milliseconds. Absent: never."),
  roles: z.array(z.string()).optional(),
  credits: CreditsOutput.optional().describe("Absent: unlimited."),
  ratelimits: z.array(LimitOutput).optional().describe("Limits of the key, and those that the owner's keys share."),
});

export function toOwnKey(key: StoredKey, now: Instant): z.input<typeof OwnKeyOutput> {
  const limits = [...key.ratelimits, ...(key.identity?.ratelimits ?? [])];
  return {
    keyId: key.id,
    start: key.start,
    enabled: key.enabled === 1,
    createdAt: key.created_at,
    ...(key.last_used_at !== null && { lastUsedAt: key.last_used_at }),
    ...(key.name !== null && { name: key.name }),
    ...(key.expires_at !== null && { expires: key.expires_at }),
    ...(key.roles.length > 0 && { roles: key.roles }),
    ...(key.balance && { credits: toCreditsOutput(withDueRefill(key.balance, now)) }),
    ...(limits.length > 0 && {
      ratelimits: limits.map(({ name, limit, duration }) => ({ name, limit, duration })),
    }),
  };
}
