import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { Lease } from "../../platform/store/lease.ts";
import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import { type AuthFailures, recordAuthFailures } from "./statements/auth-failures.ts";
import { type RecordedLimit, recordExceeded } from "./statements/exceeded.ts";
import { type ExpiryStep, findExpiryStep, recordExpiries } from "./statements/expiry-sweep.ts";
import { findUnusedStep, recordUnused, type UnusedStep } from "./statements/unused-sweep.ts";

/** The procedures of events that no operation causes. */
export function eventProcedures({ random }: { random: Random }) {
  const procedures = {
    reading: {
      findExpiryStep: (sql: Sql, now: Instant) => findExpiryStep(sql, now),
      findUnusedStep: (sql: Sql, given: { now: Instant; before: UnusedStep | null }) => findUnusedStep(sql, given),
    },
    writing: {
      recordExceeded: (sql: Sql, exceeded: readonly RecordedLimit[]) => recordExceeded(sql, exceeded),
      recordAuthFailures: (sql: Sql, bursts: readonly AuthFailures[]) => recordAuthFailures(sql, bursts),
      recordExpiries: (sql: Sql, given: { step: ExpiryStep; lease: Lease; now: Instant }) =>
        recordExpiries(sql, { ...given, random }),
      recordUnused: (sql: Sql, given: { step: UnusedStep; lease: Lease; now: Instant }) =>
        recordUnused(sql, { ...given, random }),
    },
  };
  const pools: PoolsOf<typeof procedures> = {
    recordExceeded: "maintenance",
    recordAuthFailures: "maintenance",
    findExpiryStep: "maintenance",
    recordExpiries: "maintenance",
    findUnusedStep: "maintenance",
    recordUnused: "maintenance",
  };
  return { ...procedures, pools };
}
