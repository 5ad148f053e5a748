import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { Place } from "../../platform/store/cursor.ts";
import type { Lease } from "../../platform/store/lease.ts";
import { partsMax, type UsageLevel } from "./batch.ts";
import { type Level, levels } from "./levels.ts";
import { sumOf } from "./sums.ts";

/** A query for the statistics of one subject, in whole buckets of one level. */
export interface StatsQuery {
  readonly about: "verifications" | "ratelimits";
  readonly workspaceId: string;
  /** Id of a key, an API, an identity, a budget or a rate limit namespace. */
  readonly subject: string;
  readonly level: Level;
  /** Start of the first bucket. */
  readonly start: number;
  /** End of the last bucket. */
  readonly end: number;
  /** Only verifications with all of these tags; sorted, without duplicates. */
  readonly tags: readonly string[];
  /** Only this identifier of the namespace. */
  readonly identifier?: string | undefined;
}

/** Rows that a short query may read: some tenths of a second of work. */
const SHORT_ROWS_MAX = 100_000;

/** Whether a query may read so many rows that others should not wait for it. */
export function isLong({ subject, level, start, end }: Omit<StatsQuery, "workspaceId">): boolean {
  return ((end - start) / levels[level]) * partsMax(subject) > SHORT_ROWS_MAX;
}

/** A query for the verifications of several subjects, in whole buckets of one level. */
export interface CountsQuery {
  readonly workspaceId: string;
  /** Ids of keys, APIs or identities. */
  readonly subjects: readonly string[];
  readonly level: Level;
  /** Start of the first bucket. */
  readonly start: number;
  /** End of the last bucket. */
  readonly end: number;
}

/** The verifications of a subject in each bucket that has some, in order. */
export interface SubjectCounts {
  readonly subject: string;
  readonly series: readonly { readonly time: number; readonly total: number; readonly valid: number }[];
}

/** A query for the keys, or the identities of keys, with the most verifications in a workspace. */
export interface TopQuery {
  readonly by: "key" | "identity";
  readonly workspaceId: string;
  /** Only keys of this API. */
  readonly apiId?: string | undefined;
  readonly level: UsageLevel;
  /** Start of the first bucket. */
  readonly start: number;
  /** End of the last bucket. */
  readonly end: number;
  /** Maximum number of entries. */
  readonly limit: number;
  /** Maximum number of rows to examine, the newest buckets first. */
  readonly examinedMax: number;
}

/** The verifications of a key or an identity in a range. */
export interface TopEntry {
  /** The id of the key or the identity. */
  readonly id: string;
  readonly total: number;
  readonly valid: number;
  /** Verifications by code, in the order of the codes. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly creditsSpent: number;
}

export interface Top {
  /** The entry with the most verifications first; entries with the same number by id. */
  readonly entries: readonly TopEntry[];
  /** Start of the first bucket that is counted completely; present if the range has `examinedMax` rows or more. */
  readonly incompleteBefore?: number;
}

/** A query for decisions of the log, the newest first. */
export interface DecisionQuery {
  readonly workspaceId: string;
  /** Only decisions at or after this time, and before that one. */
  readonly start?: number | undefined;
  readonly end?: number | undefined;
  readonly codes?: readonly string[] | undefined;
  /** Only decisions that are refusals. */
  readonly refused?: boolean | undefined;
  readonly keyId?: string | undefined;
  readonly apiId?: string | undefined;
  readonly identityId?: string | undefined;
  readonly namespaceId?: string | undefined;
  readonly requestId?: string | undefined;
  /** What the caller may read; undefined: everything. */
  readonly readable?: Readable | undefined;
  /** The first entry of the page; undefined: the newest one. */
  readonly from?: Place | undefined;
  readonly limit: number;
}

/** The decisions that a caller may read. */
export interface Readable {
  /** Undefined: of all APIs, and of unknown keys. */
  readonly apiIds: readonly string[] | undefined;
  /** Undefined: of all namespaces. */
  readonly namespaceIds: readonly string[] | undefined;
}

/** A decision as the log has it; `answer` is the JSON text of a `DecisionAnswer`. */
export interface FoundDecision {
  readonly id: string;
  readonly at: number;
  readonly answer: string;
}

/** What a store keeps of the log of decisions. */
export interface LogBounds {
  readonly life: Milliseconds;
  readonly rowsPerWorkspace: number;
}

/** A store of rollups. */
export interface Rollups {
  /**
   * Adds batches, each once: a batch with a number not above the last one of its recorder is a repetition. All or
   * nothing, if the store has transactions.
   */
  write(batches: readonly string[]): Promise<void>;
  /**
   * Does a part of what the writes have left for later, if there is enough of it. Returns whether there is more to do at
   * once. No answer depends on it.
   */
  merge(now: Instant): Promise<boolean>;
  /** Returns the counts as JSON members, without braces. */
  stats(query: StatsQuery): Promise<string>;
  /** Returns the counts of the subjects that have some. */
  counts(query: CountsQuery): Promise<SubjectCounts[]>;
  /** Returns the keys or identities with the most verifications. */
  top(query: TopQuery): Promise<Top>;
  /** Returns decisions of the log. */
  decisions(query: DecisionQuery): Promise<FoundDecision[]>;
  /**
   * Deletes some of the expired buckets. With a lease only while this node has it.
   *
   * @throws {LeaseLost}
   */
  prune(now: Instant, lease?: Lease): Promise<Pruned>;
  close(): Promise<void>;
}

/** What a deletion of expired buckets did. */
export interface Pruned {
  /** Deleted rows. */
  readonly rows: number;
  /** Whether there may be more to delete. */
  readonly more: boolean;
}

/** A number of a row. Some databases return sums as text. */
type Stored = number | string | bigint;

/** The result of a `StatsQuery` as a store returns it, for `statsText`. */
export interface StatsRows {
  readonly series: readonly {
    readonly time: Stored;
    readonly outcome: string;
    readonly counts: Stored;
    readonly amounts: Stored;
  }[];
  /** The most frequent tags, or the most denied identifiers. */
  readonly top: readonly { readonly name: string; readonly total: Stored; readonly good: Stored }[];
  /** The count of the overflow parts; null if there are none. */
  readonly overflow: Stored | null;
}

/** The result of a `CountsQuery` as a store returns it, for `countsFrom`. */
export type CountsRows = readonly {
  readonly subject: string;
  readonly time: Stored;
  readonly total: Stored;
  readonly valid: Stored;
}[];

/** A sum that a store returned, or the largest one that is kept: not every store bounds what it adds up. */
function keptNumber(sum: Stored): number {
  return sumOf(0, Number(sum));
}

/** The counts of each subject in the order of time. */
export function countsFrom(rows: CountsRows): SubjectCounts[] {
  const buckets = rows.map(({ subject, time, total, valid }) => ({
    subject,
    bucket: { time: Number(time), total: keptNumber(total), valid: keptNumber(valid) },
  }));
  return [...Map.groupBy(buckets, ({ subject }) => subject)].map(([subject, of]) => ({
    subject,
    series: of.map(({ bucket }) => bucket).sort((a, b) => a.time - b.time),
  }));
}

/** The result of a `TopQuery` as a store returns it, for `topFrom`. */
export interface TopRows {
  /** The counts of the entries, each outcome once. */
  readonly counts: readonly {
    readonly id: string;
    readonly outcome: string;
    readonly counts: Stored;
    readonly credits: Stored;
  }[];
  /** The number of rows that were examined, and the start of their oldest bucket. */
  readonly examined: Stored;
  readonly oldest: Stored;
}

/** The entries in their order. */
export function topFrom({ level, examinedMax }: TopQuery, { counts, examined, oldest }: TopRows): Top {
  const byId = new Map<string, Map<string, number>>();
  const credits = new Map<string, number>();
  for (const row of counts) {
    const { id, outcome } = row;
    if (!byId.has(id)) byId.set(id, new Map());
    if (Number(row.counts) > 0) byId.get(id)!.set(outcome, keptNumber(row.counts));
    credits.set(id, sumOf(credits.get(id) ?? 0, Number(row.credits)));
  }
  const entries = [...byId].map(([id, outcomes]) => ({
    id,
    total: [...outcomes.values()].reduce(sumOf, 0),
    valid: outcomes.get("VALID") ?? 0,
    outcomes: Object.fromEntries([...outcomes].sort(([a], [b]) => (a < b ? -1 : 1))),
    creditsSpent: credits.get(id)!,
  }));
  entries.sort((a, b) => b.total - a.total || (a.id < b.id ? -1 : 1));
  // The oldest bucket may have been examined in part.
  return { entries, ...(Number(examined) >= examinedMax && { incompleteBefore: Number(oldest) + levels[level] }) };
}

/** Maximum number of tags or identifiers in an answer. */
export const TOP_MAX = 100;

/** The rows as JSON members, with empty buckets. */
export function statsText(query: StatsQuery, rows: StatsRows): string {
  const stats = inNumbers(rows);
  return query.about === "verifications" ? verificationText(query, stats) : ratelimitText(query, stats);
}

type Stats = ReturnType<typeof inNumbers>;

function inNumbers({ series, top, overflow }: StatsRows) {
  return {
    series: series.map(({ time, outcome, counts, amounts }) => ({
      time: Number(time),
      outcome,
      count: keptNumber(counts),
      amount: keptNumber(amounts),
    })),
    top: top.map(({ name, total, good }) => ({ name, total: keptNumber(total), good: keptNumber(good) })),
    overflow: keptNumber(overflow ?? 0),
  };
}

function verificationText({ start, end, level }: StatsQuery, { series, top, overflow }: Stats): string {
  const length = levels[level];
  const all = new VerificationCounts();
  const buckets = new Map<number, VerificationCounts>();
  for (const { time, outcome, count, amount } of series) {
    let bucket = buckets.get(time);
    if (bucket === undefined) {
      bucket = new VerificationCounts();
      buckets.set(time, bucket);
    }
    bucket.add(outcome, count, amount);
    all.add(outcome, count, amount);
  }
  const empty = new VerificationCounts().text();
  const entries: string[] = [];
  for (let time = start; time < end; time += length) {
    entries.push(`{"time":${time},${buckets.get(time)?.text() ?? empty}}`);
  }
  const tags = top.map(({ name, total, good }) => `{"tag":${JSON.stringify(name)},"total":${total},"valid":${good}}`);
  const overflowText = overflow === 0 ? "" : `,"tagsUntold":${overflow}`;
  return `${all.text()},"series":[${entries.join(",")}],"tags":[${tags.join(",")}]${overflowText}`;
}

class VerificationCounts {
  #total = 0;
  #valid = 0;
  #creditsSpent = 0;
  readonly #outcomes = new Map<string, number>();

  add(code: string, count: number, creditsSpent: number): void {
    this.#total = sumOf(this.#total, count);
    this.#creditsSpent = sumOf(this.#creditsSpent, creditsSpent);
    if (code === "VALID") this.#valid = sumOf(this.#valid, count);
    // Credits of a hold can be charged in a minute without a verification.
    if (count > 0) this.#outcomes.set(code, sumOf(this.#outcomes.get(code) ?? 0, count));
  }

  text(): string {
    const outcomes = [...this.#outcomes].sort(([a], [b]) => (a < b ? -1 : 1)).map(([code, n]) => `"${code}":${n}`);
    return (
      `"total":${this.#total},"valid":${this.#valid},"outcomes":{${outcomes.join(",")}},` +
      `"creditsSpent":${this.#creditsSpent}`
    );
  }
}

function ratelimitText({ start, end, level }: StatsQuery, { series, top, overflow }: Stats): string {
  const length = levels[level];
  const all = { passed: 0, denied: 0, cost: 0 };
  const buckets = new Map<number, typeof all>();
  for (const { time, outcome, count, amount } of series) {
    let bucket = buckets.get(time);
    if (bucket === undefined) {
      bucket = { passed: 0, denied: 0, cost: 0 };
      buckets.set(time, bucket);
    }
    for (const counts of [all, bucket]) {
      if (outcome === "PASSED") counts.passed = sumOf(counts.passed, count);
      else counts.denied = sumOf(counts.denied, count);
      counts.cost = sumOf(counts.cost, amount);
    }
  }
  const text = ({ passed, denied, cost }: typeof all) =>
    `"total":${sumOf(passed, denied)},"passed":${passed},"denied":${denied},"cost":${cost}`;
  const empty = text({ passed: 0, denied: 0, cost: 0 });
  const entries: string[] = [];
  for (let time = start; time < end; time += length) {
    const bucket = buckets.get(time);
    entries.push(`{"time":${time},${bucket === undefined ? empty : text(bucket)}}`);
  }
  const identifiers = top.map(
    ({ name, total, good }) => `{"identifier":${JSON.stringify(name)},"denied":${good},"total":${total}}`,
  );
  const overflowText = overflow === 0 ? "" : `,"identifiersUntold":${overflow}`;
  return `${text(all)},"series":[${entries.join(",")}],"identifiers":[${identifiers.join(",")}]${overflowText}`;
}
