import { join, resolve } from "node:path";
import { isCidr } from "../rules/address.ts";
import { ConfigurationError, type Settings, secretNames } from "./env.ts";

/** How the service runs. Holds no secret, so it can be logged. */
export interface Config {
  host: string;
  /** 0: any free port. */
  port: number;
  dataDirectory: string;
  database: { kind: "sqlite"; file: string } | { kind: "postgres" };
  /** Whether to work with a PostgreSQL that may forget what it has acknowledged. */
  allowUnsafeDatabase: boolean;
  verifyAuth: "optional" | "required";
  redis: {
    /** Milliseconds without any answer after which Redis counts as away. */
    timeout: number;
    /** What decides limits while it is away: this node alone, nobody (503), or nobody (everything passes). */
    policy: "local" | "closed" | "open";
  };
  analytics: {
    /** Whether verifications and limits are counted for analytics.*. */
    enabled: boolean;
    /** Milliseconds for which buckets of each length are kept. */
    retention: { minute: number; hour: number; day: number };
    /** Bytes that counts may take on disk while their store is away. */
    spoolBytesMax: number;
  };
  /** Milliseconds for which a node that was told to stop goes on serving; undefined: 5 s, on a terminal none. */
  drain: number | undefined;
  /** Milliseconds for which a node that is cut off from the database serves what it knows. */
  staleMax: number;
  /** Without a slash at its end; empty: error types and links stay relative. */
  publicUrl: string;
  /** CIDRs of proxies whose X-Forwarded-For counts. */
  trustedProxies: string[];
  /** Metrics beside everything else, nowhere, or on a listener of their own. */
  metrics: "on" | "off" | { host: string; port: number };
  logLevel: "trace" | "debug" | "info" | "warn" | "error" | "fatal" | "silent";
  /** Bytes of memory for keys that are known without asking. */
  directoryBytesMax: number;
  /** Bytes of memory for the counters of limits. */
  counterBytesMax: number;
  /** Look-ups of unknown keys that may find nothing, a second. */
  lookupsPerSecond: number;
  /** What a workspace may have at most. */
  perWorkspace: { keys: number; namespaces: number; idempotencyRecords: number };
  /** Milliseconds in which a request's headers have to be there. */
  headersTimeout: number;
  /** Milliseconds in which a request has to be there, headers and body. */
  requestTimeout: number;
  /** Connections at the same time. */
  connectionsMax: number;
  /** Bytes of a request body; metered operations have a lower bound of their own. */
  bodyBytesMax: number;
  /** Bytes of memory for all request bodies on their way in, and for all responses on their way out. */
  bodiesBytesMax: number;
}

/** One setting: its environment name, what it does, and how its text is read. */
interface Setting<T> {
  readonly help: string;
  /** As it is shown in help texts. */
  readonly default: string;
  read(text: string | undefined, name: string): T;
}

const setting = <T>(help: string, shown: string, read: Setting<T>["read"]): Setting<T> => ({
  help,
  default: shown,
  read,
});

/** Every setting there is. Flags of `latchkey serve` are the same names in small letters with hyphens. */
export const settings = {
  HOST: setting("address to listen on", "127.0.0.1", (text) => text ?? "127.0.0.1"),
  PORT: setting("port to listen on; 0 takes any free one", "3000", (text, name) =>
    wholeNumber(text, name, 3000, 0, 65_535),
  ),
  DATA_DIR: setting("folder of the embedded database and of everything else that is kept", "./data", (text) =>
    resolve(text ?? "data"),
  ),
  DATABASE_URL: setting(
    "sqlite:<file> or postgres://user:password@host/database",
    "sqlite: a file in the data folder",
    (text) => text,
  ),
  ALLOW_UNSAFE_DATABASE: setting(
    "yes: start on a PostgreSQL with fsync or synchronous_commit off, which forgets credits in a crash",
    "no",
    (text, name) => oneOf(text, name, ["yes", "no"] as const, "no") === "yes",
  ),
  ROOT_KEY: setting(
    "administrator's root key; without one the first start makes one and shows it",
    "made once",
    (text) => text,
  ),
  VAULT_KEY: setting(
    "master key of the vault, 32 bytes as base64; while it is being changed: old,new",
    "embedded: made in the data folder; PostgreSQL: none, and keys cannot be recoverable",
    (text) => text,
  ),
  REDIS_URL: setting("redis://… or rediss://…, where several nodes count limits together", "none", (text) => text),
  REDIS_TIMEOUT: setting("time without any answer after which Redis counts as away", "1s", (text, name) =>
    duration(text, name, 1_000, 10, 60_000),
  ),
  REDIS_POLICY: setting(
    "while Redis is away: local (each node counts for itself), closed (503) or open (everything passes)",
    "local",
    (text, name) => oneOf(text, name, ["local", "closed", "open"] as const, "local"),
  ),
  ANALYTICS: setting(
    "off: verifications and limits are not counted for analytics",
    "on",
    (text, name) => oneOf(text, name, ["on", "off"] as const, "on") === "on",
  ),
  CLICKHOUSE_URL: setting(
    "http://user:password@host:8123/database, where analytics are kept instead of beside the rest",
    "none",
    (text) => text,
  ),
  RETENTION_MINUTES: setting("how long analytics by the minute are kept", "7d", (text, name) =>
    duration(text, name, 7 * DAY, 3_600_000, 366 * DAY),
  ),
  RETENTION_HOURS: setting("how long analytics by the hour are kept", "90d", (text, name) =>
    duration(text, name, 90 * DAY, DAY, 10 * 366 * DAY),
  ),
  RETENTION_DAYS: setting("how long analytics by the day are kept", "730d", (text, name) =>
    duration(text, name, 730 * DAY, DAY, 30 * 366 * DAY),
  ),
  SPOOL_BYTES: setting("disk for analytics whose store is away in bytes, or with k, m or g", "1g", (text, name) =>
    bytes(text, name, 1024 ** 3, 1024 ** 2, 1024 ** 4),
  ),
  VERIFY_AUTH: setting("whether keys.verifyKey needs a root key: optional or required", "optional", (text, name) =>
    oneOf(text, name, ["optional", "required"] as const, "optional"),
  ),
  STALE_MAX: setting("how long to serve what is known while the database is away, such as 10m", "10m", (text, name) =>
    duration(text, name, 600_000, 1_000, 12 * 3_600_000),
  ),
  DRAIN: setting(
    "how long to serve on when told to stop, answering not-ready, so that load balancers can notice",
    "5s; on a terminal 0",
    (text, name) => (text === undefined ? undefined : text === "0" ? 0 : duration(text, name, 0, 0, 600_000)),
  ),
  PUBLIC_URL: setting("address under which callers reach the service", "none", publicUrl),
  TRUSTED_PROXIES: setting("addresses or CIDRs of proxies whose X-Forwarded-For counts, by comma", "none", cidrs),
  METRICS: setting("where /metrics is: on, off, or host:port for a listener of its own", "on", metrics),
  HEADERS_TIMEOUT: setting("time in which the headers of a request have to be there", "20s", (text, name) =>
    duration(text, name, 20_000, 100, 3_600_000),
  ),
  REQUEST_TIMEOUT: setting("time in which a whole request has to be there", "60s", (text, name) =>
    duration(text, name, 60_000, 100, 3_600_000),
  ),
  CONNECTIONS_MAX: setting("connections at the same time; further ones are told to come back", "10000", (text, name) =>
    wholeNumber(text, name, 10_000, 1, 1_000_000),
  ),
  BODY_BYTES: setting("size of request bodies in bytes, or with k or m; metered operations: 64k", "10m", (text, name) =>
    bytes(text, name, 10 * 1024 ** 2, 64 * 1024, 64 * 1024 ** 2),
  ),
  BODIES_BYTES: setting(
    "memory for all request bodies on their way in, and again for responses that are being sent, in bytes, or with k, m or g",
    "256m",
    (text, name) => bytes(text, name, 256 * 1024 ** 2, 16 * 1024 ** 2, 64 * 1024 ** 3),
  ),
  LOOKUPS_PER_SECOND: setting("look-ups of unknown keys that may find nothing, a second", "5000", (text, name) =>
    wholeNumber(text, name, 5_000, 1, 1_000_000),
  ),
  KEYS_PER_WORKSPACE: setting("keys that a workspace may have", "10000000", (text, name) =>
    wholeNumber(text, name, 10_000_000, 1, 1_000_000_000),
  ),
  NAMESPACES_PER_WORKSPACE: setting("rate limit namespaces that a workspace may have", "100000", (text, name) =>
    wholeNumber(text, name, 100_000, 1, 10_000_000),
  ),
  IDEMPOTENCY_RECORDS_PER_WORKSPACE: setting(
    "calls with an Idempotency-Key that are remembered for a workspace at a time",
    "100000",
    (text, name) => wholeNumber(text, name, 100_000, 1, 10_000_000),
  ),
  LOG_LEVEL: setting("trace, debug, info, warn, error, fatal or silent", "info", (text, name) =>
    oneOf(text, name, ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const, "info"),
  ),
  COUNTER_BYTES: setting("memory for the counters of limits in bytes, or with k, m or g", "64m", (text, name) =>
    bytes(text, name, 64 * 1024 ** 2, 1024 ** 2, 64 * 1024 ** 3),
  ),
  DIRECTORY_BYTES: setting("memory for known keys in bytes, or with k, m or g", "256m", (text, name) =>
    bytes(text, name, 256 * 1024 ** 2, 1024 ** 2, 64 * 1024 ** 3),
  ),
};

export const settingNames = Object.keys(settings) as (keyof typeof settings)[];

/** @throws {ConfigurationError} on a value that cannot be used. */
export function readConfig(values: Settings): Config {
  const read = <N extends keyof typeof settings>(name: N) =>
    settings[name].read(values.get(name), `LATCHKEY_${name}`) as ReturnType<(typeof settings)[N]["read"]>;
  const dataDirectory = read("DATA_DIR");
  return {
    host: read("HOST"),
    port: read("PORT"),
    dataDirectory,
    database: database(read("DATABASE_URL"), dataDirectory),
    allowUnsafeDatabase: read("ALLOW_UNSAFE_DATABASE"),
    verifyAuth: read("VERIFY_AUTH"),
    redis: { timeout: read("REDIS_TIMEOUT"), policy: read("REDIS_POLICY") },
    analytics: {
      enabled: read("ANALYTICS"),
      retention: { minute: read("RETENTION_MINUTES"), hour: read("RETENTION_HOURS"), day: read("RETENTION_DAYS") },
      spoolBytesMax: read("SPOOL_BYTES"),
    },
    staleMax: read("STALE_MAX"),
    drain: read("DRAIN"),
    publicUrl: read("PUBLIC_URL"),
    trustedProxies: read("TRUSTED_PROXIES"),
    metrics: read("METRICS"),
    logLevel: read("LOG_LEVEL"),
    directoryBytesMax: read("DIRECTORY_BYTES"),
    counterBytesMax: read("COUNTER_BYTES"),
    lookupsPerSecond: read("LOOKUPS_PER_SECOND"),
    perWorkspace: {
      keys: read("KEYS_PER_WORKSPACE"),
      namespaces: read("NAMESPACES_PER_WORKSPACE"),
      idempotencyRecords: read("IDEMPOTENCY_RECORDS_PER_WORKSPACE"),
    },
    headersTimeout: read("HEADERS_TIMEOUT"),
    requestTimeout: read("REQUEST_TIMEOUT"),
    connectionsMax: read("CONNECTIONS_MAX"),
    bodyBytesMax: read("BODY_BYTES"),
    bodiesBytesMax: read("BODIES_BYTES"),
  };
}

function database(url: string | undefined, dataDirectory: string): Config["database"] {
  if (url === undefined) return { kind: "sqlite", file: join(dataDirectory, "latchkey.db") };
  if (/^postgres(ql)?:\/\//.test(url)) return { kind: "postgres" };
  if (url.startsWith("sqlite:") && url.length > "sqlite:".length) {
    return { kind: "sqlite", file: resolve(url.slice("sqlite:".length)) };
  }
  return bad("LATCHKEY_DATABASE_URL", url, "give sqlite:<file> or postgres://user:password@host/database");
}

function wholeNumber(
  text: string | undefined,
  name: string,
  standard: number,
  minimum: number,
  maximum: number,
): number {
  if (text === undefined) return standard;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= minimum && value <= maximum)) bad(name, text, `give a whole number from ${minimum} to ${maximum}`);
  return value;
}

const DAY = 86_400_000;
const DURATION_UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY } as const;

function duration(text: string | undefined, name: string, standard: number, minimum: number, maximum: number): number {
  return withUnit(
    text,
    name,
    standard,
    minimum,
    maximum,
    DURATION_UNITS,
    "a duration such as 250ms, 30s, 10m, 2h or 7d",
  );
}

const BYTE_UNITS = { "": 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 } as const;

function bytes(text: string | undefined, name: string, standard: number, minimum: number, maximum: number): number {
  return withUnit(text, name, standard, minimum, maximum, BYTE_UNITS, "a size such as 64m or 1g");
}

function withUnit(
  text: string | undefined,
  name: string,
  standard: number,
  minimum: number,
  maximum: number,
  units: Readonly<Record<string, number>>,
  remedy: string,
): number {
  if (text === undefined) return standard;
  const [, amount, unit] = /^(\d+)\s*([a-z]*)$/i.exec(text) ?? [];
  const value = Number(amount) * (units[unit?.toLowerCase() ?? "?"] ?? Number.NaN);
  if (!(value >= minimum && value <= maximum)) {
    const shown = (bound: number) => {
      const [largest, size] = Object.entries(units).findLast(([, one]) => bound % one === 0)!;
      return `${bound / size}${largest}`;
    };
    bad(name, text, `give ${remedy}, from ${shown(minimum)} to ${shown(maximum)}`);
  }
  return value;
}

function oneOf<T extends string>(text: string | undefined, name: string, choices: readonly T[], standard: T): T {
  if (text === undefined) return standard;
  if ((choices as readonly string[]).includes(text)) return text as T;
  return bad(name, text, `give ${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`);
}

function publicUrl(text: string | undefined, name: string): string {
  if (text === undefined) return "";
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    bad(name, text, "give an address such as https://keys.example.com");
  }
  return text.replace(/\/+$/, "");
}

function metrics(text: string | undefined, name: string): Config["metrics"] {
  if (text === undefined || text === "on") return "on";
  if (text === "off") return "off";
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  if (!host || Number(port) > 65_535) return bad(name, text, "give on, off, or an address such as 127.0.0.1:9464");
  return { host: host.replace(/^\[|\]$/g, ""), port: Number(port) };
}

function cidrs(text: string | undefined, name: string): string[] {
  const list = (text ?? "").split(",").map((part) => part.trim());
  return list.filter((part) => {
    if (part === "") return false;
    if (!isCidr(part)) bad(name, part, "give addresses or CIDRs such as 10.0.0.0/8, separated by commas");
    return true;
  });
}

function bad(name: string, value: string, remedy: string): never {
  const secret = secretNames.includes(name.slice("LATCHKEY_".length));
  throw new ConfigurationError(name, secret ? undefined : value, remedy);
}
