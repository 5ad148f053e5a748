import type { Store } from "../../store/store.ts";
import type { Retention } from "../levels.ts";
import type { Rollups } from "../rollups.ts";
import type { AnalyticsProcedures } from "./procedures.ts";

/** The module that a database thread is given. */
export const analyticsModule = new URL("./procedures.ts", import.meta.url).href;

/** Rollups in SQLite or PostgreSQL, in a store of their own, whose tables are made here. */
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
    stats: (question) => store.read("stats", question),
    prune: (now) => store.transact("prune", { now, retention }),
    close: () => store.close(),
  };
}
