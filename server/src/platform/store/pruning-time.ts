import { sql as raw } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { onlyRow } from "./only-row.ts";
import type { Sql } from "./store.ts";

/** The time by which rows become too old. A node whose clock is ahead deletes nothing that others need. */
export async function pruningTime({ db, dialect }: Sql, now: Instant): Promise<number> {
  return Number(onlyRow(await raw<{ time: number }>`select ${dialect.time.pruning(now)} as time`.execute(db)).time);
}
