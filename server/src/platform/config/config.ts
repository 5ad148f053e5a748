import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { isCidr } from "../../../../engine/src/rules/address.ts";
import { type Quota, quotaNames, quotas } from "../store/quotas/quotas.ts";
import { ConfigurationError, type SettingTexts } from "./env.ts";
import {
  bytes,
  choice,
  duration,
  host,
  path,
  readSettings,
  type Setting,
  setting,
  toggle,
  type ValuesOf,
  wholeNumber,
} from "./setting-kinds.ts";

const CONTACTS_MAX = 5;
const WORKERS_MAX = 64;
/** Stands for `auto` until the other settings are known. */
const AUTOMATIC = 0;
/** Memory for cached keys that each thread should have, in bytes. */
const CACHE_BYTES_MIN = 32 * 1024 ** 2;

const dataDirectory = path("DATA_DIR", {
  default: "./data",
  help: "folder for the embedded databases, the vault key, the counters and waiting analytics",
});

/** The path of a file of certificates. */
function file(name: string, help: string): Setting<string | undefined> {
  return path(name, { unset: undefined, shownDefault: "none", help });
}

/** Every setting that is not a secret, at the place of its value in `Config`. */
export const configSettings = {
  host: host("HOST", { default: "127.0.0.1", help: "address to listen on" }),
  port: wholeNumber("PORT", {
    default: 3000,
    min: 0,
    max: 65_535,
    help: "port to listen on; 0: any free port",
  }),
  grpc: {
    port: setting(
      "GRPC_PORT",
      {
        unset: undefined,
        shownDefault: "none: there is no gRPC",
        range: "0 to 65535",
        help: "port for gRPC, on the same address, for the rate limit and authorization filters of gateways; 0: any free port",
      },
      (given, reject) => {
        const port = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN;
        return port <= 65_535 ? port : reject("give a whole number from 0 to 65535");
      },
    ),
    certificate: file(
      "GRPC_TLS_CERT",
      "file with the certificate for gRPC and its chain, as PEM; without it there is no TLS",
    ),
    key: file("GRPC_TLS_KEY", "file with the private key of this certificate"),
    clientAuthority: file(
      "GRPC_TLS_CLIENT_CA",
      "file with the authorities whose certificates clients of gRPC need; without it they need none",
    ),
    connectionAge: duration("GRPC_CONNECTION_AGE", {
      default: "5m",
      min: "10s",
      max: "1d",
      help: "how long a connection of gRPC stays open, so that gateways spread theirs over new nodes",
    }),
  },
  workers: workers("WORKERS", {
    default: 1,
    range: `1 to ${WORKERS_MAX}, or auto`,
    help: "threads that verify keys and count limits; auto: one less than there are cores",
  }),
  dataDirectory,
  database: database("DATABASE_URL", {
    unset: undefined,
    shownDefault: "a file in the data folder",
    isSecret: true,
    help: "sqlite:FILE or postgres://user:password@host/database",
  }),
  allowUnsafeDatabase: toggle("ALLOW_UNSAFE_DATABASE", {
    default: "no",
    words: ["yes", "no"],
    help: "yes: start on a PostgreSQL with fsync or synchronous_commit off, which can lose acknowledged commits in a crash",
  }),
  verifyAuth: choice("VERIFY_AUTH", {
    default: "optional",
    choices: ["optional", "required"],
    help: "whether keys.verifyKey needs a root key: optional or required",
  }),
  redis: {
    timeout: duration("REDIS_TIMEOUT", {
      default: "1s",
      min: "10ms",
      max: "60s",
      help: "time without any answer after which Redis counts as unavailable",
    }),
    policy: choice("REDIS_POLICY", {
      default: "local",
      choices: ["local", "closed", "open"],
      help: "while Redis is unavailable: local (each node counts alone), closed (503) or open (no limit applies)",
    }),
  },
  analytics: {
    enabled: toggle("ANALYTICS", {
      default: "on",
      words: ["on", "off"],
      help: "off: verifications and rate limit decisions are not counted",
    }),
    retention: {
      minute: duration("RETENTION_MINUTES", {
        default: "7d",
        min: "1h",
        max: "366d",
        help: "retention of analytics by the minute",
      }),
      hour: duration("RETENTION_HOURS", {
        default: "90d",
        min: "1d",
        max: "3660d",
        help: "retention of analytics by the hour",
      }),
      day: duration("RETENTION_DAYS", {
        default: "730d",
        min: "1d",
        max: "10980d",
        help: "retention of analytics by the day",
      }),
    },
    decisions: {
      life: duration("RETENTION_DECISIONS", {
        default: "30d",
        min: "1h",
        max: "366d",
        help: "retention of the log of decisions",
      }),
      rowsPerWorkspace: wholeNumber("DECISIONS_PER_WORKSPACE", {
        default: 200_000,
        min: 0,
        max: 100_000_000,
        help: "maximum number of decisions in the log of a workspace; 0: there is no log",
      }),
    },
    spoolBytesMax: bytes("SPOOL_BYTES", {
      default: "1g",
      min: "1m",
      max: "1024g",
      help: "disk space for analytics while their store is unavailable: bytes, or with k, m or g",
    }),
  },
  retention: {
    audit: duration("RETENTION_AUDIT", {
      default: "400d",
      min: "1d",
      max: "10980d",
      help: "retention of the audit log",
    }),
    events: duration("RETENTION_EVENTS", {
      // Deliveries of an event are retried for three days.
      default: "30d",
      min: "4d",
      max: "3660d",
      help: "retention of events",
    }),
    deleted: duration("RETENTION_DELETED", {
      default: "90d",
      min: "1d",
      max: "10980d",
      help: "retention of deleted keys, keys of deleted APIs, identities, namespaces and root keys",
    }),
    holds: duration("RETENTION_HOLDS", {
      default: "1h",
      min: "1m",
      max: "31d",
      help: "retention of settled and released holds",
    }),
    expiredHolds: duration("RETENTION_EXPIRED_HOLDS", {
      default: "1d",
      min: "1m",
      max: "31d",
      help: "retention of expired holds, which can still be settled",
    }),
  },
  backup: {
    every: duration("BACKUP_EVERY", {
      unset: undefined,
      shownDefault: "never",
      min: "1m",
      max: "366d",
      help: "time between two backups of the embedded database",
    }),
    keep: wholeNumber("BACKUP_KEEP", {
      default: 7,
      min: 1,
      max: 10_000,
      help: "how many of these backups stay",
    }),
    folder: path("BACKUP_FOLDER", {
      unset: undefined,
      shownDefault: "backups in the data folder",
      help: "folder for these backups",
    }),
  },
  githubKeys: setting(
    "GITHUB_KEYS",
    {
      unset: undefined,
      shownDefault: "none: reports are rejected",
      range: "an https:// address or a JSON file",
      help: "public keys of GitHub's secret scanning, which sign its reports of leaked keys: an https:// address or a JSON file",
    },
    (given, reject) => {
      if (given !== "" && !/^[a-z][a-z0-9+.-]+:\/\//i.test(given)) return resolve(given);
      return /^https:/i.test(given) && URL.canParse(given)
        ? given
        : reject("give https://api.github.com/meta/public_keys/secret_scanning, or a file with its answer");
    },
  ),
  upstreamAllowPrivate: toggle("UPSTREAM_ALLOW_PRIVATE", {
    default: "no",
    words: ["yes", "no"],
    help: "yes: upstream verifiers of APIs may have private addresses, and http://",
  }),
  staleMax: duration("STALE_MAX", {
    default: "10m",
    min: "1s",
    max: "12h",
    help: "how long a node serves cached records while the database is unavailable",
  }),
  drain: duration("DRAIN", {
    unset: undefined,
    shownDefault: "5s; on a terminal 0",
    min: "0",
    max: "10m",
    help: "how long a stopping node still serves and reports not ready, so that load balancers leave it out",
  }),
  publicUrl: publicUrl("PUBLIC_URL", {
    unset: "",
    shownDefault: "none",
    help: "public address of the service; makes the links in errors and pages absolute",
  }),
  securityContact: contacts("SECURITY_CONTACT", {
    unset: [],
    shownDefault: "none: there is no such file",
    range: "up to 5 of mailto:, https:// and tel:",
    help: "whom to tell about a vulnerability of this service, for /.well-known/security.txt, separated by commas",
  }),
  dashboard: toggle("DASHBOARD", {
    default: "on",
    words: ["on", "off"],
    help: "off: the dashboard and its sessions do not exist",
  }),
  webhooks: {
    allowPrivate: toggle("WEBHOOK_ALLOW_PRIVATE", {
      default: "no",
      words: ["yes", "no"],
      help: "yes: webhooks may go to private addresses, and over http://",
    }),
  },
  oauth: {
    tokens: toggle("OAUTH_TOKENS", {
      default: "off",
      words: ["on", "off"],
      help: "on: keys of APIs with resources get access tokens at /oauth/token; needs LATCHKEY_PUBLIC_URL",
    }),
    tokenLife: duration("OAUTH_TOKEN_LIFE", {
      default: "5m",
      min: "10s",
      max: "5m",
      help: "how long access tokens live; nothing ends one earlier",
    }),
    algorithm: choice("OAUTH_ALGORITHM", {
      default: "RS256",
      choices: ["RS256", "ES256"],
      help: "algorithm of new keys that sign access tokens: RS256 or ES256",
    }),
    rotation: duration("OAUTH_ROTATION", {
      default: "30d",
      min: "2h",
      max: "366d",
      help: "how long a key signs access tokens before the next one does",
    }),
  },
  trustedProxies: cidrs("TRUSTED_PROXIES", {
    unset: [],
    shownDefault: "none",
    help: "addresses or CIDRs of trusted proxies, separated by commas; the service reads their X-Forwarded-For",
  }),
  metrics: listener("METRICS", {
    default: "on",
    help: "where /metrics is served: on, off, or host:port for a separate listener",
  }),
  logLevel: choice("LOG_LEVEL", {
    default: "info",
    choices: ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
    help: "trace, debug, info, warn, error, fatal or silent",
  }),
  directoryBytesMax: bytes("DIRECTORY_BYTES", {
    default: "256m",
    min: "1m",
    max: "64g",
    help: "memory for cached keys: bytes, or with k, m or g",
  }),
  counterBytesMax: bytes("COUNTER_BYTES", {
    default: "64m",
    min: "1m",
    max: "64g",
    help: "memory for the counters of limits: bytes, or with k, m or g",
  }),
  lookupsPerSecond: wholeNumber("LOOKUPS_PER_SECOND", {
    default: 5_000,
    min: 1,
    max: 1_000_000,
    help: "budget for look-ups that find no key, per second",
  }),
  perWorkspace: Object.fromEntries(quotaNames.map((quota) => [quota, quotaSetting(quota)])) as Record<
    Quota,
    Setting<number>
  >,
  bytesPerWorkspace: bytes("BYTES_PER_WORKSPACE", {
    default: "32g",
    min: "1m",
    max: "1024g",
    help: "maximum size of what the changes of a workspace store: bytes, or with k, m or g",
  }),
  idempotencyRecordsMax: wholeNumber("IDEMPOTENCY_RECORDS_PER_WORKSPACE", {
    default: 100_000,
    min: 1,
    max: 10_000_000,
    help: "maximum number of stored calls with an Idempotency-Key in a workspace",
  }),
  holds: {
    perKey: wholeNumber("HOLDS_PER_KEY", {
      default: 10_000,
      min: 1,
      max: 10_000_000,
      help: "maximum number of open holds of a key",
    }),
    perWorkspace: wholeNumber("HOLDS_PER_WORKSPACE", {
      default: 100_000,
      min: 1,
      max: 10_000_000,
      help: "maximum number of open holds of a workspace",
    }),
  },
  derivedKeys: {
    perKey: wholeNumber("DERIVED_KEYS_PER_KEY", {
      default: 1_000,
      min: 1,
      max: 100_000,
      help: "maximum number of living keys that were derived from a key, on all levels",
    }),
    perMinute: wholeNumber("DERIVED_KEYS_PER_MINUTE", {
      default: 600,
      min: 1,
      max: 100_000,
      help: "maximum number of keys that are derived per minute from the keys of one owner",
    }),
  },
  portal: {
    keysPerDay: wholeNumber("PORTAL_KEYS_PER_DAY", {
      default: 50,
      min: 1,
      max: 100_000,
      help: "maximum number of keys that an owner makes or replaces in the portal, per day",
    }),
    endedKeys: wholeNumber("PORTAL_ENDED_KEYS", {
      default: 20,
      min: 0,
      max: 1_000,
      help: "maximum number of expired keys of an owner of the portal; further ones are deleted, the oldest first",
    }),
  },
  headersTimeout: duration("HEADERS_TIMEOUT", {
    default: "20s",
    min: "100ms",
    max: "1h",
    help: "time in which the headers of a request must arrive",
  }),
  requestTimeout: duration("REQUEST_TIMEOUT", {
    default: "60s",
    min: "100ms",
    max: "1h",
    help: "time in which a whole request must arrive",
  }),
  connectionsMax: wholeNumber("CONNECTIONS_MAX", {
    default: 10_000,
    min: 1,
    max: 1_000_000,
    help: "maximum number of open connections; further ones get 503",
  }),
  fastLane: toggle("FAST_LANE", {
    default: "on",
    words: ["on", "off"],
    help: "off: node:http reads every request, which costs more CPU",
  }),
  bodyBytesMax: bytes("BODY_BYTES", {
    default: "10m",
    min: "64k",
    max: "64m",
    help: "maximum size of a request body: bytes, or with k or m; metered operations accept 64k",
  }),
  bodiesBytesMax: bytes("BODIES_BYTES", {
    default: "256m",
    min: "16m",
    max: "64g",
    help: "memory for all incoming request bodies, and as much again for outgoing responses: bytes, or with k, m or g",
  }),
};

/** How the service runs: sizes in bytes, times in milliseconds. Holds no secret, so it can be logged. */
export type Config = ValuesOf<typeof configSettings>;

/** @throws {ConfigurationError} on a value that cannot be used. */
export function readConfig(texts: SettingTexts): Config {
  const config = readSettings(configSettings, texts);
  if (config.workers === AUTOMATIC) config.workers = suitableWorkers(config);
  if (config.workers > 1 && !config.fastLane) {
    const remedy = "threads beside the first one have the fast lane only: give 1, or LATCHKEY_FAST_LANE=on";
    throw new ConfigurationError("LATCHKEY_WORKERS", String(config.workers), remedy);
  }
  if (config.oauth.tokens) requireIssuer(config.publicUrl);
  const { port, certificate, key, clientAuthority } = config.grpc;
  const remedy = (missing: string) => `set ${missing} too`;
  if (certificate !== undefined && key === undefined) {
    throw new ConfigurationError("LATCHKEY_GRPC_TLS_CERT", certificate, remedy("LATCHKEY_GRPC_TLS_KEY"));
  }
  for (const [name, value] of [["KEY", key] as const, ["CLIENT_CA", clientAuthority] as const]) {
    if (value === undefined || certificate !== undefined) continue;
    throw new ConfigurationError(`LATCHKEY_GRPC_TLS_${name}`, value, remedy("LATCHKEY_GRPC_TLS_CERT"));
  }
  if (certificate !== undefined && port === undefined) {
    throw new ConfigurationError("LATCHKEY_GRPC_TLS_CERT", certificate, remedy("LATCHKEY_GRPC_PORT"));
  }
  return config;
}

/** Tokens name their issuer by the public address, which RFC 8414, section 2, asks to be encrypted. */
function requireIssuer(publicUrl: string): void {
  const { protocol, hostname, search } = publicUrl === "" ? NO_URL : new URL(publicUrl);
  const isLocal = hostname === "localhost" || hostname === "127.0.0.1" || hostname === "[::1]";
  if ((protocol === "https:" || isLocal) && search === "") return;
  const remedy = "access tokens name their issuer: set LATCHKEY_PUBLIC_URL to an https:// address without a query";
  throw new ConfigurationError("LATCHKEY_OAUTH_TOKENS", "on", remedy);
}

const NO_URL = { protocol: "", hostname: "", search: "" };

/** As many threads as leave a core for the database and have enough memory for cached keys. */
function suitableWorkers({ fastLane, directoryBytesMax }: Config): number {
  if (!fastLane) return 1;
  const fitting = Math.floor(directoryBytesMax / CACHE_BYTES_MIN);
  return Math.max(1, Math.min(availableParallelism() - 1, fitting, WORKERS_MAX));
}

export type DatabaseConfig = { kind: "sqlite"; file: string } | { kind: "postgres" };

function quotaSetting(quota: Quota): Setting<number> {
  const { setting: name, things, max } = quotas[quota];
  return wholeNumber(`${name}_PER_WORKSPACE`, {
    default: max.default,
    min: 1,
    max: max.highest,
    help: `maximum number of ${things} in a workspace`,
  });
}

type Options<D> = Parameters<typeof setting<unknown, D>>[1];

/** Which database. The address of PostgreSQL holds a password and is in `Secrets`. */
function database(name: string, options: Options<undefined>): Setting<DatabaseConfig> {
  const url = setting(name, options, (given, reject): DatabaseConfig => {
    if (/^postgres(ql)?:\/\//.test(given)) return { kind: "postgres" };
    const [, file] = /^sqlite:(.+)$/s.exec(given) ?? [];
    if (file !== undefined) return { kind: "sqlite", file: resolve(file) };
    return reject("give sqlite:<file> or postgres://user:password@host/database");
  });
  const embedded = (texts: SettingTexts): DatabaseConfig => ({
    kind: "sqlite",
    file: join(dataDirectory.read(texts), "latchkey.db"),
  });
  return { ...url, read: (texts) => url.read(texts) ?? embedded(texts) };
}

function workers(name: string, options: Options<never>): Setting<number> {
  return setting(name, options, (given, reject) => {
    if (given === "auto") return AUTOMATIC;
    const count = /^\d+$/.test(given) ? Number(given) : Number.NaN;
    return count >= 1 && count <= WORKERS_MAX ? count : reject(`give a whole number from 1 to ${WORKERS_MAX}, or auto`);
  });
}

/** Without a slash at its end. */
function publicUrl(name: string, options: Options<string>): Setting<string> {
  return setting(name, options, (given, reject) =>
    URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)
      ? given.replace(/\/+$/, "")
      : reject("give an address such as https://keys.example.com"),
  );
}

function cidrs(name: string, options: Options<string[]>): Setting<string[]> {
  return setting(name, options, (given, reject) => {
    const list = given.split(",").map((part) => part.trim());
    const addresses = list.filter((part) => part !== "");
    for (const address of addresses) {
      if (!isCidr(address)) reject("give addresses or CIDRs such as 10.0.0.0/8, separated by commas", address);
    }
    return addresses;
  });
}

/** Addresses as RFC 9116 has them in `Contact`, section 2.5.3. */
function contacts(name: string, options: Options<string[]>): Setting<string[]> {
  return setting(name, options, (given, reject) => {
    const list = given.split(",").map((part) => part.trim());
    for (const contact of list) {
      const isContact =
        /^(?:mailto:[^\s@]+@[^\s@]+|tel:\+?[\d().-]+|https:\/\/[^\s/]+\S*)$/.test(contact) &&
        /^[\x21-\x7e]{1,500}$/.test(contact) &&
        URL.canParse(contact);
      if (!isContact)
        reject("give mailto:security@example.com, https://example.com/security or tel:+49-30-1234567", contact);
    }
    return list.length <= CONTACTS_MAX ? list : reject(`give at most ${CONTACTS_MAX}`);
  });
}

/** The listener of everything else, none, or a separate one. */
function listener(name: string, options: Options<never>): Setting<"on" | "off" | { host: string; port: number }> {
  return setting(name, options, (given, reject) => {
    if (given === "on" || given === "off") return given;
    const [, address, port] = /^(.+):(\d{1,5})$/.exec(given) ?? [];
    const host = address?.replace(/^\[|\]$/g, "");
    if (!host || Number(port) > 65_535) return reject("give on, off, or an address such as 127.0.0.1:9464");
    return { host, port: Number(port) };
  });
}
