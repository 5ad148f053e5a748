import type { Store } from "../../../platform/store/store.ts";
import type { Retention } from "../levels.ts";
import type { Rollups } from "../rollups.ts";
import type { AnalyticsProcedures } from "./procedures.ts";

/** The module that a SQLite thread loads its procedures from. */
export const analyticsModule = new URL("./procedures.ts", import.meta.url).href;

/** Opens rollups in a store of their own in SQLite or PostgreSQL, and creates their tables. */
export async function openSqlRollups(store: Store<AnalyticsProcedures>, retention: Retention): Promise<Rollups> {
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
    stats: (query) => store.read("stats", query),
    top: (query) => store.read("top", query),
    // An embedded database of analytics is a file of its own, which has one process and no leases.
    prune: (now, lease) => store.transact("prune", { now, retention, lease: store.isEmbedded ? undefined : lease }),
    close: () => store.close(),
  };
}
