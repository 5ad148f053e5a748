import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { type Allowance, quotas, settingOf } from "../store/quotas/quotas.ts";
import { Problem } from "./problems.ts";

export interface WorkspaceQuotaOptions {
  clock: Clock;
  /** Largest number of records of a workspace. */
  max: number;
  /** Counts the records of a workspace up to `limit`. */
  count(workspaceId: string, limit: number): Promise<number>;
}

/** Seconds. The time at which records are deleted is unknown. */
const RETRY_AFTER = "60";

/** The problem of a call that would exceed a quota. */
export function overQuota(quota: Allowance | "idempotencyRecords"): Problem {
  const [things, setting] =
    quota === "idempotencyRecords"
      ? ["stored calls with an Idempotency-Key", "LATCHKEY_IDEMPOTENCY_RECORDS_PER_WORKSPACE"]
      : [quota === "bytes" ? "stored bytes" : quotas[quota].things, settingOf(quota)];
  return new Problem(
    "workspace_quota_exceeded",
    `This workspace has its maximum number of ${things} (${setting}). Nothing was done.`,
    { headers: { "retry-after": RETRY_AFTER } },
  );
}

interface Usage {
  /** The last count. */
  counted: number;
  /** Records that this node added since. */
  added: number;
  /** Monotonic; undefined: not counted yet. */
  countedAt: Milliseconds | undefined;
  isCounting: boolean;
}

/** Largest age of a count. Other nodes add records too. */
const AGE_MAX: Milliseconds = 600_000;
/** Interval between counts of a workspace that is full or whose count failed. */
const RETRY_INTERVAL: Milliseconds = 5_000;
/** Smallest number of additions after which a workspace near its quota is counted again. */
const ADDED_MIN = 100;
/** Workspaces whose usage is cached. */
const WORKSPACES_MAX = 10_000;

/**
 * A quota on the records of each workspace that adds no latency to calls. It counts in the background, more often near
 * the quota, and adds what this node created since. The quota is approximate: records added during a count, or by other
 * nodes since the last count, may exceed it.
 */
export class WorkspaceQuota {
  readonly #options: WorkspaceQuotaOptions;
  /** In the order of first use. */
  readonly #usages = new Map<string, Usage>();

  constructor(options: WorkspaceQuotaOptions) {
    this.#options = options;
  }

  get max(): number {
    return this.#options.max;
  }

  /** Whether the workspace may add a record. True before the first count. */
  hasCapacity(workspaceId: string): boolean {
    const usage = this.#usage(workspaceId);
    this.#refresh(workspaceId, usage);
    return usage.counted + usage.added < this.#options.max;
  }

  /** Adds new records to the usage. They may turn out not to be stored. */
  record(workspaceId: string, count = 1): void {
    this.#usage(workspaceId).added += count;
  }

  #usage(workspaceId: string): Usage {
    let usage = this.#usages.get(workspaceId);
    if (usage === undefined) {
      usage = { counted: 0, added: 0, countedAt: undefined, isCounting: false };
      if (this.#usages.size >= WORKSPACES_MAX) this.#usages.delete(this.#usages.keys().next().value!);
      this.#usages.set(workspaceId, usage);
    }
    return usage;
  }

  #refresh(workspaceId: string, usage: Usage): void {
    if (usage.isCounting || !this.#isOutdated(usage)) return;
    const { clock, count, max } = this.#options;
    const before = usage.added;
    usage.isCounting = true;
    count(workspaceId, max)
      .then((counted) => {
        usage.counted = counted;
        usage.added -= before;
      })
      // A later call counts again.
      .catch(() => {})
      .finally(() => {
        usage.countedAt = clock.monotonic();
        usage.isCounting = false;
      });
  }

  #isOutdated({ counted, added, countedAt }: Usage): boolean {
    if (countedAt === undefined) return true;
    const { clock, max } = this.#options;
    const age = clock.monotonic() - countedAt;
    if (counted + added >= max) return age >= RETRY_INTERVAL;
    return age >= AGE_MAX || added >= Math.max(ADDED_MIN, (max - counted) / 2);
  }
}
