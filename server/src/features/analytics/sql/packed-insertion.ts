import { CompiledQuery } from "kysely";
import type { Sql } from "../../../platform/store/store.ts";
import type { MinuteCount } from "../batch.ts";

/** Rows per statement: some tenths of a millisecond of work, so that other threads of the core do not wait long. */
const ROWS_PER_STATEMENT = 100;

/** A column and where its values are: a member of the counts, or text of SQL. */
export type InsertedColumn = readonly [name: string, from: keyof MinuteCount | { readonly sql: string }];

/**
 * Inserts counts on the embedded database. To bind a value takes a third of a microsecond, a third of what an insert of a short row
 * takes. So what all rows of a statement have in common is bound once.
 */
export async function insertPacked(
  sql: Sql,
  table: string,
  columns: readonly InsertedColumn[],
  counts: readonly MinuteCount[],
  tail: string,
): Promise<void> {
  for (let i = 0; i < counts.length; i += ROWS_PER_STATEMENT) {
    const some = counts.slice(i, i + ROWS_PER_STATEMENT);
    const [first] = some;
    if (first !== undefined) await sql.db.executeQuery(insertion(table, columns, first, some, tail));
  }
}

function insertion(
  table: string,
  columns: readonly InsertedColumn[],
  first: MinuteCount,
  counts: readonly MinuteCount[],
  tail: string,
): CompiledQuery {
  const common: (keyof MinuteCount)[] = [];
  const own: (keyof MinuteCount)[] = [];
  const selected = columns.map(([, from]) => {
    if (typeof from === "object") return from.sql;
    // There is always one of these, so that there is a list of rows.
    if (from !== "subject" && counts.every((count) => count[from] === first[from])) {
      return `common.c${common.push(from)}`;
    }
    return `each.column${own.push(from)}`;
  });
  const parameters: (string | number)[] = common.map((member) => first[member]);
  for (const count of counts) for (const member of own) parameters.push(count[member]);
  const ofAll = common.length === 0 ? "" : `(select ${common.map((_, i) => `? as c${i + 1}`).join(", ")}) as common, `;
  const row = `(${own.map(() => "?").join(", ")})`;
  return CompiledQuery.raw(
    `insert into ${table} (${columns.map(([name]) => name).join(", ")})
     select ${selected.join(", ")} from ${ofAll}(values ${counts.map(() => row).join(", ")}) as each where true ${tail}`,
    parameters,
  );
}
