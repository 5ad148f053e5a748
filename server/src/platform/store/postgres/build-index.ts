import { type RawBuilder, sql as raw } from "kysely";
import type { Connection } from "../dialect.ts";

/** Whether the index exists and is complete: the build of an index beside the service can be interrupted. */
export async function isIndexed({ db }: Connection, index: string): Promise<boolean> {
  const { rows } = await raw`
    select 1 from pg_index where indexrelid = to_regclass(${index}) and indisvalid`.execute(db);
  return rows.length > 0;
}

/**
 * Builds an index beside reads and writes, unless it is complete. `definition` is what follows its name. A build that was
 * interrupted starts again. Not in a transaction. Repeating it, or running it twice at once, does no harm.
 */
export async function buildIndex(sql: Connection, index: string, definition: RawBuilder<unknown>, isUnique = false) {
  if (await isIndexed(sql, index)) return;
  const { db } = sql;
  await raw`drop index concurrently if exists ${raw.ref(index)}`.execute(db);
  await raw`create ${raw.raw(isUnique ? "unique index" : "index")} concurrently if not exists ${raw.ref(index)}
    ${definition}`.execute(db);
}
