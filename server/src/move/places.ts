import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { DATABASE } from "../backup/manifest.ts";
import { isOperatorError, OperatorError } from "../log/operator-error.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import { pendingSteps, requireSupported } from "../platform/store/migrate.ts";
import type { CopyDatabase } from "../platform/store/move/database.ts";
import { markMoving, unmarkMoving } from "../platform/store/move/moving.ts";
import { openSqliteCopy } from "../platform/store/move/sqlite.ts";
import { lockPath } from "../platform/store/sqlite/claim.ts";
import { openAnalyticsStore } from "../service/analytics.ts";
import { embeddedUnusable, openStore } from "../service/app-store.ts";

/** A store that is moved from or to: one PostgreSQL, or two files of SQLite. */
export interface Place {
  readonly config: Config;
  readonly secrets: Secrets;
  /** The store as an operator knows it, without a password. */
  readonly name: string;
  readonly databases: readonly CopyDatabase[];
  close(): Promise<void>;
}

/** The settings of a node that serves from `to`: `postgres://…`, or `sqlite:` and a folder. */
export function settingsOf(to: string, config: Config, secrets: Secrets): { config: Config; secrets: Secrets } {
  if (/^postgres(ql)?:\/\//.test(to) && URL.canParse(to)) {
    return { config: { ...config, database: { kind: "postgres" } }, secrets: { ...secrets, databaseUrl: to } };
  }
  const [, folder] = /^sqlite:(.+)$/s.exec(to) ?? [];
  if (folder === undefined)
    throw new OperatorError("--to: give postgres://user:password@host/database or sqlite:FOLDER.");
  const dataDirectory = resolve(folder);
  return {
    config: { ...config, dataDirectory, database: { kind: "sqlite", file: join(dataDirectory, DATABASE) } },
    secrets: { ...secrets, databaseUrl: undefined },
  };
}

export function nameOf({ database }: Config, { databaseUrl }: Secrets): string {
  if (database.kind === "sqlite") return `sqlite:${database.file}`;
  const { hostname, port, pathname, searchParams } = new URL(databaseUrl!);
  const host = hostname || searchParams.get("host") || "localhost";
  return `postgres://${host}:${port || searchParams.get("port") || "5432"}${pathname}`;
}

/** Opens the store that a service serves from. */
export async function openSource(config: Config, secrets: Secrets, clock: Clock): Promise<Place> {
  if (config.database.kind === "sqlite" && !existsSync(config.database.file)) {
    throw new OperatorError(
      `There is no database at ${config.database.file}. Give the service's data folder with --data-dir, or its database ` +
        "with --database-url.",
    );
  }
  await withStoreOf(config, secrets, clock, async (store) => {
    const schema = await store.read("schemaState", null);
    requireSupported(schema);
    if (pendingSteps(schema).length > 0) {
      throw new OperatorError(
        "The database to move needs a migration of this version: start this version's service once.",
      );
    }
    if (!(await store.read("findDefaultWorkspace", null))) {
      throw new OperatorError("The database to move is not set up yet, so there is nothing to move.");
    }
  });
  return openPlace(config, secrets, [join(config.dataDirectory, "analytics.db")].filter(existsSync));
}

/**
 * Opens the store to copy to, and creates what is missing in it. A new one is an unfinished copy of `source` at every
 * moment, so no service starts on it if this process is killed.
 */
export async function openTarget(config: Config, secrets: Secrets, clock: Clock, source: string): Promise<Place> {
  const { database, dataDirectory } = config;
  if (database.kind === "sqlite") markMoving(dataDirectory, database.file, source);
  await withStoreOf(config, secrets, clock, (store) => store.transact("prepareCopy", { source, now: clock.now() }));
  if (database.kind === "sqlite") unmarkMoving(dataDirectory);
  const analytics = await openAnalyticsStore(config, secrets, clock);
  try {
    await analytics.transact("migrate", null);
  } finally {
    await analytics.close();
  }
  return openPlace(config, secrets, [join(config.dataDirectory, "analytics.db")]);
}

async function openPlace(config: Config, secrets: Secrets, analyticsFiles: readonly string[]): Promise<Place> {
  const name = nameOf(config, secrets);
  const opened = new AsyncDisposableStack();
  const inUse = () =>
    new OperatorError(`${name} is in use by another \`latchkey migrate-store\`. Wait for its end, or end it.`);
  try {
    const databases: CopyDatabase[] = [];
    if (config.database.kind === "postgres") {
      const { openPostgresCopy } = await import("../platform/store/move/postgres.ts");
      databases.push(await openPostgresCopy(secrets.databaseUrl!));
    } else {
      const { file } = config.database;
      const release = lockPath(join(dirname(file), "move"));
      if (!release) throw inUse();
      opened.defer(release);
      databases.push(...[file, ...analyticsFiles].map(openSqliteCopy));
    }
    for (const database of databases) opened.defer(() => database.close());
    for (const database of databases) if (!(await database.lock())) throw inUse();
    return { config, secrets, name, databases, close: () => opened.disposeAsync() };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

async function withStoreOf<T>(
  config: Config,
  secrets: Secrets,
  clock: Clock,
  work: (store: Awaited<ReturnType<typeof openStore>>) => Promise<T>,
): Promise<T> {
  try {
    const store = await openStore(config, secrets, { clock });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  } catch (error) {
    // A rejection by the database: for example, the role may not create tables.
    const { code, name } = error as { code?: unknown; name?: string };
    const isRejection = name === "UnsuitableDatabase" || (typeof code === "string" && !isOperatorError(error));
    if (!(error instanceof StoreUnavailable) && !isRejection) throw error;
    if (config.database.kind === "sqlite") throw embeddedUnusable(config, error as Error);
    throw new OperatorError(`${nameOf(config, secrets)}: ${(error as Error).message}`, { cause: error });
  }
}
