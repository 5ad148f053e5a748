import { CHANGES_PER_READ, type Changes, type ChangesCursor } from "../../../../../engine/src/directory/changes.ts";
import type { Connection } from "../dialect.ts";

/** Reads `changes` in the order of their numbers, which is that of the commits: SQLite has one writer. */
export async function readSqliteChanges({ db }: Connection, cursor: ChangesCursor | undefined): Promise<Changes> {
  if (cursor === undefined) {
    const { last } = await db
      .selectFrom("changes")
      .select((query) => query.fn.max("sequence").as("last"))
      .executeTakeFirstOrThrow();
    return { cursor: String(last ?? 0), rows: [], hasMore: false, isLost: false };
  }
  const rows = await db
    .selectFrom("changes")
    .select(["sequence", "tags"])
    .where("sequence", ">", Number(cursor))
    .orderBy("sequence")
    .limit(CHANGES_PER_READ)
    .execute();
  return {
    cursor: String(rows.at(-1)?.sequence ?? cursor),
    rows: rows.map(({ sequence, tags }) => ({ sequence, tags: JSON.parse(tags) as string[] })),
    hasMore: rows.length === CHANGES_PER_READ,
    isLost: false,
  };
}
