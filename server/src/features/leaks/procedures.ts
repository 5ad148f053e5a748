import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { Sql } from "../../platform/store/store.ts";
import { findLeakedHashes, type LeakReport, recordLeaks } from "./statements.ts";

/** The procedures of reports of leaked keys. */
export function leakProcedures({ random }: { random: Random }) {
  return {
    reading: {
      leakedHashes: (sql: Sql, hashes: readonly string[]) => findLeakedHashes(sql, hashes),
    },
    writing: {
      recordLeaks: (sql: Sql, leaks: { reports: readonly LeakReport[]; now: Instant }) =>
        recordLeaks(sql, leaks, random),
    },
  };
}
