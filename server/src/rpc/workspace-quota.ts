import type { Clock, Milliseconds } from "../clock/clock.ts";
import { COUNT_STEP, type CountedTable, type CountStep } from "../store/administration/workspace-counts.ts";
import { Problem } from "./problems.ts";

export interface WorkspaceQuotaOptions {
  clock: Clock;
  /** Largest number of records of a workspace. */
  max: number;
  /** Counts the records of a workspace up to `limit`. */
  count(workspaceId: string, limit: number): Promise<number>;
}

const names: Readonly<Record<CountedTable, string>> = {
  keys: "keys",
  ratelimit_namespaces: "rate limit namespaces",
  idempotency_records: "idempotency records",
};
/** Seconds. The time at which records are deleted is unknown. */
const RETRY_AFTER = "60";

/** The problem of a call that would exceed the quota. */
export function overQuota(counted: CountedTable): Problem {
  return new Problem(
    "workspace_quota_exceeded",
    `This workspace has its maximum number of ${names[counted]}. Nothing was done.`,
    { headers: { "retry-after": RETRY_AFTER } },
  );
}

/** Counts the records of a workspace in steps, so that other reads run in between. Deleted records do not count. */
export async function countInSteps(
  table: CountedTable,
  workspaceId: string,
  limit: number,
  step: (step: CountStep) => Promise<{ count: number; last: string | null }>,
): Promise<number> {
  if (table === "idempotency_records") return (await step({ table, workspaceId, after: "", limit })).count;
  let counted = 0;
  for (let after: string | null = ""; after !== null && counted < limit; ) {
    const { count, last } = await step({ table, workspaceId, after, limit: COUNT_STEP });
    counted += count;
    after = count < COUNT_STEP ? null : last;
  }
  return counted;
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
