import type { Sql } from "../../../platform/store/store.ts";

/** Rows of one statement elsewhere: it is a round trip, and its parameters take a millisecond of the event loop at most. */
const ROWS_PER_ROUND_TRIP = 1_000;

/** The rows of one statement: `embedded` of them where it keeps a core of this machine busy. */
export function rowsPerStatement({ dialect }: Sql, embedded: number): number {
  return dialect.isEmbedded ? embedded : ROWS_PER_ROUND_TRIP;
}
