import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { deletedRowsIndex } from "../../../platform/store/deleted-rows.ts";
import type { RetentionTask } from "../../../platform/store/retention.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { deleteAssignmentsOf } from "../../plans/statements/plans.ts";

/**
 * On PostgreSQL, the time between the mark that keeps a hash dead and the deletion of its key. An import that was running
 * when the mark was written has ended by then, and every later one sees the mark.
 */
const MARK_LEAD: Milliseconds = 10 * 60_000;

/** The time of the oldest deletion before this time, of keys whose hash is marked or is not; null if there is none. */
async function oldestDeletedKey({ db }: Sql, before: Instant, state: "marked" | "unmarked"): Promise<number | null> {
  const marked = raw`exists (select 1 from purged_keys as p where p.hash = keys.hash and p.workspace_id = keys.workspace_id)`;
  const { rows } = await raw<{ at: number }>`
    select deleted_at as at from keys where deleted_at is not null and deleted_at < ${before}
      and ${state === "marked" ? marked : raw`not ${marked}`}
    order by deleted_at limit 1`.execute(db);
  return rows[0] === undefined ? null : Number(rows[0].at);
}

/** Marks the hashes of at most `limit` keys that were deleted before this time, so that no import brings one back. */
async function markPurged(sql: Sql, before: Instant, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await raw`
    insert into purged_keys (hash, workspace_id, purged_at)
    select hash, workspace_id, ${sql.dialect.time.clock} from keys
    where deleted_at is not null and deleted_at < ${before}
      and not exists (
        select 1 from purged_keys as p where p.hash = keys.hash and p.workspace_id = keys.workspace_id)
    order by deleted_at limit ${limit}`.execute(sql.db);
  return Number(numAffectedRows);
}

/**
 * Deletes at most `limit` keys that were deleted before this time and whose hash is marked for long enough, with
 * everything that belongs to them alone: balances, limits, permissions, last use, recoverable string.
 */
async function purgeKeys(sql: Sql, before: Instant, limit: number): Promise<number> {
  const { db } = sql;
  const { rows } = await raw<{ id: string; pool_id: string }>`
    delete from keys where id in (
      select keys.id from keys
      join purged_keys as p on p.hash = keys.hash and p.workspace_id = keys.workspace_id
      where keys.deleted_at is not null and keys.deleted_at < ${before}
        and p.purged_at <= ${sql.dialect.time.clock} - ${sql.dialect.isEmbedded ? 0 : MARK_LEAD}
      order by keys.deleted_at limit ${limit}
    ) returning id, pool_id`.execute(db);
  await db
    .deleteFrom("idempotency_records")
    .where(
      sql.dialect.values.isOneOf(
        "key_id",
        rows.map(({ id }) => id),
      ),
    )
    .execute();
  const poolIds = rows.map(({ pool_id }) => pool_id);
  await deleteAssignmentsOf(sql, poolIds);
  for (const owner of ["pool_id", "slots_of"] as const) {
    await db
      .deleteFrom("balances")
      .where(sql.dialect.values.isOneOf(owner, poolIds))
      // Keys of one reroll chain share a pool.
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom("keys").select("keys.id").whereRef("keys.pool_id", "=", `balances.${owner}`))),
      )
      .execute();
  }
  return rows.length;
}

/** The time of the oldest deletion before this time, of APIs that have keys; null if there is none. */
async function oldestDeletedApi(sql: Sql, before: Instant): Promise<number | null> {
  const api = await deletedApi(sql, before);
  return api === undefined ? null : Number(api.at);
}

async function deletedApi({ db }: Sql, before: Instant): Promise<{ id: string; at: number } | undefined> {
  const { rows } = await raw<{ id: string; at: number }>`
    select id, deleted_at as at from apis where deleted_at is not null and deleted_at < ${before}
      and exists (select 1 from keys where keys.api_id = apis.id and keys.deleted_at is null)
    order by deleted_at limit 1`.execute(db);
  return rows[0];
}

/** Marks at most `limit` keys of an API that was deleted before this time as deleted with it. */
async function markKeysOfDeletedApis(sql: Sql, before: Instant, limit: number): Promise<number> {
  const api = await deletedApi(sql, before);
  if (api === undefined) return 0;
  const { numAffectedRows = 0n } = await raw`
    update keys set deleted_at = ${api.at} where id in (
      select id from keys where api_id = ${api.id} and deleted_at is null limit ${limit}
    )`.execute(sql.db);
  return Number(numAffectedRows);
}

/** The time of the oldest expiry before this time, of keys that are deleted once they expired; null if there is none. */
async function oldestEndedKey({ db }: Sql, before: Instant): Promise<number | null> {
  const { rows } = await raw<{ at: number }>`
    select expires_at as at from keys where ${ended(before)} order by expires_at limit 1`.execute(db);
  return rows[0] === undefined ? null : Number(rows[0].at);
}

/** Marks at most `limit` keys that expired before this time as deleted when they expired. */
async function markEndedKeys({ db }: Sql, before: Instant, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await raw`
    update keys set deleted_at = expires_at where ${ended(before)} and id in (
      select id from keys where ${ended(before)} order by expires_at limit ${limit}
    )`.execute(db);
  return Number(numAffectedRows);
}

function ended(before: Instant) {
  return raw`expires_at is not null and expires_at < ${before} and deleted_once_expired = 1 and deleted_at is null`;
}

/** The keys of a deleted API count as deleted with it. */
export const keysOfApisRetention: RetentionTask = {
  keep: ({ deleted }) => deleted,
  oldest: oldestDeletedApi,
  step: markKeysOfDeletedApis,
  limit: 200,
  isCostly: true,
};

/** Keys that were replaced, or that their owner made, count as deleted when they expired. */
export const endedKeysRetention: RetentionTask = {
  keep: ({ deleted }) => deleted,
  oldest: oldestEndedKey,
  step: markEndedKeys,
  limit: 200,
  index: {
    name: "keys_ended",
    on: "keys (expires_at) where expires_at is not null and deleted_once_expired = 1 and deleted_at is null",
  },
};

/** Marks the hashes of deleted keys, before the keys are deleted for good. */
export const purgedKeysRetention: RetentionTask = {
  keep: ({ deleted }) => deleted,
  oldest: (sql, before) => oldestDeletedKey(sql, before, "unmarked"),
  step: markPurged,
  limit: 300,
  index: deletedRowsIndex("keys"),
};

/** Deletes keys whose hash is marked. */
export const keyRetention: RetentionTask = {
  keep: ({ deleted }) => deleted,
  oldest: (sql, before) => oldestDeletedKey(sql, before, "marked"),
  step: purgeKeys,
  limit: 100,
  index: deletedRowsIndex("keys"),
};
