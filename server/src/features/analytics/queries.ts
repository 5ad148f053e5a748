import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { FairQueue } from "../../platform/rpc/fair-queue.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { Level } from "./levels.ts";
import {
  type CountsQuery,
  type DecisionQuery,
  type FoundDecision,
  isLong,
  type StatsQuery,
  type SubjectCounts,
  type Top,
  type TopQuery,
} from "./rollups.ts";
import type { Subjects } from "./subjects.ts";

const RANKING = { runningMax: 1, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 20 };
// Their store has few connections, and the wait for one is short: calls wait here, in turns of the workspaces.
const ANALYZING = { runningMax: 6, runningPerWorkspaceMax: 4, waitingPerWorkspaceMax: 5_000 };

// Statistics that may take as long as a ranking, which others do not wait for.
const LONG = { runningMax: 1, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 5_000 };

/** Maximum number of rows that a ranking examines: some tenths of a second of work. */
const RANKED_ROWS_MAX = 300_000;

export interface AnalyticsSource {
  /** Whether decisions are counted. */
  isOn: boolean;
  /** The counts, as JSON members without braces. */
  stats(query: StatsQuery): Promise<string>;
  counts(query: CountsQuery): Promise<SubjectCounts[]>;
  top(query: TopQuery): Promise<Top>;
  decisions(query: DecisionQuery): Promise<FoundDecision[]>;
  /** The names of keys or identities, as members of an answer. */
  names(subjects: Subjects): Promise<({ id: string } & object)[]>;
  /** Start of the oldest bucket that is stored. */
  oldest(level: Level, now: Instant): number;
}

/** Queries the analytics in turns of the workspaces. */
export class AnalyticsQueries {
  readonly #source: AnalyticsSource;
  readonly #analyses = new FairQueue(ANALYZING);
  readonly #longAnalyses = new FairQueue(LONG);
  /** Rankings examine many rows, so that they run one by one. */
  readonly #rankings = new FairQueue(RANKING);

  constructor(source: AnalyticsSource) {
    this.#source = source;
  }

  /** Whether decisions are counted. */
  get isOn(): boolean {
    return this.#source.isOn;
  }

  /** Start of the oldest bucket that is stored. */
  oldest(level: Level, now: Instant): number {
    return this.#source.oldest(level, now);
  }

  /** The counts as JSON members without braces, at once. */
  stats(query: StatsQuery): Promise<string> {
    return this.#source.stats(query);
  }

  /** The same in a queue. Rejects with a problem unless the buckets from the start on are stored. */
  async count(
    query: Omit<StatsQuery, "workspaceId">,
    { workspaceId, now }: { workspaceId: string; now: Instant },
  ): Promise<string> {
    this.#requireKept(query, now);
    const queue = isLong(query) ? this.#longAnalyses : this.#analyses;
    return queue.run(workspaceId, () => this.#source.stats({ ...query, workspaceId }));
  }

  /** The verifications of several subjects. Rejects like `count`. */
  async countEach(
    query: Omit<CountsQuery, "workspaceId">,
    { workspaceId, now }: { workspaceId: string; now: Instant },
  ) {
    this.#requireKept(query, now);
    return this.#analyses.run(workspaceId, () => this.#source.counts({ ...query, workspaceId }));
  }

  /** A page of the log of decisions. */
  find(query: DecisionQuery): Promise<FoundDecision[]> {
    return this.#analyses.run(query.workspaceId, () => this.#source.decisions(query));
  }

  /** The range, and the keys or identities with the most verifications, with names if wanted. Rejects like `count`. */
  async rank(
    { withNames, ...query }: Omit<TopQuery, "workspaceId" | "examinedMax"> & { withNames: boolean },
    { workspaceId, now }: { workspaceId: string; now: Instant },
  ) {
    this.#requireKept(query, now);
    const { entries, incompleteBefore } = await this.#rankings.run(workspaceId, () =>
      this.#source.top({ ...query, workspaceId, examinedMax: RANKED_ROWS_MAX }),
    );
    const subjects = { workspaceId, by: query.by, ids: entries.map(({ id }) => id) };
    const names = new Map(withNames ? (await this.#source.names(subjects)).map((one) => [one.id, one]) : []);
    const ranked = entries.map(({ id, ...counts }) => {
      const { id: _, ...name } = names.get(id) ?? {};
      return { id, name, counts };
    });
    const { start, end, level: granularity } = query;
    return { start, end, granularity, ranked, incompleteBefore };
  }

  /** @throws {Problem} unless the buckets from the start on are stored. */
  #requireKept({ level, start }: { level: Level; start: number }, now: Instant): void {
    const oldest = this.#source.oldest(level, now);
    if (start < oldest) {
      throw new Problem(
        "invalid_input",
        `Counts by the ${level} are kept from ${oldest} on (${new Date(oldest).toISOString()}): begin there or ` +
          "later, or ask for a coarser granularity.",
      );
    }
  }
}
