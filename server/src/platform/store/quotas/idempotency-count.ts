import type { Sql } from "../store.ts";

/** Counts up to `limit` stored calls of a workspace. */
export async function countIdempotencyRecords(
  { db }: Sql,
  { workspaceId, limit }: { workspaceId: string; limit: number },
): Promise<number> {
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
  return Number(count);
}
