import type { Instant } from "../../../clock/clock.ts";
import { hashSecret, hashSecret512 } from "../../../crypto/hash.ts";
import { fieldName } from "./rows.ts";

/** A key for `keys.migrateKeys`. It is validated later, by the schema of the operation. */
export type HashedKey = { hash: string } & Record<string, unknown>;

/** A row as a key, or why it cannot become one. */
export type Mapped = { key: HashedKey } | { rejected: string } | { skipped: string };

export const sourceNames = ["unkey", "better-auth", "litellm", "kong", "aws", "generic"] as const;
export type SourceName = (typeof sourceNames)[number];

/** Maps the rows of one kind of export. Key strings are hashed here and never sent. */
export type Source = (row: Fields, context: { now: Instant; algorithm: string }) => Mapped;

const MINUTE = 60_000;
const DAY = 86_400_000;

/** Reads the fields of a row by any spelling of their names. Empty texts and nulls are absent. */
export class Fields {
  readonly #values: ReadonlyMap<string, unknown>;

  constructor(values: ReadonlyMap<string, unknown>) {
    this.#values = values;
  }

  /** The normalized names of the fields that have a value. */
  names(): string[] {
    return [...this.#values.keys()].filter((name) => this.value(name) !== undefined);
  }

  /** The first of these fields that has a value. */
  value(...names: string[]): unknown {
    for (const name of names) {
      const value = this.#values.get(fieldName(name));
      if (value !== undefined && value !== null && value !== "") return value;
    }
    return undefined;
  }

  text(...names: string[]): string | undefined {
    const value = this.value(...names);
    return value === undefined || typeof value === "object" ? undefined : String(value);
  }

  /** Texts that are no number stay: the validation names them. */
  number(...names: string[]): unknown {
    const value = this.value(...names);
    return typeof value === "string" && /^\s*-?\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value;
  }

  boolean(...names: string[]): unknown {
    const value = this.value(...names);
    if (typeof value !== "string" && typeof value !== "number") return value;
    const text = String(value).trim().toLowerCase();
    if (["true", "t", "1", "yes"].includes(text)) return true;
    return ["false", "f", "0", "no"].includes(text) ? false : value;
  }

  /** Unix time in milliseconds, from that, from seconds, or from a date, which is UTC unless it says otherwise. */
  time(...names: string[]): unknown {
    const value = this.number(...names);
    if (typeof value === "number") return value > 0 && value < 100_000_000_000 ? value * 1_000 : value;
    if (typeof value !== "string") return value;
    const text = value
      .trim()
      .replace(" ", "T")
      .replace(/(:\d{2}(?:\.\d+)?[+-]\d{2})$/, "$1:00");
    const time = Date.parse(
      /(Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text.includes("T") ? text : `${text}T00:00`}Z`,
    );
    return Number.isNaN(time) ? value : time;
  }

  /** A JSON value, from its text too. Text that is no JSON stays. */
  json(...names: string[]): unknown {
    let value = this.value(...names);
    // Some exports have JSON in JSON.
    for (let depth = 0; depth < 2 && typeof value === "string"; depth++) {
      try {
        value = JSON.parse(value);
      } catch {
        break;
      }
    }
    return value === null ? undefined : value;
  }

  /** A list of texts, from JSON or from text with commas or semicolons. */
  list(...names: string[]): unknown {
    const value = this.json(...names);
    if (typeof value !== "string") return value;
    // PostgreSQL writes an array as {a,b}.
    const parts = value.replace(/^\{(.*)\}$/s, "$1").split(/[,;]/);
    const texts = parts.map((part) => part.trim().replace(/^"(.*)"$/s, "$1")).filter(Boolean);
    return texts.length > 0 ? texts : undefined;
  }
}

/** The members that have a value. */
function present(members: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** The members of an object, if any of them has a value. */
function presentObject(members: Record<string, unknown>): Record<string, unknown> | undefined {
  const found = present(members);
  return Object.keys(found).length > 0 ? found : undefined;
}

function keyOf(hash: string | undefined, missing: string, members: Record<string, unknown>): Mapped {
  return hash === undefined ? { rejected: missing } : { key: { hash, ...present(members) } };
}

/** The table `keys` of Unkey: `hash` is the SHA-256 as base64. */
const unkey: Source = (row) => {
  if (row.value("deletedAtM", "deletedAt") !== undefined) return { skipped: "it was deleted" };
  if (row.value("forWorkspaceId") !== undefined) return { skipped: "it is a root key of Unkey" };
  const remaining = row.number("remainingRequests", "remaining", "credits.remaining");
  const amount = row.number("refillAmount", "credits.refill.amount");
  const day = row.number("refillDay", "credits.refill.refillDay");
  const limit = row.number("ratelimitLimit");
  return keyOf(row.text("hash"), "has no hash", {
    name: row.text("name"),
    externalId: row.text("externalId", "ownerId"),
    meta: row.json("meta"),
    roles: row.list("roles"),
    permissions: row.list("permissions"),
    expires: row.time("expires"),
    enabled: row.boolean("enabled"),
    credits:
      row.json("credits") ??
      (remaining === undefined
        ? undefined
        : present({
            remaining,
            refill:
              amount === undefined
                ? undefined
                : day === undefined
                  ? { interval: "daily", amount }
                  : { interval: "monthly", amount, refillDay: day },
          })),
    ratelimits:
      row.json("ratelimits") ??
      (limit === undefined
        ? undefined
        : [{ name: "default", limit, duration: row.number("ratelimitDuration"), autoApply: true }]),
  });
};

/** The table `apikey` of Better Auth: `key` is the SHA-256 as base64url. */
const betterAuth: Source = (row) => {
  const remaining = row.number("remaining");
  const interval = row.number("refillInterval");
  const refill = interval === undefined ? undefined : refillEvery(interval, row.number("refillAmount"));
  if (refill === null) {
    return {
      rejected: `has a refill every ${String(interval)} ms. Refills here are daily or monthly: change refillInterval to 86400000 or 2592000000`,
    };
  }
  const permissions = row.json("permissions");
  const limit = row.boolean("rateLimitEnabled") === false ? undefined : row.number("rateLimitMax");
  return keyOf(row.text("key"), "has no key", {
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
};

/** A refill by its interval in milliseconds; null if there is none like it. */
function refillEvery(interval: unknown, amount: unknown) {
  if (interval === DAY) return { interval: "daily", amount };
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

/** The table `LiteLLM_VerificationToken`: `token` is the SHA-256 as hex. Budgets and models become metadata. */
const litellm: Source = (row) => {
  const token = row.text("token");
  const limit = row.number("rpmLimit");
  const metadata = row.json("metadata");
  const own = presentObject({
    models: row.list("models"),
    teamId: row.text("teamId"),
    spend: row.number("spend"),
    maxBudget: row.number("maxBudget"),
    budgetDuration: row.text("budgetDuration"),
    tpmLimit: row.number("tpmLimit"),
    maxParallelRequests: row.number("maxParallelRequests"),
  });
  const meta = { ...(typeof metadata === "object" ? metadata : {}), ...(own && { litellm: own }) };
  return keyOf(token?.startsWith("sk-") ? hashSecret(token) : token, "has no token", {
    name: row.text("keyAlias", "keyName"),
    externalId: row.text("userId", "teamId"),
    meta: presentObject(meta),
    expires: row.time("expires"),
    enabled: row.boolean("blocked") === true ? false : undefined,
    ratelimits: limit === undefined ? undefined : [{ name: "requests", limit, duration: MINUTE, autoApply: true }],
  });
};

/** The credentials of the plugin key-auth of Kong, from `/key-auths` or the table `keyauth_credentials`. */
const kong: Source = (row, { now }) => {
  const key = row.text("key");
  const consumer = row.json("consumer") as Record<string, unknown> | undefined;
  const ttl = row.number("ttl");
  return keyOf(key === undefined ? undefined : hashSecret(key), "has no key", {
    name: row.text("id"),
    externalId: [consumer?.custom_id, consumer?.username, consumer?.id, row.text("consumerId")].find((id) => id),
    meta: presentObject({ tags: row.list("tags") }),
    // The Admin API gives the remaining seconds; the table has the time of the end.
    expires: typeof ttl === "number" ? now + ttl * 1_000 : row.time("ttl"),
  });
};

/** API keys of Amazon API Gateway: `get-api-keys --include-values`, or the CSV file of `import-api-keys`. */
const aws: Source = (row) => {
  const key = row.text("value", "key");
  return keyOf(key === undefined ? undefined : hashSecret(key), "has no value; export the keys with --include-values", {
    name: row.text("name"),
    externalId: row.text("customerId"),
    enabled: row.boolean("enabled"),
    meta: presentObject({
      description: row.text("description"),
      tags: row.json("tags"),
      usagePlanIds: row.list("usagePlanIds"),
      stageKeys: row.list("stageKeys"),
    }),
  });
};

/** The fields of `generic`, besides `meta.…`. */
const genericFields = [
  ...[
    "hash",
    "key",
    "name",
    "externalId",
    "meta",
    "roles",
    "permissions",
    "expires",
    "enabled",
    "credits",
    "ratelimits",
  ],
  ...["credits.remaining", "credits.refill.interval", "credits.refill.amount", "credits.refill.refillDay"],
];

/** Fields with the names of `keys.migrateKeys`, and `key` for key strings that are not hashed yet. */
const generic: Source = (row, { algorithm }) => {
  const known = new Set(genericFields.map(fieldName));
  const unknown = row.names().find((name) => !known.has(name) && !name.startsWith("meta."));
  if (unknown !== undefined) {
    return { rejected: `has a field ${unknown}. The fields are ${genericFields.join(", ")}, and meta.NAME` };
  }
  const key = row.text("key");
  const hash = row.text("hash");
  if (key !== undefined && hash !== undefined) return { rejected: "has both hash and key" };
  if (key !== undefined && algorithm !== "sha256" && algorithm !== "sha512") {
    return { rejected: `has a key, which is hashed with sha256 or sha512 only. Give its hash for ${algorithm}` };
  }
  const hashed = key === undefined ? hash : algorithm === "sha512" ? hashSecret512(key) : hashSecret(key);
  const meta = row.json("meta");
  const ownMeta = row.names().filter((name) => name.startsWith("meta."));
  const refill = presentObject({
    interval: row.text("credits.refill.interval"),
    amount: row.number("credits.refill.amount"),
    refillDay: row.number("credits.refill.refillDay"),
  });
  return keyOf(hashed, "has neither hash nor key", {
    name: row.text("name"),
    externalId: row.text("externalId"),
    meta:
      ownMeta.length === 0
        ? meta
        : {
            ...(meta as object | undefined),
            ...Object.fromEntries(ownMeta.map((name) => [name.slice(5), row.json(name)])),
          },
    roles: row.list("roles"),
    permissions: row.list("permissions"),
    expires: row.time("expires"),
    enabled: row.boolean("enabled"),
    credits: row.json("credits") ?? presentObject({ remaining: row.number("credits.remaining"), refill }),
    ratelimits: row.json("ratelimits"),
  });
};

export const sources: Readonly<Record<SourceName, Source>> = {
  unkey,
  "better-auth": betterAuth,
  litellm,
  kong,
  aws,
  generic,
};
