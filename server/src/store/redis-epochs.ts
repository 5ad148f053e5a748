import type { Sql } from "./store.ts";

/** What a node knows of the data in Redis. Times are of Redis' clock. */
export interface RedisEpoch {
  /** The name that these data have. */
  readonly epoch: string;
  /** When data before them were lost; 0 never. */
  readonly lostAt: number;
  /** The latest time that a reply told, at most a minute old. */
  readonly seenAt: number;
}

export async function findRedisEpoch(sql: Sql): Promise<RedisEpoch | null> {
  const row = await sql.db.selectFrom("redis_epochs").selectAll().where("id", "=", 1).executeTakeFirst();
  return row ? { epoch: row.epoch, lostAt: row.lost_at, seenAt: row.seen_at } : null;
}

export async function putRedisEpoch(sql: Sql, { epoch, lostAt, seenAt }: RedisEpoch): Promise<void> {
  const values = { epoch, lost_at: lostAt, seen_at: seenAt };
  await sql.db
    .insertInto("redis_epochs")
    .values({ id: 1, ...values })
    .onConflict((conflict) => conflict.column("id").doUpdateSet(values))
    .execute();
}
