import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { type Allowance, type Quota, quotaNames } from "../store/quotas/quotas.ts";
import {
  COUNT_STEP,
  type CountPlace,
  type CountStep,
  FIRST,
  type RecordedCount,
  type Taken,
  type Usage,
} from "../store/quotas/workspace-usage.ts";
import { overQuota } from "./workspace-quota.ts";

export interface QuotaCountsOptions {
  clock: Clock;
  find(of: { workspaceId: string; quota: Quota }): Promise<Usage>;
  /** One step of a count. */
  count(step: CountStep): Promise<{ count: number; last: CountPlace | null }>;
  record(count: Omit<RecordedCount, "max"> & { quota: Quota }): Promise<unknown>;
  /** The number of workspaces that nearly reached each quota. */
  countNear(): Promise<Partial<Record<Allowance, number>>>;
}

/** Interval between two counts of the same rows, and for how long a quota that was exceeded counts as full. */
const INTERVAL: Milliseconds = 5_000;
/** Counts that are remembered. */
const REMEMBERED_MAX = 10_000;

/**
 * Counts the rows of workspaces in the background, in steps so that other reads run in between, where a transaction found
 * that its last count is too old.
 */
export class QuotaCounts {
  readonly #options: QuotaCountsOptions;
  /** When rows were last counted, by workspace and quota; monotonic, in the order of the counts. */
  readonly #countedAt = new Map<string, Milliseconds>();
  readonly #fullUntil = new Map<string, Milliseconds>();
  /** Calls that were rejected, by quota. */
  readonly rejected = new Map<Allowance, number>([...quotaNames, "bytes" as const].map((quota) => [quota, 0]));
  /** The number of workspaces that nearly reached each quota, as of the last `refresh`. */
  near: Partial<Record<Allowance, number>> = {};
  #refreshedAt = Number.NEGATIVE_INFINITY;

  constructor(options: QuotaCountsOptions) {
    this.#options = options;
  }

  /**
   * Notes what a transaction found.
   *
   * @throws {Problem} if it was rolled back because of a quota.
   */
  note(workspaceId: string, { exceeded, outdated }: Taken): void {
    const { clock } = this.#options;
    for (const quota of outdated) void this.#count(workspaceId, quota);
    if (exceeded === undefined) return;
    remember(this.#fullUntil, nameOf(workspaceId, exceeded), clock.monotonic() + INTERVAL);
    this.rejected.set(exceeded, (this.rejected.get(exceeded) ?? 0) + 1);
    throw overQuota(exceeded);
  }

  /** @throws {Problem} if a transaction exceeded the quota some seconds ago. */
  requireCapacity(workspaceId: string, quota: Quota): void {
    const until = this.#fullUntil.get(nameOf(workspaceId, quota));
    if (until !== undefined && this.#options.clock.monotonic() < until) throw overQuota(quota);
  }

  /** Rejects with a problem if the workspace has `max` rows, as far as the database knows. */
  async requireRoom(workspaceId: string, quota: Quota, max: number): Promise<void> {
    const { used } = await this.#options.find({ workspaceId, quota });
    if (used !== null && used >= max) this.note(workspaceId, { exceeded: quota, outdated: [quota] });
  }

  /** Reads `near` again, unless that was done some seconds ago. */
  refresh(): void {
    const { clock, countNear } = this.#options;
    if (clock.monotonic() - this.#refreshedAt < INTERVAL) return;
    this.#refreshedAt = clock.monotonic();
    countNear().then(
      (near) => {
        this.near = near;
      },
      // The next one tries again.
      () => {},
    );
  }

  async #count(workspaceId: string, quota: Quota): Promise<void> {
    const { clock, find, count, record } = this.#options;
    const name = nameOf(workspaceId, quota);
    const before = this.#countedAt.get(name);
    if (before !== undefined && clock.monotonic() - before < INTERVAL) return;
    remember(this.#countedAt, name, Number.POSITIVE_INFINITY);
    try {
      // First: what is added meanwhile counts twice, rather than not at all.
      const { total } = await find({ workspaceId, quota });
      let sum = 0;
      for (let after: CountPlace | null = FIRST; after !== null; ) {
        const step: { count: number; last: CountPlace | null } = await count({
          workspaceId,
          quota,
          after,
          limit: COUNT_STEP,
        });
        sum += step.count;
        after = step.last;
      }
      await record({ workspaceId, quota, count: sum, total, now: clock.now() });
    } catch {
      // The next transaction that finds it too old counts again.
    } finally {
      remember(this.#countedAt, name, clock.monotonic());
    }
  }
}

function nameOf(workspaceId: string, quota: Allowance): string {
  return `${quota} ${workspaceId}`;
}

function remember(map: Map<string, Milliseconds>, name: string, value: Milliseconds): void {
  map.delete(name);
  if (map.size >= REMEMBERED_MAX) map.delete(map.keys().next().value!);
  map.set(name, value);
}
