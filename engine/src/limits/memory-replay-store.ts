import type { Clock, Milliseconds } from "../clock/clock.ts";
import { IdempotencyQuotaExceeded } from "../errors/idempotency.ts";
import { type Outcome, type Replay, type ReplayableCall, type ReplayStore, ReplayStoreFull } from "./replay-store.ts";

/** Maximum number of stored outcomes, and their bytes. */
const OUTCOMES_MAX = 100_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** Outcomes checked for expiry at each insertion: more than one, so that expired ones do not accumulate. */
const CHECKS_PER_INSERT = 4;
/** Maximum lifetime of an outcome. */
const LIFE_MAX: Milliseconds = 24 * 3_600_000;

interface StoredOutcome {
  workspaceId: string;
  fingerprint: string;
  text: string;
  /** Monotonic time, so that a step of the wall clock does not change the lifetime. */
  expiresAt: Milliseconds;
}

/** Stores outcomes in memory, for counters in memory. An outcome lives for twice the longest window that was charged. */
export class MemoryReplayStore implements ReplayStore {
  readonly isInDatabase = false;
  readonly #clock: Clock;
  readonly #outcomes = new Map<string, StoredOutcome>();
  readonly #running = new Set<string>();
  /** Number and bytes of the outcomes of each workspace. */
  readonly #shares = new Map<string, { count: number; bytes: number }>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  find({ scope, fingerprint }: ReplayableCall): Replay | undefined {
    const before = this.#outcomes.get(scope);
    if (!before || this.#clock.monotonic() >= before.expiresAt) return undefined;
    return before.fingerprint === fingerprint ? { replay: "completed", text: before.text } : { replay: "mismatched" };
  }

  once<T extends object>(
    call: ReplayableCall,
    make: () => T | Promise<T>,
    outcomeOf: (made: T) => Outcome | undefined,
  ): T | Replay | Promise<T> {
    const before = this.find(call);
    if (before) return before;
    if (this.#running.has(call.scope)) return { replay: "running" };
    this.#makeRoom(call.workspaceId);
    const made = make();
    if (!(made instanceof Promise)) {
      this.#store(call, outcomeOf(made));
      return made;
    }
    this.#running.add(call.scope);
    return made
      .then((settled) => {
        this.#store(call, outcomeOf(settled));
        return settled;
      })
      .finally(() => this.#running.delete(call.scope));
  }

  /** Checks a few of the oldest outcomes: deletes expired ones and moves the others to the end. */
  #makeRoom(workspaceId: string): void {
    const now = this.#clock.monotonic();
    let checked = 0;
    for (const [scope, stored] of this.#outcomes) {
      // A Map iterates over entries that were moved to the end, so the loop needs a bound.
      if (checked++ === CHECKS_PER_INSERT) break;
      this.#delete(scope);
      if (stored.expiresAt > now) this.#put(scope, stored);
    }
    if (this.#outcomes.size >= OUTCOMES_MAX || this.#bytes >= BYTES_MAX) throw new ReplayStoreFull();
    // A workspace may have at most as much as is free for all others: one alone half, two a third each.
    const own = this.#shares.get(workspaceId);
    if (own && (own.count >= OUTCOMES_MAX - this.#outcomes.size || own.bytes >= BYTES_MAX - this.#bytes)) {
      throw new IdempotencyQuotaExceeded();
    }
  }

  #store({ scope, fingerprint, workspaceId }: ReplayableCall, outcome: Outcome | undefined): void {
    if (!outcome) return;
    const expiresAt = this.#clock.monotonic() + Math.min(2 * outcome.windowMax, LIFE_MAX);
    this.#delete(scope);
    this.#put(scope, { workspaceId, fingerprint, text: outcome.text, expiresAt });
  }

  #put(scope: string, stored: StoredOutcome): void {
    this.#outcomes.set(scope, stored);
    this.#add(stored.workspaceId, 1, bytesOf(scope, stored));
  }

  #delete(scope: string): void {
    const stored = this.#outcomes.get(scope);
    if (!stored) return;
    this.#outcomes.delete(scope);
    this.#add(stored.workspaceId, -1, -bytesOf(scope, stored));
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

function bytesOf(scope: string, { text }: StoredOutcome): number {
  return 300 + 2 * (scope.length + text.length);
}
