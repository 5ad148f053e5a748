import type { Sql } from "../store.ts";

/** Tables whose rows are limited per workspace. */
export type CountedTable = "keys" | "ratelimit_namespaces" | "idempotency_records";

/** One step of a count of a workspace's rows. */
export interface CountStep {
  table: CountedTable;
  workspaceId: string;
  /** Counts rows after this id; ignored for a table that is counted in one step. */
  after: string;
  limit: number;
}

/** The most rows that one step of a longer count reads: about 5 ms. */
export const COUNT_STEP = 20_000;

/** Counts up to `limit` rows that are not deleted; the next step starts after `last`. */
export async function countRecords(
  { db }: Sql,
  { table, workspaceId, after, limit }: CountStep,
): Promise<{ count: number; last: string | null }> {
  if (table === "idempotency_records") {
    const { count } = await db
      .selectFrom((from) =>
        from
          .selectFrom("idempotency_records")
          .select("workspace_id")
          .where("workspace_id", "=", workspaceId)
          .limit(limit)
          .as("counted"),
      )
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    return { count, last: null };
  }
  const { count, last } = await db
    .selectFrom((from) =>
      from
        .selectFrom(table)
        .select("id")
        .where("workspace_id", "=", workspaceId)
        .where("deleted_at", "is", null)
        .where("id", ">", after)
        .orderBy("id")
        .limit(limit)
        .as("counted"),
    )
    .select(({ fn }) => [fn.countAll<number>().as("count"), fn.max("id").as("last")])
    .executeTakeFirstOrThrow();
  return { count, last };
}
