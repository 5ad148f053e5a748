import { hashSecret } from "../../../../engine/src/crypto/hash.ts";
import { keysIn } from "../dump/rows.ts";
import type { Fields } from "../fields.ts";
import { keyOf, present, type Source } from "./source.ts";

const DAY = 86_400_000;
/** A SHA-256 as base64url without padding. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/;

/** The table `apikey` of Better Auth: `key` is the SHA-256 as base64url, or the key string where hashing is disabled. */
export const betterAuth: Source = {
  mapping: () => map,
  left: {
    id: null,
    start: null,
    prefix: null,
    createdAt: null,
    updatedAt: null,
    lastRequest: null,
    lastRefillAt: null,
    requestCount: null,
    rateLimitWindowStart: null,
    refillAmount: null,
    refillInterval: null,
    rateLimitMax: null,
    rateLimitTimeWindow: null,
  },
  dump: keysIn("apikey", "key", "start"),
  algorithms: ["sha256"],
};

function map(row: Fields) {
  const stored = row.text("key");
  const start = row.text("start");
  const isPlain = stored !== undefined && start !== undefined && stored.startsWith(start);
  if (stored !== undefined && !isPlain && !DIGEST.test(stored)) {
    return {
      rejected: "has a key that is neither the SHA-256 of a key as base64url nor a key string that begins with `start`",
    };
  }
  if ((row.text("configId") ?? "default") !== "default") {
    row.note(
      "configId",
      "keys have no configuration here: make one API for each, and import the rows of each into its own",
    );
  }
  const remaining = row.number("remaining");
  const interval = remaining === undefined ? undefined : row.number("refillInterval");
  const refill = interval === undefined ? undefined : refillEvery(interval, row.number("refillAmount"));
  if (refill === null) {
    return {
      rejected: `has a refill every ${String(interval)} ms. Refills here are hourly, daily, weekly or monthly: change refillInterval to ${DAY / 24}, ${DAY}, ${7 * DAY} or ${30 * DAY}`,
    };
  }
  if (refill) {
    row.note(
      "refillInterval",
      "refills come at the start of the hour, day, week or month in UTC, and not an interval after the last one",
    );
  }
  const permissions = row.json("permissions");
  const limit = row.boolean("rateLimitEnabled") === false ? undefined : row.number("rateLimitMax");
  return keyOf(isPlain ? hashSecret(stored) : stored, "has no key", {
    name: row.text("name"),
    externalId: row.text("referenceId", "userId"),
    meta: row.json("metadata"),
    permissions: typeof permissions === "object" ? slugs(permissions as object) : permissions,
    expires: row.time("expiresAt"),
    enabled: row.boolean("enabled"),
    credits: remaining === undefined ? undefined : present({ remaining, refill }),
    ratelimits:
      limit === undefined
        ? undefined
        : [{ name: "requests", limit, duration: row.number("rateLimitTimeWindow"), autoApply: true }],
  });
}

/** A refill by its interval in milliseconds; null if there is none like it. */
function refillEvery(interval: unknown, amount: unknown) {
  if (interval === DAY / 24) return { interval: "hourly", amount };
  if (interval === DAY) return { interval: "daily", amount };
  if (interval === 7 * DAY) return { interval: "weekly", amount };
  const days = Number(interval) / DAY;
  return days >= 28 && days <= 31 ? { interval: "monthly", amount } : null;
}

/** `{"files":["read"]}` as `files.read`. */
function slugs(permissions: object): string[] | undefined {
  const all = Object.entries(permissions).flatMap(([resource, actions]) =>
    (Array.isArray(actions) ? actions : [actions]).map((action) => `${resource}.${action}`),
  );
  return all.length > 0 ? all : undefined;
}
