import { instantAt } from "../clock/clock.ts";
import type { SecretSource } from "../crypto/secret.ts";
import { newId, type Random } from "../random/random.ts";
import { insertAuditEvent } from "../store/audit.ts";
import { announceChange } from "../store/changes.ts";
import { Rollback, type Sql } from "../store/store.ts";
import { StoreReader, StoreWriter } from "../store/workspace.ts";
import type { Vault } from "../vault/vault.ts";
import type { Mutation, Operation, Page, Query } from "./operation.ts";
import { type PlainPrincipal, Principal } from "./principal.ts";
import { type PlainProblem, Problem, type ProblemCode, plainProblem } from "./problems.ts";

/** A call that was authenticated and validated, on its way to the database's side. */
export interface OperationCall {
  operation: string;
  input: unknown;
  principal: PlainPrincipal;
  /** Epoch milliseconds at which the call counts as made. */
  now: number;
}

/** What came of it: the members of the envelope after `meta`, ready-made, or a problem. */
export type OperationOutcome = { body: string } | { problem: PlainProblem };

export interface QueryOutcome {
  outcome: OperationOutcome;
  /** Ids of keys whose strings are in the outcome: to be recorded before anybody gets to see it. */
  revealed: readonly string[];
}

export interface MutationOutcome {
  outcome: OperationOutcome;
  /** The change that was announced, with its number in `changes`. */
  change?: { sequence: number; tags: string[] };
}

/** What operations need of the world where they run. */
export interface OperationWorld {
  random: Random;
  secrets: SecretSource;
  vault: Vault;
}

function fail(code: ProblemCode, detail?: string): never {
  throw new Problem(code, detail);
}

/** The procedures through which operations run beside the database. */
export function operationProcedures(operations: readonly Operation[], world: OperationWorld) {
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  return {
    reading: {
      query: (sql: Sql, call: OperationCall) => runQuery(byName.get(call.operation) as Query, sql, call, world),
    },
    writing: {
      mutation: (sql: Sql, call: OperationCall) =>
        runMutation(byName.get(call.operation) as Mutation, sql, call, world),
      /** Records that key strings are about to be shown. */
      recordReveal: (sql: Sql, { call, revealed }: { call: OperationCall; revealed: readonly string[] }) =>
        insertAuditEvent(sql, {
          id: newId(world.random, "evt"),
          workspaceId: call.principal.workspaceId,
          occurredAt: instantAt(call.now),
          actor: call.principal.rootKeyId,
          action: call.operation,
          targets: revealed,
          meta: { revealed: true },
        }),
    },
  };
}

async function runQuery(
  operation: Query,
  sql: Sql,
  call: OperationCall,
  { vault }: OperationWorld,
): Promise<QueryOutcome> {
  const { workspaceId } = call.principal;
  const revealed: string[] = [];
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
      principal: new Principal(call.principal),
      now: instantAt(call.now),
      fail,
    });
    const body = operation.paged ? pageBody(answer as Page<unknown>) : dataBody(answer);
    return { outcome: { body }, revealed };
  } catch (error) {
    return { outcome: { problem: declared(error) }, revealed: [] };
  }
}

async function runMutation(
  operation: Mutation,
  sql: Sql,
  call: OperationCall,
  { random, secrets, vault }: OperationWorld,
): Promise<MutationOutcome | Rollback<MutationOutcome>> {
  const now = instantAt(call.now);
  const { workspaceId } = call.principal;
  const tags: string[] = [];
  let audited: { targets: readonly string[]; meta: Readonly<Record<string, unknown>> } | undefined;
  try {
    const answer = await operation.handle(call.input as never, {
      store: new StoreWriter(sql, workspaceId),
      vault: {
        isOpen: vault.isOpen,
        keep: (keyId, plaintext) => vault.keep(sql, workspaceId, keyId, plaintext, now),
      },
      principal: new Principal(call.principal),
      now,
      random,
      secrets,
      fail,
      announce: (...changed) => void tags.push(...changed),
      audit: (targets, meta = {}) => {
        audited = { targets, meta };
      },
    });
    if (audited) {
      await insertAuditEvent(sql, {
        id: newId(random, "evt"),
        workspaceId,
        occurredAt: now,
        actor: call.principal.rootKeyId,
        action: operation.name,
        ...audited,
      });
    }
    const outcome = { body: dataBody(answer) };
    if (tags.length === 0) return { outcome };
    return { outcome, change: { tags, sequence: await announceChange(sql, tags, now) } };
  } catch (error) {
    return new Rollback({ outcome: { problem: declared(error) } });
  }
}

/** A problem to tell; a bug travels on. */
function declared(error: unknown): PlainProblem {
  if (error instanceof Problem) return plainProblem(error);
  throw error;
}

function dataBody(data: unknown): string {
  return `"data":${JSON.stringify(data)}`;
}

function pageBody({ items, hasMore, cursor }: Page<unknown>): string {
  return `"data":${JSON.stringify(items)},"pagination":${JSON.stringify({ hasMore, ...(hasMore && { cursor }) })}`;
}
