import type { Clock, Instant } from "../../../../engine/src/clock/clock.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import type { KeyRecord } from "../../../../engine/src/directory/records.ts";
import type { Limiter } from "../../../../engine/src/limits/limiter.ts";
import type { Random } from "../../../../engine/src/random/random.ts";
import type { CallQueues } from "../../platform/rpc/call-queues.ts";
import { callerInTransaction, rollbackOnProblem, type SessionCallers } from "../../platform/rpc/execute.ts";
import type { PlainPrincipal, Principal } from "../../platform/rpc/principal.ts";
import { type PlainProblem, Problem, problemFrom } from "../../platform/rpc/problems.ts";
import type { QuotaCounts } from "../../platform/rpc/quota-counts.ts";
import { admitCall } from "../../platform/rpc/workspace-limit.ts";
import { recordChange } from "../../platform/store/audit/audit.ts";
import { type QuotaLimits, type Taken, takeQuotas } from "../../platform/store/quotas/workspace-usage.ts";
import { Rollback, type Sql } from "../../platform/store/store.ts";
import { StoreWriter } from "../../platform/store/workspace-store.ts";
import { watchWrites } from "../../platform/store/written-tables.ts";
import { ApiReader } from "../apis/statements.ts";
import { type Derivation, type DerivationBounds, type Derived, derive, tooManyDerivations } from "./derivation.ts";

/** A derivation by the holder of the parent. */
export interface OwnDerivation {
  workspaceId: string;
  apiId: string;
  /** The caller, if it has a root key. */
  caller: PlainPrincipal | undefined;
  wanted: Derivation;
  now: Instant;
}

/** What came of it. */
type OwnDerived = { answer?: Derived["answer"]; taken?: Taken } | { problem: PlainProblem };

export interface OwnDerivationDependencies {
  random: Random;
  secrets: SecretSource;
  derivedKeys: DerivationBounds;
  sessions: SessionCallers;
  limits: QuotaLimits;
}

/** The procedure of derivations by holders. The actor in the audit log is the key that was derived from. */
export function deriveForHolder(
  sql: Sql,
  { workspaceId, apiId, caller, wanted, now }: OwnDerivation,
  { random, secrets, derivedKeys: bounds, sessions, limits }: OwnDerivationDependencies,
): Promise<OwnDerived | Rollback<OwnDerived>> {
  return rollbackOnProblem(async () => {
    if (caller) {
      const principal = await callerInTransaction(sql, caller, now, sessions);
      if (!principal.may(`apis.${apiId}.create_key`)) throw new Problem("key_not_found");
    }
    const { sql: watched, rowChanges } = watchWrites(sql);
    const store = new StoreWriter(watched, workspaceId);
    // As this transaction sees it: what the holder may do can have been changed since the key was read.
    const mayDerive = (await store.of(ApiReader).find(apiId))?.own_key_derivation === 1;
    if (!mayDerive) throw new Problem("key_not_found");
    const authorize = () => {};
    const { answer, targets, meta, events } = await derive(wanted, { store, random, secrets, now, authorize, bounds });
    const entry = { workspaceId, occurredAt: now, actor: wanted.keyId, action: "keys.deriveOwnKey" };
    const recorded = await recordChange(sql, { ...entry, targets, meta, events }, random);
    const bytes = { ...recorded, audit: recorded.audit + store.metadataBytes };
    const taking = { workspaceId, rows: rowChanges, bytes, isReduction: false, now };
    const taken = await takeQuotas(sql, taking, limits, random);
    return taken.exceeded === undefined ? { answer, taken } : new Rollback({ taken });
  });
}

export interface OwnDerivationsOptions {
  clock: Pick<Clock, "now">;
  limiter: Limiter;
  queues: Pick<CallQueues, "writes">;
  quotas: Pick<QuotaCounts, "requireCapacity" | "note">;
  perMinute: number;
  transact(derivation: OwnDerivation): Promise<OwnDerived>;
}

/** Derives keys for the holders of keys, on the main thread. */
export class OwnDerivations {
  readonly #options: OwnDerivationsOptions;

  constructor(options: OwnDerivationsOptions) {
    this.#options = options;
  }

  /** @throws {Problem} or rejects with one if none can be derived from the key now. */
  async derive(
    parent: KeyRecord,
    wanted: Omit<Derivation, "keyId" | "byHolder">,
    caller: Principal | null,
  ): Promise<Derived["answer"]> {
    const { clock, limiter, queues, quotas, perMinute, transact } = this.#options;
    const { workspaceId, apiId, top, keyId } = parent;
    // Before the database, which counts what was derived: a holder that is refused must not occupy it.
    await admitCall(
      { counter: `d\0${top.identity?.id ?? top.keyId}`, limit: perMinute, owner: workspaceId },
      "derivations",
      tooManyDerivations(perMinute),
      limiter,
    );
    quotas.requireCapacity(workspaceId, "derivedKeys");
    const derivation = { workspaceId, apiId, caller: caller?.plain(), wanted: { ...wanted, keyId, byHolder: true } };
    // What has expired when the call leaves the queue is refused.
    const done = await queues.writes.run(workspaceId, () => transact({ ...derivation, now: clock.now() }));
    if ("problem" in done) throw problemFrom(done.problem);
    if (done.taken) quotas.note(workspaceId, done.taken);
    if (done.answer === undefined) throw new Error("A derivation gives an answer or a problem");
    return done.answer;
  }
}
