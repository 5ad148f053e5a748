import type { Clock, Instant } from "../clock/clock.ts";
import type { CallDirectories } from "../directory/directories.ts";
import type { Generations } from "../directory/generations.ts";
import { PlannedKey } from "../directory/planned-key.ts";
import type { KeyRecord } from "../directory/records.ts";
import type { VerificationRequest } from "./request.ts";

/** Says whether keys and their callers have changed while calls waited. */
export class KeyWatch {
  readonly #clock: Pick<Clock, "now">;
  readonly #generations: Generations;
  /** Slots of the tags that outdate a key's record. */
  readonly #slotsOfKeys = new WeakMap<KeyRecord, readonly number[]>();

  constructor(clock: Pick<Clock, "now">, { generations }: Pick<CallDirectories, "generations">) {
    this.#clock = clock;
    this.#generations = generations;
  }

  /** The generation of this moment, for `isCurrentSince`. */
  generation(): number {
    return this.#generations.newest();
  }

  /** A check that the key and the caller have not changed after this call. The ledger runs it for each call of a batch. */
  watch(key: KeyRecord, request: VerificationRequest): (now: Instant) => boolean {
    const generations = this.#generations;
    let slots = this.#slotsOfKeys.get(key);
    if (!slots) {
      slots = this.#slotsOf(key);
      if (!(key.top instanceof PlannedKey)) this.#slotsOfKeys.set(key, slots);
    }
    return currentCheck(key, request, generations, { slots, generation: generations.newest() });
  }

  /** Whether neither the key nor the caller has changed after this generation. */
  isCurrentSince(generation: number, key: KeyRecord, request: VerificationRequest): boolean {
    const generations = this.#generations;
    // Mostly nothing at all has changed, and the slots are hashes of all names.
    const slots = generations.newest() === generation ? [] : this.#slotsOf(key);
    return currentCheck(key, request, generations, { slots, generation })(this.#clock.now());
  }

  #slotsOf({ top, derivation, apiId, workspaceId, poolId, planId, identity, budgets }: KeyRecord): number[] {
    const ofIdentity = identity === null ? [] : [identity.id, identity.planId ?? identity.id];
    const ofBudgets = budgets.map(({ budgetId }) => budgetId);
    const ofOthers = [...ofIdentity, planId ?? poolId, ...ofBudgets, ...(derivation?.ids ?? [])];
    return [top.keyId, apiId, workspaceId, poolId, ...ofOthers].map((tag) => this.#generations.slot(tag));
  }
}

/** A check that a key and its caller are as they were at this generation. */
function currentCheck(
  { expiresAt }: KeyRecord,
  { principal, sought, now: decidedAt }: VerificationRequest,
  generations: Generations,
  { slots, generation }: { slots: readonly number[]; generation: number },
): (now: Instant) => boolean {
  const authority = principal ?? sought?.edge;
  return (now) => {
    if (!generations.areUnchanged(slots, generation)) return false;
    const hasExpired = expiresAt !== null && now >= expiresAt && decidedAt < expiresAt;
    return !hasExpired && (authority === undefined || authority.isCurrent(now));
  };
}
