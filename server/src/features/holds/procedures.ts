import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import { acceptHolds, countOpenHolds, findExpiredHolds, findHoldSubjects, type HoldSearch } from "./statements.ts";

const procedures = {
  reading: {
    countOpenHolds: (sql: Sql, of: { workspaceId: string; now: Instant }) => countOpenHolds(sql, of),
    findHoldSubjects: (sql: Sql, of: { ids: readonly string[] }) => findHoldSubjects(sql, of),
    findExpiredHolds: (sql: Sql, search: HoldSearch) => findExpiredHolds(sql, search),
  },
  writing: {
    acceptHolds: (sql: Sql, _: null) => acceptHolds(sql),
  },
};

const pools: PoolsOf<typeof procedures> = {
  // Verifications wait for these two, so no work that lasts may delay them, nor they those that spend credits.
  countOpenHolds: "metered",
  acceptHolds: "metered",
  findHoldSubjects: "lookup",
  findExpiredHolds: "maintenance",
};

/** The procedures of holds, besides those of the ledger. */
export const holdProcedures = { ...procedures, pools };
