import type { Sql } from "../store.ts";

/** What is bounded per workspace. */
export type Counted = "keys" | "ratelimit_namespaces" | "idempotency_records";

/** Some of the records of a workspace, counted. */
export interface CountStep {
  table: Counted;
  workspaceId: string;
  /** Count what comes after the record with this id; a table that is counted in one step has none. */
  after: string;
  limit: number;
}

/** Records that one step counts at most where a step is part of a longer count: some 5 ms. */
export const COUNT_STEP = 20_000;

/** Counts up to `limit` living records; `last` is where to go on. */
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
