import { z } from "zod";
import type { DerivedLimit } from "../../../../engine/src/directory/derived-key.ts";
import { ModeOutput } from "../../platform/vocabulary/schema.ts";
import type { ListedDerivedKey } from "./statements/derived-keys.ts";

/** A derived key as the API operations return it. */
export const DerivedKeyOutput = z
  .strictObject({
    keyId: z.string(),
    parentKeyId: z.string().describe("The key, or the derived key, that it was derived from."),
    level: z.int().describe("How many levels it is below the key at the top: 1 to 3."),
    start: z.string().describe("The readable beginning of the key string."),
    createdAt: z.int().describe("Unix time in milliseconds."),
    expires: z.int().describe("When it ends, unless one of its parents ends before. Unix time in milliseconds."),
    byHolder: z.boolean().optional().describe("Present and true if the holder of its parent derived it."),
    permissions: z
      .array(z.string())
      .optional()
      .describe("It has those permissions of its parent that are also here. Absent: all of them."),
    ratelimits: z
      .array(z.strictObject({ name: z.string(), limit: z.int(), duration: z.int(), mode: ModeOutput.optional() }))
      .optional()
      .describe("Limits besides those of its parent."),
    credits: z
      .strictObject({ max: z.int(), remaining: z.int().describe("What it may still spend.") })
      .optional()
      .describe("A bound besides the credits and budgets of its parent. Absent: none."),
    allowedIps: z
      .array(z.string())
      .optional()
      .describe("Addresses and CIDRs that may use it. Absent: those of its parent."),
    meta: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "DerivedKey", description: "A key that was derived from another one." });

export function toDerivedKeyOutput(row: ListedDerivedKey): z.input<typeof DerivedKeyOutput> {
  const limits: DerivedLimit[] = row.ratelimits === null ? [] : JSON.parse(row.ratelimits);
  return {
    keyId: row.id,
    parentKeyId: row.parent_id,
    level: row.level,
    start: row.start,
    createdAt: row.created_at,
    expires: row.expires_at,
    ...(row.by_holder === 1 && { byHolder: true }),
    ...(row.permissions !== null && { permissions: JSON.parse(row.permissions) as string[] }),
    ...(limits.length > 0 && {
      ratelimits: limits.map(({ name, limit, duration, mode }) => ({
        name,
        limit,
        duration,
        ...(mode === "strict" && { mode }),
      })),
    }),
    ...(row.credits_max !== null && { credits: { max: row.credits_max, remaining: row.remaining ?? 0 } }),
    ...(row.allowed_ips !== null && { allowedIps: JSON.parse(row.allowed_ips) as string[] }),
    ...(row.meta !== null && { meta: JSON.parse(row.meta) as Record<string, unknown> }),
  };
}
