import { type Instant, instantAt } from "../../../../engine/src/clock/clock.ts";
import { SealBroken, seal, unseal } from "../../../../engine/src/crypto/seal.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import { rootKeyRecord } from "../../../../engine/src/directory/records.ts";
import { IdempotencyFull } from "../../../../engine/src/errors/idempotency.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import { lockAccess } from "../store/access/access-lock.ts";
import { findRootKey } from "../store/access/root-key-lookup.ts";
import { type AuditEntry, recordChange } from "../store/audit/audit.ts";
import { insertChange } from "../store/changes.ts";
import {
  claimScope,
  findIdempotencyRecords,
  hasRoomForRecords,
  insertIdempotencyRecords,
} from "../store/idempotency.ts";
import { countIdempotencyRecords } from "../store/quotas/idempotency-count.ts";
import type { Quota } from "../store/quotas/quotas.ts";
import { NOTHING_WRITTEN } from "../store/quotas/workspace-bytes.ts";
import {
  type CountStep,
  countNear,
  countRows,
  findUsage,
  type QuotaLimits,
  type RecordedCount,
  recordCount,
  type Taken,
  takeQuotas,
} from "../store/quotas/workspace-usage.ts";
import { Rollback, type Sql } from "../store/store.ts";
import { StoreReader, StoreWriter } from "../store/workspace-store.ts";
import { watchWrites } from "../store/written-tables.ts";
import type { Vault } from "../vault/vault.ts";
import type { SealedCall } from "./idempotency.ts";
import { Invalidation } from "./invalidation.ts";
import type { Bulk, BulkContext, Mutation, Operation, Page, Query } from "./operation.ts";
import { type PlainPrincipal, type Principal, RecordingPrincipal, requireUsable } from "./principal.ts";
import { type PlainProblem, Problem, type ProblemCode, plainProblem } from "./problems.ts";
import { overQuota } from "./workspace-quota.ts";

/** An authenticated and validated call, as it is sent to the database thread. */
export interface OperationCall {
  operation: string;
  /** Whether the caller used an alias. */
  aliased: boolean;
  input: unknown;
  principal: PlainPrincipal;
  /** Epoch milliseconds at which the call counts as made. */
  now: number;
  /** Set when the caller sent an Idempotency-Key. */
  idempotent: SealedCall | undefined;
}

/** The result of a call: the members of the envelope after `meta` as JSON text, or a problem. */
export type OperationOutcome = { body: string } | { problem: PlainProblem };

export interface QueryOutcome {
  /** With a subject, the second step of the operation answers. */
  outcome: OperationOutcome | { subject: unknown };
  /** Ids of the keys whose strings are in the outcome. The audit log records them before the answer is sent. */
  revealed: readonly string[];
  /** The permissions that the root key needed for it. */
  required: readonly string[];
}

/** Key strings that an answer is about to contain. */
export interface Reveal {
  call: OperationCall;
  revealed: readonly string[];
  required: readonly string[];
}

export interface MutationOutcome {
  outcome: OperationOutcome;
  change?: RecordedChange;
  /** What the transaction took of the quotas of the workspace. */
  taken?: Taken;
}

/** A change with its sequence number in `changes`. */
export interface RecordedChange {
  sequence: number;
  tags: string[];
}

/** The result of a transaction without an answer of its own. */
export type Done = { change?: RecordedChange; taken?: Taken } | { problem: PlainProblem };

/**
 * Reads the caller of each kind of session as the transaction sees it. Throws a problem if the session has ended or its
 * root key may no longer make calls.
 */
export type SessionCallers = Readonly<
  Record<string, (sql: Sql, caller: PlainPrincipal, now: Instant) => Promise<PlainPrincipal>>
>;

/** The dependencies of operations on the database thread. */
export interface OperationDependencies {
  random: Random;
  secrets: SecretSource;
  vault: Vault;
  /** Prefix of addresses in answers; empty: they are relative. */
  publicUrl: string;
  sessions: SessionCallers;
  /** What handlers of mutations get beside the store. */
  services: object;
  limits: QuotaLimits;
}

function fail(code: ProblemCode, detail?: string): never {
  throw new Problem(code, detail);
}

/** The procedures that run operations on the database thread. */
export function operationProcedures(operations: readonly Operation[], dependencies: OperationDependencies) {
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  return {
    reading: {
      countIdempotencyRecords: (sql: Sql, step: { workspaceId: string; limit: number }) =>
        countIdempotencyRecords(sql, step),
      countRows: (sql: Sql, step: CountStep) => countRows(sql, step),
      countNear: (sql: Sql, _: null) => countNear(sql),
      findUsage: (sql: Sql, of: { workspaceId: string; quota: Quota }) => findUsage(sql, of),
      query: (sql: Sql, call: OperationCall) => runQuery(byName.get(call.operation) as Query, sql, call, dependencies),
    },
    writing: {
      mutation: (sql: Sql, call: OperationCall) =>
        runMutation(byName.get(call.operation) as Mutation | Bulk, sql, call, dependencies),
      recordCount: (sql: Sql, count: RecordedCount) => recordCount(sql, count),
      recordReveal: (sql: Sql, reveal: Reveal) => rollbackOnProblem(() => recordReveal(sql, reveal, dependencies)),
    },
  };
}

/**
 * The caller as the database has it in this transaction: its cached record may be outdated. Locks its permissions until
 * the transaction ends. Must be the first step of the transaction.
 *
 * @throws {Problem} as authentication does, if the root key may no longer make calls.
 */
export async function callerInTransaction(
  sql: Sql,
  caller: PlainPrincipal,
  now: Instant,
  sessions: SessionCallers,
  mode: "shared" | "exclusive" = "shared",
): Promise<RecordingPrincipal> {
  await lockAccess(sql, caller.workspaceId, mode);
  const read = caller.session === undefined ? rootKeyInTransaction : sessions[caller.session.kind]!;
  return new RecordingPrincipal(await read(sql, caller, now));
}

/** The principal of a root key as this transaction sees it. @throws {Problem} if it may not make calls. */
export async function rootKeyInTransaction(
  sql: Sql,
  { rootKeyId }: Pick<PlainPrincipal, "rootKeyId">,
  now: Instant,
): Promise<PlainPrincipal> {
  const rootKey = await findRootKey(sql, rootKeyId);
  const record = rootKey === undefined ? null : rootKeyRecord(rootKey).record;
  requireUsable(record, now);
  return record;
}

/** The member of an audit entry that names the session of the caller. */
export function sessionOf({ session }: PlainPrincipal): { session?: string } {
  return session === undefined ? {} : { session: session.id };
}

/** Gives the problem that the work throws, and rolls back. */
export async function rollbackOnProblem(work: () => Promise<Done | Rollback<Done>>): Promise<Done | Rollback<Done>> {
  try {
    return await work();
  } catch (error) {
    return new Rollback({ problem: problemOf(error) });
  }
}

async function runQuery(
  operation: Query,
  sql: Sql,
  call: OperationCall,
  { vault, publicUrl }: OperationDependencies,
): Promise<QueryOutcome> {
  const { workspaceId } = call.principal;
  const revealed: string[] = [];
  const principal = new RecordingPrincipal(call.principal);
  try {
    const answer = await operation.handle(call.input as never, {
      store: new StoreReader(sql, workspaceId),
      vault: {
        isOpen: vault.isOpen,
        async reveal(keyIds) {
          const strings = await vault.reveal(sql, workspaceId, keyIds);
          revealed.push(...strings.keys());
          return strings;
        },
      },
      principal,
      publicUrl,
      now: instantAt(call.now),
      fail,
    });
    const required = revealed.length > 0 ? principal.met : [];
    if (operation.answer) return { outcome: { subject: answer }, revealed, required };
    const body = operation.paged
      ? pageBody(answer as Page<unknown>, call.aliased ? undefined : operation.listName)
      : dataBody(answer);
    return { outcome: { body }, revealed, required };
  } catch (error) {
    return { outcome: { problem: problemOf(error) }, revealed: [], required: [] };
  }
}

async function runMutation(
  operation: Mutation | Bulk,
  sql: Sql,
  call: OperationCall,
  { random, secrets, vault, publicUrl, sessions, services, limits }: OperationDependencies,
): Promise<MutationOutcome | Rollback<MutationOutcome>> {
  const now = instantAt(call.now);
  const { workspaceId } = call.principal;
  const invalidation = new Invalidation(workspaceId);
  let audited: Pick<AuditEntry, "targets" | "meta" | "events"> | undefined;
  try {
    const isExclusive = operation.kind === "mutation" && operation.narrowsAccess;
    const principal = await callerInTransaction(
      sql,
      call.principal,
      now,
      sessions,
      isExclusive ? "exclusive" : "shared",
    );
    const replay = call.idempotent && (await findReplay(sql, call.idempotent, principal, now));
    if (replay) return { outcome: replay };
    const { sql: watched, written, rowChanges } = watchWrites(sql);
    const store = new StoreWriter(watched, workspaceId);
    const context: BulkContext<never> = {
      store,
      vault: {
        isOpen: vault.isOpen,
        save: (keyId, plaintext) => vault.save(watched, workspaceId, keyId, plaintext, now),
        sealHeaders: (apiId, headers) => vault.sealHeaders(watched, workspaceId, apiId, headers, now),
        sealWebhookSecret: (webhookId, secret) => vault.sealWebhookSecret(watched, workspaceId, webhookId, secret, now),
        sealPepper: (migrationId, pepper) => vault.sealPepper(watched, workspaceId, migrationId, pepper, now),
        openPepper: (migrationId, sealed) => vault.openPepper(watched, workspaceId, migrationId, sealed),
      },
      principal,
      now,
      random,
      secrets,
      publicUrl,
      fail,
      invalidate: invalidation,
      audit: (targets, meta, events) => {
        audited = { targets, meta, events };
      },
    };
    const answer = await operation.handle(call.input as never, context, services as never);
    if (written.size > 0) {
      const writes = `${operation.name} wrote to ${[...written].join(", ")}`;
      if (!audited) throw new Error(`${writes} without an audit entry: its handler must call audit()`);
      if (!invalidation.isDecided) {
        throw new Error(
          `${writes} without an invalidation: its handler must call a verb of invalidate, or invalidate.nothing(reason)`,
        );
      }
    }
    const bytes = { ...NOTHING_WRITTEN };
    if (audited) {
      const { targets, meta, events } = audited;
      const recorded = await recordChange(
        sql,
        {
          workspaceId,
          occurredAt: now,
          actor: call.principal.rootKeyId,
          action: operation.name,
          targets,
          meta: { ...meta, ...sessionOf(call.principal) },
          events: [...store.events, ...events],
        },
        random,
      );
      bytes.audit = recorded.audit + store.metadataBytes;
      bytes.events = recorded.events;
    }
    const outcome = { body: dataBody(answer) };
    if (call.idempotent) {
      const issuedId = operation.kind === "mutation" && operation.issues ? operation.issues(answer as never) : null;
      await recordOutcome(sql, call.idempotent, principal, outcome.body, issuedId, now);
    }
    const isReduction = reduces(operation, call.input);
    const rows = store.withRestored(rowChanges);
    const taken = await takeQuotas(sql, { workspaceId, rows, bytes, isReduction, now }, limits, random);
    if (taken.exceeded !== undefined) return new Rollback({ outcome, taken });
    if (invalidation.tags.length === 0) return { outcome, taken };
    const tags = [...invalidation.tags];
    const sequence = await insertChange(sql, tags, now, invalidation.workspaceId);
    return { outcome, taken, change: { tags, sequence } };
  } catch (error) {
    return new Rollback({ outcome: { problem: problemOf(error) } });
  }
}

/** Whether a call deletes or revokes something, which a workspace without room may do. */
function reduces({ kind, name, ...operation }: Mutation | Bulk, input: unknown): boolean {
  if (kind === "mutation" && "narrowsAccess" in operation && operation.narrowsAccess) return true;
  return /\.(delete|remove)/.test(name) || (input as { enabled?: boolean }).enabled === false;
}

/** Records that an answer contains key strings. Checks the permissions of the caller again. */
async function recordReveal(
  sql: Sql,
  { call, revealed, required }: Reveal,
  { random, sessions, limits }: OperationDependencies,
): Promise<Done | Rollback<Done>> {
  const now = instantAt(call.now);
  const caller = await callerInTransaction(sql, call.principal, now, sessions);
  caller.authorizeGrants(required);
  const { workspaceId } = call.principal;
  const bytes = await recordChange(
    sql,
    {
      workspaceId: call.principal.workspaceId,
      occurredAt: now,
      actor: call.principal.rootKeyId,
      action: call.operation,
      targets: revealed,
      meta: { revealed: true, ...sessionOf(call.principal) },
      events: [],
    },
    random,
  );
  const taken = await takeQuotas(sql, { workspaceId, rows: new Map(), bytes, isReduction: false, now }, limits, random);
  return taken.exceeded === undefined ? { taken } : new Rollback({ taken });
}

/**
 * The outcome of the first call with the same Idempotency-Key; undefined if this is the first.
 *
 * @throws {Problem} unless the caller still has the permissions that the first call needed.
 */
async function findReplay(
  sql: Sql,
  { scope, fingerprint, sealingKey, isOverQuota }: SealedCall,
  caller: Principal,
  now: Instant,
): Promise<OperationOutcome | undefined> {
  const rejection = (code: ProblemCode) => ({ problem: plainProblem(new Problem(code)) });
  if (!(await claimScope(sql, scope))) return rejection("idempotency_in_progress");
  const record = (await findIdempotencyRecords(sql, [scope], now)).get(scope);
  if (record) {
    if (record.fingerprint !== fingerprint) return rejection("idempotency_mismatch");
    const { required, body } = unsealOutcome(sealingKey, scope, record.outcome);
    caller.authorizeGrants(required);
    return { body };
  }
  if (isOverQuota) throw overQuota("idempotencyRecords");
  if (!(await hasRoomForRecords(sql, 1))) throw new IdempotencyFull();
  return undefined;
}

/** The stored part of a call: its answer, and the permissions that it needed. */
interface SealedOutcome {
  required: readonly string[];
  body: string;
}

/** @throws {Problem} if an earlier version sealed it in another way, so that it cannot be read. */
function unsealOutcome(sealingKey: Uint8Array, scope: string, outcome: string): SealedOutcome {
  try {
    return JSON.parse(unseal(sealingKey, scope, outcome).toString());
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error;
    throw new Problem(
      "idempotency_mismatch",
      "This Idempotency-Key was used before, and what came of that call cannot be read any more. Nothing was done.",
    );
  }
}

/** Stores the outcome in the transaction of the call. */
async function recordOutcome(
  sql: Sql,
  { scope, fingerprint, sealingKey }: SealedCall,
  { workspaceId, met: required }: RecordingPrincipal,
  body: string,
  issuedId: string | null,
  now: Instant,
): Promise<void> {
  const outcome = seal(sealingKey, scope, Buffer.from(JSON.stringify({ required, body } satisfies SealedOutcome)));
  const record = { scope, fingerprint, workspaceId, outcome, keyId: issuedId };
  await insertIdempotencyRecords(sql, [record], now);
}

/** The problem for the caller. Any other error is thrown again. */
function problemOf(error: unknown): PlainProblem {
  if (error instanceof Problem) return plainProblem(error);
  throw error;
}

function dataBody(data: unknown): string {
  return `"data":${JSON.stringify(data)}`;
}

function pageBody({ items, hasMore, cursor }: Page<unknown>, listName: string | undefined): string {
  const next = hasMore && { cursor };
  const data = listName === undefined ? items : { [listName]: items, ...next };
  return `"data":${JSON.stringify(data)},"pagination":${JSON.stringify({ hasMore, ...next })}`;
}
