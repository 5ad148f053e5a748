import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import { findPlans } from "./statements/plans.ts";

const procedures = {
  reading: {
    plansByIds: (sql: Sql, ids: readonly string[]) => findPlans(sql, ids),
  },
  writing: {},
};

const pools: PoolsOf<typeof procedures> = { plansByIds: "lookup" };

/** The procedures of plans. */
export const planProcedures = { ...procedures, pools };
