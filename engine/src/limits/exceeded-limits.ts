import type { Charge, LimitDecision } from "./counters.ts";

/** The first call in a window that a limit rejected, or would have rejected. */
export interface ExceededLimit {
  /** The counter of the limit. */
  readonly counter: string;
  readonly workspaceId: string;
  /** The key, identity or namespace that the limit belongs to. */
  readonly objectId: string;
  readonly keyId?: string;
  readonly apiId?: string;
  readonly identityId?: string;
  readonly externalId?: string;
  readonly namespaceId?: string;
  readonly identifier?: string;
  readonly name?: string;
  readonly limit: number;
  readonly duration: number;
  /** `true`: the limit is in shadow mode, and rejected nothing. */
  readonly shadow?: true;
  /** The end of the window that is aligned to the epoch, in epoch milliseconds. */
  readonly windowEnd: number;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** A verified key. */
interface LimitedKey {
  readonly keyId: string;
  readonly apiId: string;
  readonly identity: { readonly id: string; readonly externalId: string } | null;
}

/** Windows that are remembered, so that one is reported once. Beyond that they are forgotten; the database knows them too. */
const WINDOWS_MAX = 10_000;

/** Exceeded limits of one workspace in a minute. */
export const EXCEEDED_PER_MINUTE = 60;

/** Exceeded limits that wait to be written. */
const WAITING_MAX = 5_000;

const MINUTE = 60_000;

/**
 * Collects the first rejection of each limit and window until they are written as events, also those that limits in shadow
 * mode would have made. Only the first one of a window allocates. Bounded in memory, and for each workspace in number.
 */
export class ExceededLimits {
  /** The end of the window that was reported last, by counter. */
  readonly #windowEnds = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  #minute = 0;
  #waiting: ExceededLimit[] = [];
  /** Those that were not collected because there were too many, for the metrics. */
  dropped = 0;

  /**
   * Collects the limits that reject a call, or would; none for a call that all allow. `key`: the verified key; null for a limit of a namespace. The
   * counters have the names that `limitCounter` and `ratelimits.limit` give them.
   */
  add(workspaceId: string, charges: readonly Charge[], decided: LimitDecision, key: LimitedKey | null): void {
    if (decided.allowed && !decided.isShadowed) return;
    const { limits, at } = decided;
    for (let i = 0; i < charges.length; i++) {
      if (limits[i]!.allowed) continue;
      const { counter, limit, duration, shadow } = charges[i]!;
      // The limits of derived keys are many, and concern only their holders.
      if (counter.startsWith("derived\0")) continue;
      const windowEnd = (Math.floor(at / duration) + 1) * duration;
      const reported = shadow ? `shadow\0${counter}` : counter;
      if (this.#windowEnds.get(reported) === windowEnd) continue;
      if (!this.#admits(workspaceId, at)) {
        this.dropped++;
        continue;
      }
      if (this.#windowEnds.size >= WINDOWS_MAX) this.#windowEnds.clear();
      this.#windowEnds.set(reported, windowEnd);
      const limited = { ...describe(counter, key), counter, workspaceId, limit, duration, windowEnd, at };
      this.#waiting.push(shadow ? { ...limited, shadow } : limited);
    }
  }

  /** Returns what was collected since the last call. */
  take(): ExceededLimit[] {
    const taken = this.#waiting;
    if (taken.length > 0) this.#waiting = [];
    return taken;
  }

  /** Adds what another thread collected, or what could not be written. */
  adopt(exceeded: readonly ExceededLimit[]): void {
    const room = WAITING_MAX - this.#waiting.length;
    this.#waiting.push(...exceeded.slice(0, room));
    this.dropped += Math.max(0, exceeded.length - room);
  }

  #admits(workspaceId: string, at: number): boolean {
    const minute = Math.floor(at / MINUTE);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#counts.clear();
    }
    const count = this.#counts.get(workspaceId) ?? 0;
    if (count >= EXCEEDED_PER_MINUTE || this.#waiting.length >= WAITING_MAX) return false;
    this.#counts.set(workspaceId, count + 1);
    return true;
  }
}

/** The members that the kind of a counter decides. */
function describe(counter: string, key: LimitedKey | null) {
  const [kind, ownerId = "", ...rest] = counter.split("\0");
  const name = rest.join("\0");
  if (key === null) return { objectId: ownerId, namespaceId: ownerId, identifier: name };
  const { keyId, apiId, identity } = key;
  const about = { keyId, apiId, ...(identity && { externalId: identity.externalId }), name };
  return kind === "identity" ? { objectId: ownerId, identityId: ownerId, ...about } : { objectId: keyId, ...about };
}
