import { sql as raw } from "kysely";
import { type Instant, instantAt, type Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { onlyRow } from "../../../platform/store/only-row.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** How long after their time holds may still be open: the sweep lets them expire within that. */
export const EXPIRY_DELAY_MAX: Milliseconds = 60_000;

/** The time by which holds expire: that of the database, which all nodes have in common. */
export async function commonTime({ db, dialect }: Sql, now: Instant): Promise<Instant> {
  if (dialect.isEmbedded) return now;
  const found = await raw<{ time: number }>`select ${dialect.time.common(now)} as time`.execute(db);
  return instantAt(Number(onlyRow(found).time));
}
