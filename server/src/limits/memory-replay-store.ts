import type { Clock, Milliseconds } from "../clock/clock.ts";
import { IdempotencyQuotaExceeded } from "../store/idempotency.ts";
import { type IdempotentCall, type Outcome, type Replay, type ReplayStore, ReplayStoreFull } from "./replay-store.ts";

/** Outcomes that are remembered at a time, and their bytes. */
const OUTCOMES_MAX = 100_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** How many are looked at for each that comes in: more than one, so that those that expire are found. */
const LOOKED_AT = 4;
/** Longest time for which an outcome is remembered. */
const LIFE_MAX: Milliseconds = 24 * 3_600_000;

interface Remembered {
  workspaceId: string;
  fingerprint: string;
  text: string;
  /** By the monotonic clock: a step of the wall clock forgets nothing and keeps nothing longer. */
  until: Milliseconds;
}

/** Outcomes beside the counters in memory: charged and remembered in one step, for twice the longest window. */
export class MemoryReplayStore implements ReplayStore {
  readonly #clock: Clock;
  readonly #outcomes = new Map<string, Remembered>();
  readonly #running = new Set<string>();
  /** What each workspace has of them. */
  readonly #shares = new Map<string, { count: number; bytes: number }>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  once<T extends object>(
    call: IdempotentCall,
    make: () => T | Promise<T>,
    outcomeOf: (made: T) => Outcome | undefined,
  ): T | Replay | Promise<T> {
    const before = this.#outcomes.get(call.scope);
    if (before && this.#clock.monotonic() < before.until) {
      return before.fingerprint === call.fingerprint
        ? { replay: "completed", text: before.text }
        : { replay: "mismatched" };
    }
    if (this.#running.has(call.scope)) return { replay: "running" };
    this.#makeRoom(call.workspaceId);
    const made = make();
    if (!(made instanceof Promise)) {
      this.#remember(call, outcomeOf(made));
      return made;
    }
    this.#running.add(call.scope);
    return made
      .then((settled) => {
        this.#remember(call, outcomeOf(settled));
        return settled;
      })
      .finally(() => this.#running.delete(call.scope));
  }

  /** Looks at a few of the oldest each time: those that have expired go, the others go to the end of the line. */
  #makeRoom(workspaceId: string): void {
    const now = this.#clock.monotonic();
    let looked = 0;
    for (const [scope, remembered] of this.#outcomes) {
      // What goes to the end of the line would be met again.
      if (looked++ === LOOKED_AT) break;
      this.#forget(scope);
      if (remembered.until > now) this.#put(scope, remembered);
    }
    if (this.#outcomes.size >= OUTCOMES_MAX || this.#bytes >= BYTES_MAX) throw new ReplayStoreFull();
    // Nobody has more than is left for all others: one alone half, two a third each.
    const own = this.#shares.get(workspaceId);
    if (own && (own.count >= OUTCOMES_MAX - this.#outcomes.size || own.bytes >= BYTES_MAX - this.#bytes)) {
      throw new IdempotencyQuotaExceeded();
    }
  }

  #remember({ scope, fingerprint, workspaceId }: IdempotentCall, outcome: Outcome | undefined): void {
    if (!outcome) return;
    const until = this.#clock.monotonic() + Math.min(2 * outcome.windowMax, LIFE_MAX);
    this.#forget(scope);
    this.#put(scope, { workspaceId, fingerprint, text: outcome.text, until });
  }

  #put(scope: string, remembered: Remembered): void {
    this.#outcomes.set(scope, remembered);
    this.#add(remembered.workspaceId, 1, bytesOf(scope, remembered));
  }

  #forget(scope: string): void {
    const remembered = this.#outcomes.get(scope);
    if (!remembered) return;
    this.#outcomes.delete(scope);
    this.#add(remembered.workspaceId, -1, -bytesOf(scope, remembered));
  }

  #add(workspaceId: string, count: number, bytes: number): void {
    this.#bytes += bytes;
    const share = this.#shares.get(workspaceId) ?? { count: 0, bytes: 0 };
    share.count += count;
    share.bytes += bytes;
    if (share.count === 0) this.#shares.delete(workspaceId);
    else this.#shares.set(workspaceId, share);
  }
}

function bytesOf(scope: string, { text }: Remembered): number {
  return 300 + 2 * (scope.length + text.length);
}
