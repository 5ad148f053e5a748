import type { Store } from "../../../platform/store/store.ts";
import type { Retention } from "../levels.ts";
import { isLong, type LogBounds, type Rollups } from "../rollups.ts";
import type { AnalyticsProcedures } from "./procedures.ts";

/** The module that a SQLite thread loads its procedures from. */
export const analyticsModule = new URL("./procedures.ts", import.meta.url).href;

/** The reading procedures that may take seconds. Others do not wait for them. */
export const longReads = ["longStats", "top"] as const satisfies readonly (keyof AnalyticsProcedures["reading"])[];

/** Opens rollups in a store of their own in SQLite or PostgreSQL, and creates their tables. */
export async function openSqlRollups(
  store: Store<AnalyticsProcedures>,
  retention: Retention,
  log: LogBounds,
): Promise<Rollups> {
  try {
    await store.transact("migrate", null);
  } catch (error) {
    await store.close();
    throw error;
  }
  return {
    async write(batches) {
      await store.transact("write", batches);
    },
    merge: (now) => store.transact("merge", { now }),
    stats: (query) => store.read(isLong(query) ? "longStats" : "stats", query),
    counts: (query) => store.read("counts", query),
    top: (query) => store.read("top", query),
    decisions: (query) => store.read("decisions", query),
    // An embedded database of analytics is a file of its own, which has one process and no leases.
    prune: (now, lease) =>
      store.transact("prune", { now, retention, log, lease: store.isEmbedded ? undefined : lease }),
    close: () => store.close(),
  };
}
