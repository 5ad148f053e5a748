import { CHANGES_PER_READ, type Changes, type ChangesCursor } from "../../../../../engine/src/directory/changes.ts";
import type { Connection } from "../dialect.ts";

/** Reads `changes` in the order of their numbers, which is that of the commits: SQLite has one writer. */
export async function readSqliteChanges({ db }: Connection, cursor: ChangesCursor | undefined): Promise<Changes> {
  if (cursor === undefined) {
    const { last } = await db
      .selectFrom("changes")
      .select((query) => query.fn.max("sequence").as("last"))
      .executeTakeFirstOrThrow();
    return { cursor: String(last ?? 0), rows: [], hasMore: false, isLost: false, server: "", final: last ?? 0 };
  }
  const rows = await db
    .selectFrom("changes")
    .select(["sequence", "tags", "workspace_id"])
    .where("sequence", ">", Number(cursor))
    .orderBy("sequence")
    .limit(CHANGES_PER_READ)
    .execute();
  const final = rows.at(-1)?.sequence ?? Number(cursor);
  return {
    cursor: String(final),
    rows: rows.map(({ sequence, tags, workspace_id }) => ({
      sequence,
      tags: JSON.parse(tags) as string[],
      workspaceId: workspace_id,
      nonce: "",
    })),
    hasMore: rows.length === CHANGES_PER_READ,
    isLost: false,
    server: "",
    final,
  };
}
