import type { SelectQueryBuilder } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import {
  IDEMPOTENCY_RETENTION,
  type IdempotencyRecord,
  type IdempotencyScope,
} from "../../../../engine/src/rules/idempotency.ts";
import { insertRows } from "./insert-rows.ts";
import { byTime, type RetentionTask } from "./retention.ts";
import type { Schema } from "./schema.ts";
import type { Ask, Sql } from "./store.ts";

/** The most records in the database. */
export const IDEMPOTENCY_RECORDS_MAX = 10_000_000;

/** The records with these scopes within the retention time, by scope. */
export async function findIdempotencyRecords(
  sql: Sql,
  scopes: readonly string[],
  now: Instant,
): Promise<Map<string, { fingerprint: string; outcome: string }>> {
  if (scopes.length === 0) return new Map();
  const rows = await sql.db
    .selectFrom("idempotency_records")
    .select(["scope", "fingerprint", "outcome"])
    .where(sql.dialect.values.isOneOf("scope", scopes))
    .where("created_at", ">", now - IDEMPOTENCY_RETENTION)
    .execute();
  return new Map(rows.map(({ scope, ...record }) => [scope, record]));
}

/** Whether `count` more records fit. */
export async function hasRoomForRecords(sql: Sql, count: number): Promise<boolean> {
  const { first, last } = await sql.db
    .selectFrom("idempotency_records")
    .select(({ fn }) => [fn.min("sequence").as("first"), fn.max("sequence").as("last")])
    .executeTakeFirstOrThrow();
  // Records are inserted and deleted in the order of their sequence numbers, so the span approximates the count.
  // Reading both ends takes two index look-ups.
  return last === null || first === null || last - first + count < IDEMPOTENCY_RECORDS_MAX;
}

/** Inserts outcomes, in the transaction of their calls. */
export async function insertIdempotencyRecords(
  sql: Sql,
  records: readonly IdempotencyRecord[],
  now: Instant,
): Promise<void> {
  if (records.length === 0) return;
  // An expired record with the same scope may not have been pruned yet.
  await sql.db
    .deleteFrom("idempotency_records")
    .where("scope", "in", sql.dialect.values.list(records.map(({ scope }) => scope)))
    .where("created_at", "<=", now - IDEMPOTENCY_RETENTION)
    .execute();
  const types = {
    scope: "text",
    fingerprint: "text",
    workspace_id: "text",
    outcome: "text",
    key_id: "text",
    created_at: "bigint",
  } as const;
  const rows = records.map(({ scope, fingerprint, workspaceId, outcome, keyId }) => ({
    scope,
    fingerprint,
    workspace_id: workspaceId,
    outcome,
    key_id: keyId,
    created_at: now,
  }));
  const { numInsertedOrUpdatedRows } = await insertRows(sql, "idempotency_records", types, rows)
    .onConflict((conflict) => conflict.column("scope").doNothing())
    .executeTakeFirstOrThrow();
  // Every writer claims its scopes first, so no other transaction can have inserted a record meanwhile.
  if (Number(numInsertedOrUpdatedRows) !== rows.length) {
    throw new Error(`${rows.length} outcomes had to be stored, but ${numInsertedOrUpdatedRows} were`);
  }
}

/**
 * Erases outcomes that may contain the string of this key or root key. The records stay, because an attempt that arrives
 * late must not create a second key.
 */
export function eraseOutcomesOfKey(sql: Sql, keyId: string): Promise<void> {
  return eraseOutcomesOfKeys(sql, [keyId]);
}

/** Does for several keys or root keys what `eraseOutcomesOfKey` does. */
export async function eraseOutcomesOfKeys(sql: Sql, keyIds: readonly string[]): Promise<void> {
  await sql.db
    .updateTable("idempotency_records")
    .set({ outcome: "", key_id: null })
    .where(sql.dialect.values.isOneOf("key_id", keyIds))
    .execute();
}

/** Does for the keys that a query selects what `eraseOutcomesOfKey` does. */
export async function eraseOutcomesOfSelected(
  { db }: Sql,
  keyIds: SelectQueryBuilder<Schema, keyof Schema, { id: string }>,
): Promise<void> {
  await db
    .updateTable("idempotency_records")
    .set({ outcome: "", key_id: null })
    .where("key_id", "in", keyIds)
    .execute();
}

/** Claims a scope until the transaction ends; returns false if a call with the same scope is running. */
export async function claimScope(sql: Sql, scope: string): Promise<boolean> {
  return sql.dialect.locks.tryLockText(sql, scope);
}

/**
 * Claims scopes until the transaction ends, without waiting. Returns those that another transaction has claimed, because
 * it runs a call with the same Idempotency-Key.
 */
export async function claimScopes(sql: Sql, scopes: readonly string[]): Promise<string[]> {
  return sql.dialect.locks.tryLockTexts(sql, scopes);
}

/** The result of `once`. */
export type OnceResult =
  | { kind: "executed" }
  | { kind: "recorded"; outcome: string }
  | { kind: "mismatched" }
  | { kind: "running" }
  | { kind: "over quota" }
  | { kind: "full" };

/** Makes a call unless it is a replay: claims the scope, asks the caller to make the call, and inserts its outcome. */
export async function once(
  sql: Sql,
  { scope, fingerprint, workspaceId, isOverQuota, now }: IdempotencyScope & { workspaceId: string; now: Instant },
  ask: Ask<null, string | undefined>,
): Promise<OnceResult> {
  if (!(await claimScope(sql, scope))) return { kind: "running" };
  const before = (await findIdempotencyRecords(sql, [scope], now)).get(scope);
  if (before) {
    return before.fingerprint === fingerprint ? { kind: "recorded", outcome: before.outcome } : { kind: "mismatched" };
  }
  if (isOverQuota) return { kind: "over quota" };
  if (!(await hasRoomForRecords(sql, 1))) return { kind: "full" };
  const outcome = await ask(null);
  if (outcome !== undefined) {
    await insertIdempotencyRecords(sql, [{ scope, fingerprint, workspaceId, outcome, keyId: null }], now);
  }
  return { kind: "executed" };
}

/** Deletes records that no call can replay any more. */
export const idempotencyRetention: RetentionTask = {
  keep: () => IDEMPOTENCY_RETENTION,
  ...byTime("idempotency_records", "sequence", "created_at"),
  limit: 1_000,
};
