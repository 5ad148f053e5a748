import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import { OLDER_PROGRAMS } from "./record.ts";

/** The open holds of a workspace, by key. */
export type HoldsByKey = ReadonlyMap<string, number>;

export interface OpenHoldsOptions {
  clock: Pick<Clock, "monotonic" | "schedule">;
  maxima: { perKey: number; perWorkspace: number };
  /** Whether holds can be stored. */
  accept(): Promise<boolean>;
  /** Counts the open holds of a workspace. */
  count(workspaceId: string): Promise<HoldsByKey>;
  /** Whether other nodes open and close holds. */
  isShared: boolean;
}

/** Whose hold it is. */
interface Holder {
  readonly workspaceId: string;
  readonly keyId: string;
}

/** Smallest age at which a count is repeated. Other nodes open and close holds too. */
const AGE_MIN: Milliseconds = 5_000;
/** The same where no other node does. A count reads all holds that have not expired, so it takes long where many are made. */
const AGE_MIN_ALONE: Milliseconds = 60_000;
/** A count is repeated after this multiple of its own duration, if that is longer: it takes a twentieth of a connection. */
const AGE_PER_COUNT = 20;
/** How long a hold waits for the first count. */
const FIRST_COUNT_WAIT: Milliseconds = 1_000;
/** How long no other hold asks whether holds can be stored after they could not. */
const REFUSAL_AGE_MAX: Milliseconds = 1_000;
/** Workspaces whose holds are counted. */
const WORKSPACES_MAX = 10_000;

/** A number of holds by key, and their sum. */
class Tally {
  all = 0;
  readonly #byKey = new Map<string, number>();

  constructor(counts: Iterable<readonly [keyId: string, count: number]> = []) {
    for (const [keyId, count] of counts) this.add(keyId, count);
  }

  add(keyId: string, count: number): void {
    this.all += count;
    const sum = this.of(keyId) + count;
    if (sum === 0) this.#byKey.delete(keyId);
    else this.#byKey.set(keyId, sum);
  }

  of(keyId: string): number {
    return this.#byKey.get(keyId) ?? 0;
  }
}

interface Usage {
  /** The last count. */
  counted: Tally;
  /** What this node opened and closed since it began. */
  since: Tally;
  /** The same since the count in progress began. */
  sinceNext: Tally | undefined;
  /** Monotonic: when the next count may begin. */
  nextAt: Milliseconds;
  /** Resolves after the first count, or when no hold waits for it any more. */
  first: Promise<void> | undefined;
}

/**
 * Bounds the open holds of each key and each workspace: the last count of the database, and what this node opened and closed
 * since. So the bound is that of the whole service up to what other nodes did in the last seconds. Until the first count has
 * succeeded, it is that of what this node opened: a hold does not fail because the database is too slow to count.
 */
export class OpenHolds {
  readonly #options: OpenHoldsOptions;
  /** In the order of first use. */
  readonly #usages = new Map<string, Usage>();
  #isAccepted = false;
  /** The question whether holds can be stored, while it is asked. */
  #asking: Promise<void> | undefined;
  /** Monotonic: when it may be asked again. */
  #askAt: Milliseconds = 0;

  constructor(options: OpenHoldsOptions) {
    this.#options = options;
  }

  /**
   * Takes room for a hold that is about to be opened: at once, except for the first holds of a workspace.
   *
   * @throws {Problem} if the key or the workspace has its maximum number, or an earlier release runs beside this one.
   */
  add(holder: Holder): void | Promise<void> {
    const usage = this.#isAccepted ? this.#usages.get(holder.workspaceId) : undefined;
    return usage && !usage.first ? this.#addTo(usage, holder) : this.#addFirst(holder);
  }

  async #addFirst(holder: Holder): Promise<void> {
    if (!this.#isAccepted) await this.#ask();
    if (!this.#isAccepted) throw new Problem("precondition_failed", OLDER_PROGRAMS);
    const usage = this.#usages.get(holder.workspaceId) ?? this.#begin(holder.workspaceId);
    if (usage.first) await usage.first;
    this.#addTo(usage, holder);
  }

  #addTo(usage: Usage, { workspaceId, keyId }: Holder): void {
    const { maxima, clock } = this.#options;
    if (usage.sinceNext === undefined && clock.monotonic() >= usage.nextAt) void this.#count(workspaceId, usage);
    const { counted, since } = usage;
    if (counted.of(keyId) + since.of(keyId) >= maxima.perKey) throw full("key", "LATCHKEY_HOLDS_PER_KEY");
    if (counted.all + since.all >= maxima.perWorkspace) throw full("workspace", "LATCHKEY_HOLDS_PER_WORKSPACE");
    change(usage, keyId, 1);
  }

  /** A hold was closed, or was not opened after all. */
  remove({ workspaceId, keyId }: Holder): void {
    const usage = this.#usages.get(workspaceId);
    if (usage) change(usage, keyId, -1);
  }

  /** Asks whether holds can be stored: once for all calls that come together, because each question is a transaction. */
  async #ask(): Promise<void> {
    const { accept, clock } = this.#options;
    if (clock.monotonic() < this.#askAt) return;
    this.#asking ??= accept()
      .then((isAccepted) => {
        this.#isAccepted = isAccepted;
        if (!isAccepted) this.#askAt = clock.monotonic() + REFUSAL_AGE_MAX;
      })
      .finally(() => {
        this.#asking = undefined;
      });
    await this.#asking;
  }

  /** The usage of a workspace, whose first count it begins. All calls share the wait for it. */
  #begin(workspaceId: string): Usage {
    const usage: Usage = {
      counted: new Tally(),
      since: new Tally(),
      sinceNext: undefined,
      nextAt: 0,
      first: undefined,
    };
    usage.first = this.#waitFor(this.#count(workspaceId, usage)).finally(() => {
      usage.first = undefined;
    });
    const [oldest] = this.#usages.keys();
    if (oldest !== undefined && this.#usages.size >= WORKSPACES_MAX) this.#usages.delete(oldest);
    this.#usages.set(workspaceId, usage);
    return usage;
  }

  async #waitFor(count: Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.schedule(FIRST_COUNT_WAIT, resolve);
    await Promise.race([count, promise]);
    timer.cancel();
  }

  /** Counts. After a failure the last count stays, and a later hold counts again. */
  async #count(workspaceId: string, usage: Usage): Promise<void> {
    const { clock, count, isShared } = this.#options;
    const startedAt = clock.monotonic();
    const since = new Tally();
    usage.sinceNext = since;
    let age = AGE_MIN;
    try {
      usage.counted = new Tally(await count(workspaceId));
      usage.since = since;
      if (!isShared) age = AGE_MIN_ALONE;
    } catch {
      // What this node opened and closed since the last count applies.
    } finally {
      usage.sinceNext = undefined;
      const now = clock.monotonic();
      usage.nextAt = now + Math.max(age, (now - startedAt) * AGE_PER_COUNT);
    }
  }
}

function change({ since, sinceNext }: Usage, keyId: string, count: number): void {
  since.add(keyId, count);
  sinceNext?.add(keyId, count);
}

function full(holder: string, setting: string): Problem {
  return new Problem(
    "workspace_quota_exceeded",
    `This ${holder} has its maximum number of open holds (${setting}). Nothing was charged.`,
    { headers: { "retry-after": String(AGE_MIN / 1_000) } },
  );
}
