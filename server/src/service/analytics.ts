import { join } from "node:path";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { newId, type Random } from "../../../engine/src/random/random.ts";
import { Analytics } from "../features/analytics/analytics.ts";
import { rowsPerMinute } from "../features/analytics/decision-log.ts";
import type { KeyUse } from "../features/analytics/recorder.ts";
import type { Rollups } from "../features/analytics/rollups.ts";
import type { AnalyticsProcedures } from "../features/analytics/sql/procedures.ts";
import { analyticsModule, longReads, openSqlRollups } from "../features/analytics/sql/store.ts";
import type { Events } from "../log/events.ts";
import { OperatorError } from "../log/operator-error.ts";
import type { Config } from "../platform/config/config.ts";
import type { Secrets } from "../platform/config/secrets.ts";
import { openSqliteStore, type StartThread } from "../platform/store/sqlite/store.ts";
import type { Store, StoreObserver } from "../platform/store/store.ts";

/** Memory for counts while their store is unavailable. Further counts are on disk only. */
const MEMORY_BYTES = 16 * 1024 * 1024;

/**
 * Few connections, because PostgreSQL's are scarce: one for the writer, one for a ranking, one for long statistics, and one
 * for the other readers, whose queries are short.
 */
const CONNECTIONS_MAX = 4;

export type AnalyticsStore = Store<AnalyticsProcedures>;

/** Opens the default store of analytics: a separate SQLite file, or tables in the PostgreSQL database. */
export async function openAnalyticsStore(
  config: Config,
  secrets: Secrets,
  clock: Clock,
  observe?: StoreObserver,
  startThread?: StartThread,
): Promise<AnalyticsStore> {
  if (config.database.kind === "postgres") {
    const { openPostgresStore } = await import("../platform/store/postgres/store.ts");
    const { openRollupProcedures } = await import("../features/analytics/sql/procedures.ts");
    // The main store has already checked that PostgreSQL is durable.
    const options = { url: secrets.databaseUrl!, clock, observe, connectionsMax: CONNECTIONS_MAX, allowUnsafe: true };
    return openPostgresStore(options, openRollupProcedures());
  }
  const file = join(config.dataDirectory, "analytics.db");
  return openSqliteStore(
    file,
    { module: analyticsModule, options: null },
    { clock, observe, durability: "normal", writePriority: "low", readsRarely: true, longReads, startThread },
  );
}

export interface AnalyticsDependencies {
  clock: Clock;
  random: Random;
  events: Events;
  /** Opens the SQL store. */
  openStore(): Promise<AnalyticsStore>;
  recordKeyUses(uses: readonly KeyUse[]): Promise<unknown>;
}

/** ClickHouse is configured and cannot be reached at the start. */
export class ClickHouseUnreachable extends OperatorError {
  constructor(cause: Error) {
    super(`ClickHouse at LATCHKEY_CLICKHOUSE_URL cannot be reached: ${String(cause.cause ?? cause.message)}`, {
      cause,
    });
    this.name = "ClickHouseUnreachable";
  }
}

async function openRollups(config: Config, secrets: Secrets, dependencies: AnalyticsDependencies): Promise<Rollups> {
  const { retention, decisions } = config.analytics;
  if (secrets.clickhouseUrl === undefined) return openSqlRollups(await dependencies.openStore(), retention, decisions);
  const { openClickHouse } = await import("../features/analytics/clickhouse/rollups.ts");
  return openClickHouse(secrets.clickhouseUrl, retention, decisions).catch((error: Error) => {
    throw error instanceof StoreUnavailable ? new ClickHouseUnreachable(error) : error;
  });
}

/** Opens analytics, with the batches that an earlier process did not deliver. */
export async function openAnalytics(
  config: Config,
  secrets: Secrets,
  dependencies: AnalyticsDependencies,
): Promise<Analytics> {
  const { clock, random, events } = dependencies;
  const { spoolBytesMax, decisions } = config.analytics;
  const rollups = await openRollups(config, secrets, dependencies);
  const analytics = new Analytics({
    clock,
    rollups,
    recorderId: newId(random, "rec"),
    loggedPerMinute: rowsPerMinute(decisions.rowsPerWorkspace / config.workers),
    folder: join(config.dataDirectory, "analytics"),
    bytesMax: { memory: Math.min(MEMORY_BYTES, spoolBytesMax), disk: spoolBytesMax },
    recordKeyUses: dependencies.recordKeyUses,
    onReachability: (reachable, cause) => (reachable ? events.analyticsBack() : events.analyticsOutage(cause)),
    onLoss: events.analyticsLost,
    onSpoolUnreadable: events.analyticsUnreadable,
    onFailedMerge: events.analyticsMergeFailed,
  });
  await analytics.start();
  return analytics;
}
