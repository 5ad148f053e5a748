import type { Sql } from "./store.ts";

/** What a node knows about the data in Redis. Times are of Redis' clock. */
export interface RedisEpoch {
  /** Identifies the data: empty or restored data have another epoch. */
  readonly epoch: string;
  /** When earlier data were lost; 0: never. */
  readonly lostAt: number;
  /** The latest time of a reply, updated at least once a minute. */
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
