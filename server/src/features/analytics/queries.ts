import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { FairQueue } from "../../platform/rpc/fair-queue.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { Level } from "./levels.ts";
import type { StatsQuery, Top, TopQuery } from "./rollups.ts";
import type { Subjects } from "./subjects.ts";

const RANKING = { runningMax: 1, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 20 };
// Their store has few connections, and the wait for one is short: calls wait here, in turns of the workspaces.
const ANALYZING = { runningMax: 6, runningPerWorkspaceMax: 4, waitingPerWorkspaceMax: 5_000 };

/** Maximum number of rows that a ranking examines: some tenths of a second of work. */
const RANKED_ROWS_MAX = 300_000;

export interface AnalyticsSource {
  /** Whether decisions are counted. */
  isOn: boolean;
  /** The counts, as JSON members without braces. */
  stats(question: StatsQuery): Promise<string>;
  top(question: TopQuery): Promise<Top>;
  /** The names of keys or identities, as members of an answer. */
  names(subjects: Subjects): Promise<({ id: string } & object)[]>;
  /** Start of the oldest bucket that is stored. */
  oldest(level: Level, now: Instant): number;
}

/** Queries the analytics in turns of the workspaces. */
export class AnalyticsQueries {
  readonly #source: AnalyticsSource;
  readonly #analyses = new FairQueue(ANALYZING);
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
  stats(question: StatsQuery): Promise<string> {
    return this.#source.stats(question);
  }

  /** The same in a queue. Rejects with a problem unless the buckets from the start on are stored. */
  async count(question: StatsQuery, { workspaceId, now }: { workspaceId: string; now: Instant }): Promise<string> {
    this.#requireKept(question, now);
    return this.#analyses.run(workspaceId, () => this.#source.stats(question));
  }

  /** The keys or identities with the most verifications, with their names if wanted. Rejects like `count`. */
  async rank(
    { withNames, ...question }: Omit<TopQuery, "workspaceId" | "examinedMax"> & { withNames: boolean },
    { workspaceId, now }: { workspaceId: string; now: Instant },
  ) {
    this.#requireKept(question, now);
    const { entries, incompleteBefore } = await this.#rankings.run(workspaceId, () =>
      this.#source.top({ ...question, workspaceId, examinedMax: RANKED_ROWS_MAX }),
    );
    const subjects = { workspaceId, by: question.by, ids: entries.map(({ id }) => id) };
    const names = new Map(withNames ? (await this.#source.names(subjects)).map((one) => [one.id, one]) : []);
    const ranked = entries.map(({ id, ...counts }) => {
      const { id: _, ...name } = names.get(id) ?? {};
      return { id, name, counts };
    });
    return { ranked, incompleteBefore };
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
