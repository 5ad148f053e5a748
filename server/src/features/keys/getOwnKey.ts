import { z } from "zod";
import type { Clock, Instant } from "../../../../engine/src/clock/clock.ts";
import type { KeyRecord } from "../../../../engine/src/directory/records.ts";
import { balanceAt, creditsOf, derivedAt } from "../../../../engine/src/verification/explanation.ts";
import { readUntilCurrent } from "../../../../engine/src/verification/read-again.ts";
import { admitCall } from "../../platform/rpc/workspace-limit.ts";
import {
  exampleKeyInput,
  exampleReset,
  exampleSecret,
  exampleTime,
  exampleVerification,
} from "../../platform/vocabulary/examples.ts";
import { asSecret, ModeOutput, Reset, text } from "../../platform/vocabulary/schema.ts";
import { levels } from "../analytics/levels.ts";
import { CreditsState } from "../credits/record.ts";
import { metered, type Services } from "../services.ts";

/** Reads of one key by its holder per minute. Each reads the database. */
export const HOLDER_REQUESTS_PER_MINUTE = 30;

/** The days of usage that the holder of a key can read, with today. */
const USAGE_DAYS = 30;

const counts = { total: z.int(), valid: z.int(), creditsSpent: z.int() };

export const getOwnKey = metered("keys.getOwnKey", {
  summary: "Get the key that you hold",
  description:
    "For the holder of a key, without a root key: what is left of its credits and limits, its expiry and its usage. It " +
    "charges nothing. It works only for keys of APIs with `ownKeyAccess`; every other string is answered alike with 404. " +
    "Without a root key, keys of the default workspace are found; a root key finds those of its workspace, and needs " +
    `\`read_key\`. A key can be read ${HOLDER_REQUESTS_PER_MINUTE} times per minute.`,
  repeatable: true,
  permissions: ["apis.{apiId}.read_key"],
  isPublic: true,
  input: z.strictObject({ key: asSecret(text(1, 512)).describe("The key string.") }),
  output: z.strictObject({
    keyId: z.string(),
    enabled: z.boolean(),
    expires: z.int().optional().describe("Unix time in milliseconds. Absent: never."),
    credits: CreditsState.optional().describe("Absent: unlimited."),
    ratelimits: z.array(
      z.strictObject({
        name: z.string(),
        limit: z.int(),
        duration: z.int().describe("Length of the window in milliseconds."),
        mode: ModeOutput.optional(),
        used: z.int().describe("What was charged in the sliding window that ends now."),
        remaining: z.int(),
        resetAt: Reset,
        shared: z.boolean().describe("Whether all keys of the owner share the limit."),
      }),
    ),
    usage: z
      .strictObject({
        startAt: z.int(),
        endAt: z.int(),
        ...counts,
        days: z
          .array(z.strictObject({ startAt: z.int(), ...counts }))
          .describe("The days with verifications, the oldest first."),
      })
      .optional()
      .describe(
        "Verifications of the last 30 days in UTC, with today. Absent if the service keeps no analytics, and of a derived key, " +
          "whose calls count for the key at the top.",
      ),
  }),
  problems: ["key_not_found"],
  examples: [
    {
      summary: "What is left of a key",
      input: { key: exampleSecret },
      output: {
        keyId: exampleVerification.keyId,
        enabled: true,
        expires: exampleVerification.expires,
        credits: {
          remaining: exampleKeyInput.credits.remaining,
          refill: { ...exampleKeyInput.credits.refill, nextAt: 1_769_904_000_000 },
        },
        ratelimits: [
          {
            name: "requests",
            limit: 100,
            duration: 60_000,
            used: 0,
            remaining: 100,
            resetAt: exampleReset,
            shared: false,
          },
        ],
        usage: {
          startAt: exampleTime - USAGE_DAYS * levels.day,
          endAt: exampleTime,
          total: 0,
          valid: 0,
          creditsSpent: 0,
          days: [],
        },
      },
    },
    {
      summary: "A string that is no key, or the key of an API that lets no holder read",
      input: { key: "3kAqEg4u4qMxCGFAVMuGsb3cijGp" },
      problem: "key_not_found",
    },
  ],
}).handle(async ({ key: secret }, services, context) => {
  const { ownKeys, limiter } = services;
  const { workspaceId, principal, address, requestId, now, startedAt, fail } = context;
  const asked = { key: secret, workspaceId, principal, address, requestId, now, startedAt };
  return readUntilCurrent(services.clock, asked, async (request, attempt) => {
    const found = await ownKeys.find(request);
    if (found === null) return fail("key_not_found");
    if (attempt === 1) await admitHolder(found.key, limiter);
    const answer = await describe(found.key, services);
    return found.isCurrent() ? answer : undefined;
  });
});

/** What its holder is told of a key, as JSON text. */
async function describe(key: KeyRecord, services: Services): Promise<string> {
  const { clock } = services;
  const { origins, usage } = await services.holders.run(key.workspaceId, () => readStored(key, services, clock));
  const now = clock.now();
  const balance = balanceAt(key, origins, now);
  const bounds = derivedAt(key, origins).flatMap(({ credits }) => credits ?? []);
  const own = balance && creditsOf(balance, now);
  // A derived key may spend what is left of each.
  const credits = bounds.reduce<typeof own>(
    (least, { remaining }) => (least && least.remaining <= remaining ? least : { remaining }),
    own,
  );
  const limits = await services.ownKeys.readLimits(key);
  return JSON.stringify({
    keyId: key.keyId,
    enabled: key.enabled,
    expires: key.expiresAt ?? undefined,
    credits,
    ratelimits: limits.map(({ limit: { name, limit, duration, mode, owner }, used, reset }) => ({
      name,
      limit,
      duration,
      ...(mode === "strict" && { mode }),
      used,
      remaining: Math.max(0, limit - used),
      resetAt: reset,
      shared: owner === "identity",
    })),
    usage,
  });
}

/** Counts a call of the holder of a key against the limit of the key. */
function admitHolder({ top: { keyId, workspaceId } }: KeyRecord, limiter: Services["limiter"]): Promise<void> {
  return admitCall(
    { counter: `o\0${keyId}`, limit: HOLDER_REQUESTS_PER_MINUTE, owner: workspaceId },
    "own-key",
    `This key can be read ${HOLDER_REQUESTS_PER_MINUTE} times per minute.`,
    limiter,
  );
}

/** What the record of the key leaves out: its balances and its usage, undefined if analytics are off, or if it is derived. */
async function readStored(
  { keyId, workspaceId, poolId, derivation }: KeyRecord,
  { keys, analytics }: Pick<Services, "keys" | "analytics">,
  clock: Pick<Clock, "now">,
) {
  const now = clock.now();
  const budgetIds = derivation?.balanceIds ?? [];
  const [origins, usage] = await Promise.all([
    keys.origins({ workspaceId, keyId, poolId, budgetIds, slotIds: [], slugs: [], now }),
    analytics.isOn && derivation === null ? readUsage(workspaceId, keyId, analytics, now) : undefined,
  ]);
  return { origins, usage };
}

/** The counts of a key in a day, or in all days. */
interface UsageCounts {
  readonly total: number;
  readonly valid: number;
  readonly creditsSpent: number;
}

async function readUsage(workspaceId: string, keyId: string, analytics: Services["analytics"], now: Instant) {
  const today = Math.floor(now / levels.day) * levels.day;
  const start = Math.max(today - (USAGE_DAYS - 1) * levels.day, analytics.oldest("day", now));
  const end = today + levels.day;
  const query = { about: "verifications", workspaceId, subject: keyId, level: "day", start, end, tags: [] } as const;
  const counts: UsageCounts & { series: (UsageCounts & { time: number })[] } = JSON.parse(
    `{${await analytics.stats(query)}}`,
  );
  const days = counts.series.filter(({ total }) => total > 0);
  return {
    startAt: start,
    endAt: end,
    ...countsOf(counts),
    days: days.map((day) => ({ startAt: day.time, ...countsOf(day) })),
  };
}

function countsOf({ total, valid, creditsSpent }: UsageCounts): UsageCounts {
  return { total, valid, creditsSpent };
}
