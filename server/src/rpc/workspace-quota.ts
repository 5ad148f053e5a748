import type { Clock, Milliseconds } from "../clock/clock.ts";
import { COUNT_STEP, type CountedTable, type CountStep } from "../store/administration/workspace-counts.ts";
import { Problem } from "./problems.ts";

export interface WorkspaceQuotaOptions {
  clock: Clock;
  /** Records that a workspace may have. */
  max: number;
  /** Counts the records of a workspace, no further than `limit`. */
  count(workspaceId: string, limit: number): Promise<number>;
}

const names: Readonly<Record<CountedTable, string>> = {
  keys: "keys",
  ratelimit_namespaces: "rate limit namespaces",
  idempotency_records: "remembered calls with an Idempotency-Key",
};
/** Seconds; nobody knows when there is room again. */
const RETRY_AFTER = "60";

/** What a call gets whose record would be one too many. */
export function overQuota(counted: CountedTable): Problem {
  return new Problem(
    "workspace_quota_exceeded",
    `This workspace has as many ${names[counted]} as it may have. Nothing was done.`,
    { headers: { "retry-after": RETRY_AFTER } },
  );
}

/** Counts the living records of a workspace step by step, so that others can read in between. */
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
  /** What was counted last. */
  counted: number;
  /** What was added here since. */
  added: number;
  /** Monotonic; undefined: never counted. */
  countedAt: Milliseconds | undefined;
  isCounting: boolean;
}

/** How old a count may be: other nodes add records too. */
const AGE_MAX: Milliseconds = 600_000;
/** How often a workspace is counted that has no room, or whose count failed. */
const RETRY_INTERVAL: Milliseconds = 5_000;
/** Additions after which a workspace near its bound is counted again, at least. */
const ADDED_MIN = 100;
/** Workspaces whose usage is known at a time. */
const WORKSPACES_MAX = 10_000;

/**
 * A bound on the records of each workspace that costs a call nothing: counts are taken in the background, seldom while
 * there is much room and more often when there is little, and what was added since is added up. So the bound holds
 * approximately: it may be exceeded by what is added while a count is under way, or by other nodes since the last one.
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

  /** Whether the workspace may have another record. A workspace that was not counted yet may. */
  hasCapacity(workspaceId: string): boolean {
    const usage = this.#usage(workspaceId);
    this.#refresh(workspaceId, usage);
    return usage.counted + usage.added < this.#options.max;
  }

  /** Notes that records were added, or may have been. */
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
      // The next call after a while counts again.
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
