import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import { findPortalSessions } from "./statements.ts";

const procedures = {
  reading: {
    portalSessionsByHashes: (sql: Sql, { hashes, now }: { hashes: readonly string[]; now: Instant }) =>
      findPortalSessions(sql, hashes, now),
  },
  writing: {},
};
const pools: PoolsOf<typeof procedures> = { portalSessionsByHashes: "lookup" };

/** The procedures of sessions of the portal. */
export const portalProcedures = { ...procedures, pools };
