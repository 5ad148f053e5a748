import type { Manner } from "../../store/sqlite/connection.ts";
import type { Store } from "../../store/store.ts";
import type { Retention } from "../levels.ts";
import type { Rollups } from "../rollups.ts";
import type { AnalyticsProcedures } from "./procedures.ts";

/** The module that a database thread is given. */
export const analyticsModule = new URL("./procedures.ts", import.meta.url).href;

/** A file of counts: the loss of power may take its last seconds, and nobody waits for what is written. */
export const analyticsManner: Manner = { durability: "normal", yields: true };

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
