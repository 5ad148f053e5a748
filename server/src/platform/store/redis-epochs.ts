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

/** What a node knows about the data in one partition of a cluster. */
export interface PartitionEpoch extends RedisEpoch {
  readonly partition: number;
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

/** What nodes last recorded of the partitions of the counters in a cluster. */
export async function findPartitionEpochs(sql: Sql): Promise<PartitionEpoch[]> {
  const rows = await sql.db.selectFrom("redis_partitions").selectAll().execute();
  return rows.map((row) => ({ partition: row.number, epoch: row.epoch, lostAt: row.lost_at, seenAt: row.seen_at }));
}

export async function putPartitionEpochs(sql: Sql, epochs: readonly PartitionEpoch[]): Promise<void> {
  if (epochs.length === 0) return;
  // Sorted, to avoid deadlocks between nodes.
  const rows = epochs
    .toSorted((a, b) => a.partition - b.partition)
    .map(({ partition, epoch, lostAt, seenAt }) => ({ number: partition, epoch, lost_at: lostAt, seen_at: seenAt }));
  await sql.db
    .insertInto("redis_partitions")
    .values(rows)
    .onConflict((conflict) =>
      conflict.column("number").doUpdateSet((row) => ({
        epoch: row.ref("excluded.epoch"),
        lost_at: row.ref("excluded.lost_at"),
        seen_at: row.ref("excluded.seen_at"),
      })),
    )
    .execute();
}
