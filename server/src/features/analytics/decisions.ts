import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { RatelimitEvent, VerificationEvent } from "../../../../engine/src/verification/event.ts";

/** A sampled decision. */
export type Decision = {
  /** Unique in this process. */
  readonly number: number;
  readonly at: Instant;
  readonly workspaceId: string;
  readonly latencyUs: number;
} & (
  | {
      readonly kind: "verification";
      /** Null: the key does not exist. */
      readonly key: { readonly keyId: string; readonly apiId: string; readonly identityId: string | null } | null;
      readonly code: string;
      readonly tags: readonly string[];
      readonly creditsSpent: number;
    }
  | {
      readonly kind: "ratelimit";
      readonly namespaceId: string;
      readonly identifier: string;
      readonly passed: boolean;
      readonly cost: number;
    }
);

/** Decisions that are kept, about 0.5 KiB each and at most 3 KiB. */
export const DECISIONS_MAX = 4_096;

/** How long a decision is kept. */
export const DECISION_LIFE: Milliseconds = 600_000;

/** Decisions of one workspace that are sampled between two calls of `startSecond`. */
const SAMPLED_PER_SECOND = 20;

/** A sample of the latest decisions of this process, in a ring. A busy workspace cannot push out those of others at once. */
export class DecisionSample {
  readonly #ring: (Decision | undefined)[] = new Array(DECISIONS_MAX);
  readonly #sampled = new Map<string, number>();
  #next = 0;
  #taken = 0;

  /** Takes a decision. Whether it is in the sample. */
  verification({ at, workspaceId, key, code, tags = [], creditsSpent }: VerificationEvent, latencyUs: number): boolean {
    if (!this.#admits(workspaceId)) return false;
    const known = key && { keyId: key.keyId, apiId: key.apiId, identityId: key.identity?.id ?? null };
    this.#add({
      number: this.#next,
      at,
      workspaceId,
      latencyUs,
      kind: "verification",
      key: known,
      code,
      tags,
      creditsSpent,
    });
    return true;
  }

  /** Takes a decision. Whether it is in the sample. */
  ratelimit({ at, workspaceId, namespaceId, identifier, passed, cost }: RatelimitEvent, latencyUs: number): boolean {
    if (!this.#admits(workspaceId)) return false;
    this.#add({
      number: this.#next,
      at,
      workspaceId,
      latencyUs,
      kind: "ratelimit",
      namespaceId,
      identifier,
      passed,
      cost,
    });
    return true;
  }

  /** The decisions since the last call of this method. */
  take(): Decision[] {
    const oldest = Math.max(this.#taken, this.#next - DECISIONS_MAX);
    this.#taken = this.#next;
    return Array.from({ length: this.#next - oldest }, (_, i) => this.#ring[(oldest + i) % DECISIONS_MAX]!);
  }

  /** Adds decisions of another thread. */
  adopt(decisions: readonly Decision[]): void {
    for (const decision of decisions) {
      if (this.#admits(decision.workspaceId)) this.#add({ ...decision, number: this.#next });
    }
  }

  /** Starts the next interval of sampling. */
  startSecond(): void {
    this.#sampled.clear();
  }

  /** The newest decisions of a workspace first, none older than `since` or `DECISION_LIFE`. */
  *latest(workspaceId: string, since: number, now: Instant): Generator<Decision> {
    const oldest = Math.max(since, now - DECISION_LIFE);
    for (let number = this.#next - 1; number >= Math.max(0, this.#next - DECISIONS_MAX); number--) {
      const decision = this.#ring[number % DECISIONS_MAX]!;
      if (decision.workspaceId === workspaceId && decision.at >= oldest) yield decision;
    }
  }

  #admits(workspaceId: string): boolean {
    const sampled = this.#sampled.get(workspaceId) ?? 0;
    if (sampled === SAMPLED_PER_SECOND) return false;
    this.#sampled.set(workspaceId, sampled + 1);
    return true;
  }

  #add(decision: Decision): void {
    this.#ring[this.#next++ % DECISIONS_MAX] = decision;
  }
}
