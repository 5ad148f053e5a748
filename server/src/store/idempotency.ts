import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../clock/clock.ts";
import { always, inputList, inputRows, isOneOf } from "./json.ts";
import type { Ask, Sql } from "./store.ts";
import { pruningTime } from "./time.ts";

/** How long an outcome is remembered. */
export const IDEMPOTENCY_RETENTION: Milliseconds = 24 * 3_600_000;

/** Records that there may be. */
export const IDEMPOTENCY_RECORDS_MAX = 10_000_000;

const PRUNE_STEP = 1_000;

/** A call that its caller may repeat. Holds nothing of the Idempotency-Key but hashes. */
export interface IdempotencyScope {
  /** Hash of workspace, operation, caller and Idempotency-Key. */
  scope: string;
  /** Hash of the body: the same key under another body is a mistake. */
  fingerprint: string;
  /** The workspace has as many records as it may have: the call is answered only if it was made before. */
  isOverQuota?: boolean | undefined;
}

export interface IdempotencyRecord extends IdempotencyScope {
  workspaceId: string;
  /** What came of the call. Sealed under a key that only the caller can derive when there is a secret in it. */
  outcome: string;
  /** The key or root key that the outcome is about: it is erased with it. */
  keyId: string | null;
}

/** There is no room for another record: the caller may come back, or call without the header. */
export class IdempotencyFull extends Error {
  constructor() {
    super("There is no room to remember another Idempotency-Key");
    this.name = "IdempotencyFull";
  }
}

/** The workspace has as many records as it may have. */
export class IdempotencyQuotaExceeded extends Error {
  constructor() {
    super("The workspace has as many remembered calls with an Idempotency-Key as it may have");
    this.name = "IdempotencyQuotaExceeded";
  }
}

/** The records under these scopes that are not older than a day, by scope. */
export async function findIdempotencyRecords(
  sql: Sql,
  scopes: readonly string[],
  now: Instant,
): Promise<Map<string, { fingerprint: string; outcome: string }>> {
  if (scopes.length === 0) return new Map();
  const rows = await sql.db
    .selectFrom("idempotency_records")
    .select(["scope", "fingerprint", "outcome"])
    .where(isOneOf(sql, "scope", scopes))
    .where("created_at", ">", now - IDEMPOTENCY_RETENTION)
    .execute();
  return new Map(rows.map(({ scope, ...record }) => [scope, record]));
}

/** Whether there is room for so many more. */
export async function hasRoomForRecords(sql: Sql, count: number): Promise<boolean> {
  const { first, last } = await sql.db
    .selectFrom("idempotency_records")
    .select(({ fn }) => [fn.min("sequence").as("first"), fn.max("sequence").as("last")])
    .executeTakeFirstOrThrow();
  // Records come and go in the order of their numbers, so their span is their count, near enough and for two look-ups.
  return last === null || first === null || last - first + count < IDEMPOTENCY_RECORDS_MAX;
}

/** Remembers outcomes, in the transaction that brings them about. */
export async function insertIdempotencyRecords(
  sql: Sql,
  records: readonly IdempotencyRecord[],
  now: Instant,
): Promise<void> {
  if (records.length === 0) return;
  // One that is left over from more than a day ago makes room.
  await sql.db
    .deleteFrom("idempotency_records")
    .where(
      "scope",
      "in",
      inputList(
        sql,
        records.map(({ scope }) => scope),
      ),
    )
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
  const columns = Object.keys(types) as (keyof typeof types)[];
  const rows = records.map(({ scope, fingerprint, workspaceId, outcome, keyId }) => ({
    ...{ scope, fingerprint, workspace_id: workspaceId, outcome, key_id: keyId, created_at: now },
  }));
  const { numInsertedOrUpdatedRows } = await sql.db
    .insertInto("idempotency_records")
    .columns(columns)
    .expression((query) =>
      query
        .selectFrom(inputRows(sql, types, rows))
        .select(columns)
        .where(always),
    )
    .onConflict((conflict) => conflict.column("scope").doNothing())
    .executeTakeFirstOrThrow();
  // Every writer claims its scopes first, so there is no record that another one wrote meanwhile.
  if (Number(numInsertedOrUpdatedRows) !== rows.length) {
    throw new Error(`${rows.length} outcomes were to be remembered and ${numInsertedOrUpdatedRows} were`);
  }
}

/** Whether this call has the scope to itself until its transaction ends; another one with it is still running if not. */
export async function claimScope(sql: Sql, scope: string): Promise<boolean> {
  // SQLite has one writer.
  if (sql.dialect !== "postgres") return true;
  const { rows } = await raw<{ mine: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${scope}, 0)) as mine`.execute(sql.db);
  return rows[0]!.mine;
}

/**
 * Claims scopes until the transaction ends, without waiting. Gives those that another transaction has claimed: a call
 * with the same Idempotency-Key is still running there.
 */
export async function claimScopes(sql: Sql, scopes: readonly string[]): Promise<string[]> {
  // SQLite has one writer.
  if (sql.dialect !== "postgres" || scopes.length === 0) return [];
  const { rows } = await raw<{ scope: string }>`
    select scope from unnest(${scopes}::text[]) as scope
    where not pg_try_advisory_xact_lock(hashtextextended(scope, 0))`.execute(sql.db);
  return rows.map(({ scope }) => scope);
}

/** One step of forgetting what is older than a day; gives whether there may be more. */
export async function pruneIdempotencyRecords(sql: Sql, now: Instant): Promise<boolean> {
  const { numDeletedRows } = await sql.db
    .deleteFrom("idempotency_records")
    .where("sequence", "in", (query) =>
      query
        .selectFrom("idempotency_records")
        .select("sequence")
        .where("created_at", "<=", raw<number>`${pruningTime(sql, now)} - ${IDEMPOTENCY_RETENTION}`)
        .orderBy("created_at")
        .limit(PRUNE_STEP),
    )
    .executeTakeFirstOrThrow();
  return Number(numDeletedRows) === PRUNE_STEP;
}

/** What came of a call that was to be made once. */
export type OnceResult =
  | { kind: "made" }
  | { kind: "known"; outcome: string }
  | { kind: "mismatched" }
  | { kind: "running" }
  | { kind: "over quota" }
  | { kind: "full" };

/** Makes a call unless it was made before: asks for it with the scope in hand, and keeps what came of it. */
export async function once(
  sql: Sql,
  { scope, fingerprint, workspaceId, isOverQuota, now }: IdempotencyScope & { workspaceId: string; now: Instant },
  ask: Ask<null, string | undefined>,
): Promise<OnceResult> {
  if (!(await claimScope(sql, scope))) return { kind: "running" };
  const before = (await findIdempotencyRecords(sql, [scope], now)).get(scope);
  if (before) {
    return before.fingerprint === fingerprint ? { kind: "known", outcome: before.outcome } : { kind: "mismatched" };
  }
  if (isOverQuota) return { kind: "over quota" };
  if (!(await hasRoomForRecords(sql, 1))) return { kind: "full" };
  const outcome = await ask(null);
  if (outcome !== undefined) {
    await insertIdempotencyRecords(sql, [{ scope, fingerprint, workspaceId, outcome, keyId: null }], now);
  }
  return { kind: "made" };
}
