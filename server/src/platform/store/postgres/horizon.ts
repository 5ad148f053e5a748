import { sql as raw } from "kysely";
import type { Connection } from "../dialect.ts";
import { onlyRow } from "../only-row.ts";

/** The upper 16 bits of the lock keys that announce rows of a table. The lower bits are a number. */
const lockClasses = { changes: 0x4c4b, events: 0x4c4c } as const;

/**
 * The highest number up to which every row of the table is committed or rolled back, given the last number that was drawn
 * before: decisions/012. A separate statement, between that which read `drawn` and that which reads the rows.
 */
export async function readHorizon({ db }: Connection, table: keyof typeof lockClasses, drawn: number): Promise<number> {
  const first = lockClasses[table] * 0x1_0000;
  const held = await raw<{ bound: number | null }>`
    select min(((classid::bigint & 65535) << 32) | objid::bigint) as bound
    from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
      and classid::bigint between ${first}::bigint and ${first + 0xffff}::bigint
      and database = (select oid from pg_database where datname = current_database())`.execute(db);
  return Math.min(drawn, onlyRow(held).bound ?? drawn);
}

/** The number up to which every event is committed or rolled back. */
export async function readEventHorizon(connection: Connection): Promise<number> {
  const last = await raw<{ drawn: number }>`
    select case when is_called then last_value else last_value - 1 end as drawn from events_number_seq`.execute(
    connection.db,
  );
  return readHorizon(connection, "events", Number(onlyRow(last).drawn));
}
