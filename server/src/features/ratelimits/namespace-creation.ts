import { type Clock, type Instant, instantAt } from "../../../../engine/src/clock/clock.ts";
import { namespaceLookupKey } from "../../../../engine/src/directory/directories.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { NamespaceCreation } from "../../../../engine/src/verification/namespaces.ts";
import type { CallQueues } from "../../platform/rpc/call-queues.ts";
import {
  callerInTransaction,
  type Done,
  rollbackOnProblem,
  type SessionCallers,
  sessionOf,
} from "../../platform/rpc/execute.ts";
import type { PlainPrincipal, Principal } from "../../platform/rpc/principal.ts";
import { problemFrom } from "../../platform/rpc/problems.ts";
import type { QuotaCounts } from "../../platform/rpc/quota-counts.ts";
import { recordChange } from "../../platform/store/audit/audit.ts";
import { insertChange } from "../../platform/store/changes.ts";
import { type QuotaLimits, takeQuotas } from "../../platform/store/quotas/workspace-usage.ts";
import { Rollback, type Sql } from "../../platform/store/store.ts";
import { NamespaceWriter } from "./statements/namespaces.ts";

/** Namespaces that a call uses for the first time. */
export interface FirstUse {
  /** The call's operation. */
  operation: string;
  principal: PlainPrincipal;
  names: readonly string[];
  /** Epoch milliseconds at which the call counts as made. */
  now: number;
}

/** What the creation of namespaces needs beside the database. */
export interface Dependencies {
  random: Random;
  sessions: SessionCallers;
  limits: QuotaLimits;
}

/** The procedure that creates the namespaces that do not exist. Gives no change if a concurrent call created all of them. */
export function createNamespaces(sql: Sql, use: FirstUse, dependencies: Dependencies): Promise<Done | Rollback<Done>> {
  return rollbackOnProblem(() => createMissing(sql, use, dependencies));
}

async function createMissing(
  sql: Sql,
  { operation, principal, names, now: at }: FirstUse,
  { random, sessions, limits }: Dependencies,
): Promise<Done | Rollback<Done>> {
  const { workspaceId, rootKeyId } = principal;
  const now: Instant = instantAt(at);
  const caller = await callerInTransaction(sql, principal, now, sessions);
  caller.authorize("ratelimits.*.create_namespace");
  caller.authorize("ratelimits.*.limit");
  const made = await new NamespaceWriter(sql, workspaceId).ensure(names, random, now);
  if (made.length === 0) return {};
  const bytes = await recordChange(
    sql,
    {
      workspaceId,
      occurredAt: now,
      actor: rootKeyId,
      action: operation,
      targets: made.map(({ id }) => id),
      meta: { created: made.map(({ name }) => name), ...sessionOf(principal) },
      events: made.map(({ id, name }) => ({
        type: "namespace.created",
        objectId: id,
        data: { namespaceId: id, name },
      })),
    },
    random,
  );
  const rows = new Map([["ratelimit_namespaces", made.length]]);
  const taken = await takeQuotas(sql, { workspaceId, rows, bytes, isReduction: false, now }, limits, random);
  if (taken.exceeded !== undefined) return new Rollback({ taken });
  const tags = made.map(({ name }) => namespaceLookupKey(name, workspaceId));
  return { taken, change: { tags, sequence: await insertChange(sql, tags, now, workspaceId) } };
}

interface CreationParts {
  clock: Pick<Clock, "now">;
  queues: Pick<CallQueues, "writes">;
  quotas: Pick<QuotaCounts, "requireCapacity" | "note">;
  transact(use: FirstUse): Promise<Done>;
}

/** Creates the namespaces for a call on the main thread. Gives the sequence number of the change, if there was one. */
export function namespaceCreation({ clock, queues, quotas, transact }: CreationParts) {
  return async ({ names, caller, operation }: NamespaceCreation<Principal>): Promise<number | undefined> => {
    const { workspaceId } = caller;
    quotas.requireCapacity(workspaceId, "namespaces");
    const use = { operation, principal: caller.plain(), names };
    // The call counts as made when it leaves the queue: a root key that expired by then is rejected.
    const done = await queues.writes.run(workspaceId, () => transact({ ...use, now: clock.now() }));
    if ("problem" in done) throw problemFrom(done.problem);
    if (done.taken) quotas.note(workspaceId, done.taken);
    return done.change?.sequence;
  };
}
