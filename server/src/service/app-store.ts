import { dirname } from "node:path";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { BloomFilter } from "../../../engine/src/crypto/bloom-filter.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { isOperatorError, OperatorError } from "../log/operator-error.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import { makeFolder, reasonOf, unusable } from "../platform/store/folder.ts";
import type { QuotaLimits } from "../platform/store/quotas/workspace-usage.ts";
import { openSqliteStore, type StartThread } from "../platform/store/sqlite/store.ts";
import type { Store, StoreObserver } from "../platform/store/store.ts";
import type { KeyRingSource } from "../platform/vault/key-ring.ts";
import { requireIntegrity } from "./integrity-check.ts";
import type { AppProcedures, ProcedureOptions } from "./procedures.ts";

/** The database of the service. An embedded one has a filter of the locations of all keys. */
export type AppStore = Store<AppProcedures> & { readonly keyFilter?: BloomFilter };

/** The filter takes this part of the directory's memory, in addition to it. */
const KEY_FILTER_SHARE = 16;

/** Opens the database that the configuration names. */
export async function openStore(
  config: Config,
  secrets: Secrets,
  { clock, seed, startThread }: { clock: Clock; seed?: number | undefined; startThread?: StartThread },
  observe?: StoreObserver,
): Promise<AppStore> {
  const { publicUrl } = config;
  const vault = keyRingSource(config, secrets);
  const procedures: ProcedureOptions = {
    seed,
    vault,
    publicUrl,
    allowPrivateWebhooks: config.webhooks.allowPrivate,
    allowPrivateUpstreams: config.upstreamAllowPrivate,
    portalEndedKeysMax: config.portal.endedKeys,
    derivedKeys: config.derivedKeys,
    limits: limitsOf(config),
  };
  if (config.database.kind === "postgres") {
    const options = { url: secrets.databaseUrl!, clock, observe, allowUnsafe: config.allowUnsafeDatabase };
    const { openPostgresStore } = await import("../platform/store/postgres/store.ts");
    const { openProcedures } = await import("./procedures.ts");
    try {
      return await openPostgresStore(options, openProcedures(procedures));
    } catch (error) {
      throw postgresUnusable(error);
    }
  }
  const { file } = config.database;
  const module = new URL("./procedures.ts", import.meta.url).href;
  // Only one process serves from an embedded database, so the filter misses no key that another process creates.
  const keyFilter = BloomFilter.ofBytes(config.directoryBytesMax / KEY_FILTER_SHARE);
  try {
    makeFolder(dirname(file));
    requireIntegrity(settingOf(config), file);
    const options = { ...procedures, keyFilter: keyFilter.state };
    const store = await openSqliteStore<AppProcedures>(file, { module, options }, { clock, observe, startThread });
    return Object.assign(store, { keyFilter });
  } catch (error) {
    throw unusable(settingOf(config), file, error);
  }
}

/** The error of an embedded database that cannot be used at the start. */
export function embeddedUnusable(config: Config, error: Error): OperatorError {
  const file = config.database.kind === "sqlite" ? config.database.file : "";
  return new OperatorError(`${settingOf(config)}=${file}: ${reasonOf(error) ?? error.message}`, { cause: error });
}

/** The setting that decides where the embedded database is. */
function settingOf({ database, dataDirectory }: Config): string {
  return database.kind === "sqlite" && dirname(database.file) === dataDirectory
    ? "LATCHKEY_DATA_DIR"
    : "LATCHKEY_DATABASE_URL";
}

/** `StoreUnavailable` if a later attempt can succeed. It cannot if the server rejects us or its name does not resolve. */
function postgresUnusable(error: unknown): unknown {
  if (isOperatorError(error)) return error;
  const cause = error instanceof StoreUnavailable ? error.cause : error;
  const { code, message } = cause as NodeJS.ErrnoException;
  if (error instanceof StoreUnavailable && code !== "ENOTFOUND" && code !== "EAI_AGAIN") return error;
  return new OperatorError(`LATCHKEY_DATABASE_URL: PostgreSQL cannot be used: ${message}`, { cause });
}

/** Where the master keys of the vault come from. */
export function keyRingSource(config: Config, { vaultKeys }: Secrets): KeyRingSource {
  if (vaultKeys.length > 0) return { kind: "given", keys: vaultKeys };
  return config.database.kind === "sqlite" ? { kind: "folder", folder: config.dataDirectory } : { kind: "none" };
}

/** What a workspace may have. */
export function limitsOf({ perWorkspace, bytesPerWorkspace, retention }: Config): QuotaLimits {
  const { audit, events } = retention;
  return { maxima: perWorkspace, bytesMax: bytesPerWorkspace, retention: { audit, events } };
}
