import { digest } from "../../../../engine/src/crypto/digest.ts";
import type { DecisionRow } from "./decision-log.ts";
import { type Level, levelNames, levels } from "./levels.ts";
import { sumOf } from "./sums.ts";

/** How the names of recorders of edges begin. */
export const EDGE_RECORDER = "edge_";

/** The count of one combination of values in one minute. */
export type VerificationCell = readonly [
  minute: number,
  workspaceId: string,
  apiId: string | null,
  keyId: string | null,
  identityId: string | null,
  /** The tag set as a sorted JSON array; empty without tags. */
  tags: string,
  code: string,
  count: number,
  creditsSpent: number,
  latencyUs: number,
  /** The budgets that the key spent from. Absent without any, and in batches of earlier releases. */
  budgetIds?: readonly string[],
];

/** The same for one identifier of a rate limit namespace. */
export type RatelimitCell = readonly [
  minute: number,
  workspaceId: string,
  namespaceId: string,
  identifier: string,
  outcome: "PASSED" | "DENIED",
  count: number,
  cost: number,
  latencyUs: number,
];

/**
 * The counts of keys in one minute that have an API and a code in common, and no tags: what most calls are. In columns,
 * which take a third of the bytes and of the time that a cell for each key takes.
 */
export type KeyCounts = readonly [
  minute: number,
  workspaceId: string,
  apiId: string,
  code: string,
  keyIds: readonly string[],
  latencyUs: readonly number[],
  /** null: one verification of each key. */
  counts: readonly number[] | null,
  /** null: none. */
  creditsSpent: readonly number[] | null,
  /** null: no key has an identity. */
  identityIds: readonly (string | null)[] | null,
  /** null: no key has budgets. Absent in batches of earlier releases. */
  budgets?: KeyBudgets | null,
];

/** Each list of budgets that keys spend from once, and which of them each key has: many keys have the same. */
type KeyBudgets = readonly [lists: readonly (readonly string[])[], places: readonly number[]];

/** The budgets that a key spends from, each once. */
export type Budgets = readonly { readonly budgetId: string }[];

/**
 * Such counts before they are in a batch. Columns also while they are counted: a key has an entry for a second, and the
 * collector of garbage would copy an object for each.
 */
export interface KeyColumns {
  readonly minute: number;
  readonly workspaceId: string;
  readonly apiId: string;
  readonly code: string;
  readonly keyIds: string[];
  readonly identityIds: (string | null)[];
  readonly budgets: Budgets[];
  /** Times of the last use; 0 for a deleted key. */
  readonly usedAt: number[];
  readonly counts: number[];
  readonly creditsSpent: number[];
  readonly latencyUs: number[];
}

/** A part of the columns, as a batch has them. */
export function keyCounts(columns: KeyColumns, from = 0, until = columns.keyIds.length): KeyCounts {
  const { minute, workspaceId, apiId, code } = columns;
  const [counts, creditsSpent, identityIds] = [
    columns.counts.slice(from, until),
    columns.creditsSpent.slice(from, until),
    columns.identityIds.slice(from, until),
  ];
  return [
    minute,
    workspaceId,
    apiId,
    code,
    columns.keyIds.slice(from, until),
    columns.latencyUs.slice(from, until),
    counts.every((count) => count === 1) ? null : counts,
    creditsSpent.every((credits) => credits === 0) ? null : creditsSpent,
    identityIds.every((id) => id === null) ? null : identityIds,
    keyBudgets(columns.budgets.slice(from, until)),
  ];
}

/** Whether any of the keys has budgets. */
export function haveBudgets([, , , , , , , , , budgets]: KeyCounts): boolean {
  return (budgets ?? null) !== null;
}

function keyBudgets(columns: readonly Budgets[]): KeyBudgets | null {
  if (columns.every(({ length }) => length === 0)) return null;
  const lists: string[][] = [];
  const placeOf = new Map<string, number>();
  let last: { budgets: Budgets; place: number } | undefined;
  const places = columns.map((budgets) => {
    // Keys with the same budgets share a list of them.
    if (last?.budgets === budgets) return last.place;
    const budgetIds = budgetIdsOf(budgets);
    const name = budgetIds.join(" ");
    let place = placeOf.get(name);
    if (place === undefined) {
      place = lists.push(budgetIds) - 1;
      placeOf.set(name, place);
    }
    last = { budgets, place };
    return place;
  });
  return [lists, places];
}

export function budgetIdsOf(budgets: Budgets): string[] {
  return budgets.map(({ budgetId }) => budgetId);
}

/**
 * The counts of one second, or a part of them. A recorder numbers its batches and delivers them in order. The store keeps
 * the last number of each recorder, so that it counts no batch twice.
 */
export interface Batch {
  readonly recorder: string;
  readonly sequence: number;
  readonly keys: readonly KeyCounts[];
  /** The verifications that are not in `keys`. */
  readonly verifications: readonly VerificationCell[];
  readonly ratelimits: readonly RatelimitCell[];
  readonly decisions: readonly DecisionRow[];
}

/**
 * A batch as JSON. The verifications that are not in `keys` have a name that tells releases what they can read, because they
 * would lose a part of another batch unnoticed: `verifications` is from before `keys`, `others` from before the budgets in
 * `keys`, and still the name in batches without any. An earlier release rejects a batch that lacks the name that it knows.
 */
interface BatchText {
  readonly recorder: string;
  readonly sequence: number;
  readonly keys?: Batch["keys"];
  readonly cells?: Batch["verifications"];
  readonly others?: Batch["verifications"];
  readonly verifications?: Batch["verifications"];
  readonly ratelimits: Batch["ratelimits"];
  readonly decisions?: Batch["decisions"];
}

/** The arrays of a batch, each as JSON in parts. */
export interface BatchParts {
  readonly keys: readonly string[];
  readonly verifications: readonly string[];
  readonly ratelimits: readonly string[];
  readonly decisions: readonly string[];
}

/** The text of a batch. `hasBudgets`: whether keys in `keys` have some. */
export function batchText(
  { recorder, sequence, hasBudgets = false }: Pick<Batch, "recorder" | "sequence"> & { readonly hasBudgets?: boolean },
  parts: BatchParts,
): string {
  const start = JSON.stringify({ recorder, sequence }).slice(0, -1);
  const name = hasBudgets ? "cells" : "others";
  const counts = `"keys":${concatenated(parts.keys)},"${name}":${concatenated(parts.verifications)}`;
  return `${start},${counts},"ratelimits":${concatenated(parts.ratelimits)},"decisions":${concatenated(parts.decisions)}}`;
}

/**
 * The batch with a text of this release or an earlier one.
 *
 * @throws if it is none.
 */
export function readBatch(text: string): Batch {
  const {
    recorder,
    sequence,
    keys = [],
    others,
    cells = others,
    verifications = cells,
    ratelimits,
    decisions = [],
  } = JSON.parse(text) as BatchText;
  const isBatch =
    typeof recorder === "string" &&
    typeof sequence === "number" &&
    [keys, verifications, ratelimits].every((cells) => Array.isArray(cells) && cells.every(Array.isArray));
  if (!isBatch || verifications === undefined) throw new TypeError("The text is no batch");
  return { recorder, sequence, keys, verifications, ratelimits, decisions };
}

/** The number of verifications and rate limits that were counted. */
export function eventsOf({ keys, verifications, ratelimits }: Batch): number {
  let events = 0;
  for (const [, , , , keyIds, , counts] of keys)
    events += counts?.reduce((sum, count) => sum + count, 0) ?? keyIds.length;
  for (const [, , , , , , , count] of verifications) events += count;
  for (const [, , , , , count] of ratelimits) events += count;
  return events;
}

/** The counts of keys as cells. */
export function cellsOf(keys: Batch["keys"]): VerificationCell[] {
  return keys.flatMap(
    ([minute, workspaceId, apiId, code, keyIds, latencyUs, counts, creditsSpent, identityIds, budgets = null]) =>
      keyIds.map((keyId, i): VerificationCell => {
        const figures = [counts?.[i] ?? 1, creditsSpent?.[i] ?? 0, latencyUs[i] ?? 0] as const;
        const budgetIds = budgetIdsAt(budgets, i);
        const ofBudgets: [budgetIds?: readonly string[]] = budgetIds.length === 0 ? [] : [budgetIds];
        return [minute, workspaceId, apiId, keyId, identityIds?.[i] ?? null, "", code, ...figures, ...ofBudgets];
      }),
  );
}

function budgetIdsAt(budgets: KeyBudgets | null, i: number): readonly string[] {
  return budgets?.[0][budgets[1][i] ?? -1] ?? [];
}

/** JSON arrays as one. */
function concatenated(arrays: readonly string[]): string {
  const elements = arrays.filter((array) => array !== "[]").map((array) => array.slice(1, -1));
  return `[${elements.join(",")}]`;
}

/** One row of a rollup: the count of one outcome of one subject in one bucket of time. */
export interface Rollup {
  /** Start of the bucket, epoch milliseconds. */
  readonly time: number;
  /** The id of a key, an API, an identity, a budget or a namespace; of the workspace for attempts with unknown keys. */
  readonly subject: string;
  /** Empty for the whole bucket; else the digest of `label`, or `OVERFLOW`. */
  part: string;
  readonly outcome: string;
  /** The tag set of the part as JSON, or its identifier. */
  label: string;
  count: number;
  /** Credits spent, or the cost charged to limits. */
  amount: number;
  latencyUs: number;
}

/** The part of a bucket for labels beyond the maximum. Digests do not contain this character. */
export const OVERFLOW = "~";

/** Maximum number of tag sets in a bucket of a key, an API, an identity or a budget. */
export const TAG_SETS_MAX = 100;
/** Maximum number of identifiers in a bucket of a namespace. */
export const IDENTIFIERS_MAX = 1_000;

/** The maximum number of parts of a bucket of this subject. */
export function partsMax(subject: string): number {
  return subject.startsWith("rlns_") ? IDENTIFIERS_MAX : TAG_SETS_MAX;
}

/** The count of one outcome of one subject in one minute, with what the tables of counts need to know of it. */
export interface MinuteCount {
  readonly time: number;
  readonly workspaceId: string;
  /** As in a rollup. */
  readonly subject: string;
  /** The API of a key; empty for other subjects. */
  readonly apiId: string;
  /** The identity of a key at the time of the verifications; empty without one, and for other subjects. */
  readonly identityId: string;
  readonly outcome: string;
  count: number;
  amount: number;
  latencyUs: number;
}

type Figures = readonly [count: number, amount: number, latencyUs: number];

function figuresOf([, , , , , , , count, amount, latencyUs]: VerificationCell): Figures {
  return [count, amount, latencyUs];
}

function budgetsOf([, , , , , , , , , , budgetIds = []]: VerificationCell): readonly string[] {
  return budgetIds;
}

/** A recorder adds up without a bound. */
function kept([count, amount, latencyUs]: Figures): Figures {
  return [sumOf(0, count), sumOf(0, amount), sumOf(0, latencyUs)];
}

/** Aggregates batches by minute, without tags and identifiers. Each subject is counted separately. */
export function minuteCounts(batches: readonly Batch[]): MinuteCount[] {
  const sums = new MinuteSums();
  for (const { keys, verifications, ratelimits } of batches) {
    for (const group of keys) addKeys(sums, group);
    for (const cell of verifications) {
      const [minute, workspaceId, apiId, keyId, identityId, , code, count, amount, latencyUs] = cell;
      const add = (subject: string, ofApi: string, ofIdentity: string) =>
        sums.add(minute, workspaceId, subject, ofApi, ofIdentity, code, count, amount, latencyUs);
      if (keyId === null || apiId === null) {
        add(workspaceId, "", "");
        continue;
      }
      add(keyId, apiId, identityId ?? "");
      add(apiId, "", "");
      if (identityId !== null) add(identityId, "", "");
      for (const budgetId of budgetsOf(cell)) add(budgetId, "", "");
    }
    for (const [minute, workspaceId, namespaceId, , outcome, count, amount, latencyUs] of ratelimits) {
      sums.add(minute, workspaceId, namespaceId, "", "", outcome, count, amount, latencyUs);
    }
  }
  return sums.all();
}

function addKeys(
  sums: MinuteSums,
  [minute, workspaceId, apiId, code, keyIds, latencies, counts, creditsSpent, identityIds, budgets = null]: KeyCounts,
): void {
  let [counted, spent, took] = [0, 0, 0];
  const ofBudgets = budgets?.[0].map(() => ({ counted: 0, spent: 0, took: 0 }));
  for (const [i, keyId] of keyIds.entries()) {
    const count = counts?.[i] ?? 1;
    const amount = creditsSpent?.[i] ?? 0;
    const latencyUs = latencies[i] ?? 0;
    const identityId = identityIds?.[i] ?? null;
    sums.add(minute, workspaceId, keyId, apiId, identityId ?? "", code, count, amount, latencyUs);
    if (identityId !== null) sums.add(minute, workspaceId, identityId, "", "", code, count, amount, latencyUs);
    counted = sumOf(counted, count);
    spent = sumOf(spent, amount);
    took = sumOf(took, latencyUs);
    const sum = ofBudgets?.[budgets?.[1][i] ?? -1];
    if (sum === undefined) continue;
    sum.counted = sumOf(sum.counted, count);
    sum.spent = sumOf(sum.spent, amount);
    sum.took = sumOf(sum.took, latencyUs);
  }
  // Once for all its keys, and for all that have the same budgets.
  sums.add(minute, workspaceId, apiId, "", "", code, counted, spent, took);
  for (const [place, sum] of ofBudgets?.entries() ?? []) {
    for (const budgetId of budgets?.[0][place] ?? []) {
      sums.add(minute, workspaceId, budgetId, "", "", code, sum.counted, sum.spent, sum.took);
    }
  }
}

function isOf(one: MinuteCount, time: number, identityId: string, outcome: string): boolean {
  return one.time === time && one.outcome === outcome && one.identityId === identityId;
}

/** Counts by minute, by what they are about. */
class MinuteSums {
  /** Most subjects have one count, so subjects are found by name, and the counts of one are compared. */
  readonly #first = new Map<string, MinuteCount>();
  readonly #further = new Map<string, MinuteCount[]>();

  add(
    time: number,
    workspaceId: string,
    subject: string,
    apiId: string,
    identityId: string,
    outcome: string,
    added: number,
    spent: number,
    took: number,
  ): void {
    // Not `kept`, which makes lists: this runs for each count.
    const count = sumOf(0, added);
    const amount = sumOf(0, spent);
    const latencyUs = sumOf(0, took);
    const first = this.#first.get(subject);
    if (first === undefined) {
      this.#first.set(subject, { time, workspaceId, subject, apiId, identityId, outcome, count, amount, latencyUs });
      return;
    }
    let known: MinuteCount | undefined = first;
    if (!isOf(first, time, identityId, outcome)) {
      let others = this.#further.get(subject);
      if (others === undefined) {
        others = [];
        this.#further.set(subject, others);
      }
      known = others.find((one) => isOf(one, time, identityId, outcome));
      if (known === undefined) {
        others.push({ time, workspaceId, subject, apiId, identityId, outcome, count, amount, latencyUs });
        return;
      }
    }
    known.count = sumOf(known.count, count);
    known.amount = sumOf(known.amount, amount);
    known.latencyUs = sumOf(known.latencyUs, latencyUs);
  }

  all(): MinuteCount[] {
    return [...this.#first.values(), ...[...this.#further.values()].flat()];
  }
}

/**
 * Aggregates batches into rows by level.
 *
 * @param wholes the counts of whole buckets; empty for the parts alone.
 */
export function rollUp(
  batches: readonly Batch[],
  wholes: readonly MinuteCount[] = minuteCounts(batches),
): Record<Level, Rollup[]> {
  const rows = { minute: new Map<string, Rollup>(), hour: new Map<string, Rollup>(), day: new Map<string, Rollup>() };
  const add = (minute: number, subject: string, part: string, label: string, outcome: string, figures: Figures) => {
    const [count, amount, latencyUs] = kept(figures);
    for (const level of levelNames) {
      const time = minute - (minute % levels[level]);
      const name = `${time} ${subject} ${part} ${outcome}`;
      const row = rows[level].get(name);
      if (row === undefined) rows[level].set(name, { time, subject, part, outcome, label, count, amount, latencyUs });
      else {
        row.count = sumOf(row.count, count);
        row.amount = sumOf(row.amount, amount);
        row.latencyUs = sumOf(row.latencyUs, latencyUs);
      }
    }
  };
  for (const { time, subject, outcome, count, amount, latencyUs } of wholes) {
    add(time, subject, "", "", outcome, [count, amount, latencyUs]);
  }
  const digests = new Map<string, string>();
  const partOf = (label: string) => {
    let part = digests.get(label);
    if (part === undefined) {
      part = digest(label);
      digests.set(label, part);
    }
    return part;
  };
  // Those of `keys` have no tags.
  for (const { verifications, ratelimits } of batches) {
    for (const cell of verifications) {
      const [minute, workspaceId, apiId, keyId, identityId, tags, code] = cell;
      if (tags === "") continue;
      const owners = identityId === null ? budgetsOf(cell) : [identityId, ...budgetsOf(cell)];
      const subjects = keyId === null ? [workspaceId] : [keyId, apiId!, ...owners];
      for (const subject of subjects) add(minute, subject, partOf(tags), tags, code, figuresOf(cell));
    }
    for (const [minute, , namespaceId, identifier, outcome, ...figures] of ratelimits) {
      add(minute, namespaceId, partOf(identifier), identifier, outcome, figures);
    }
  }
  return { minute: [...rows.minute.values()], hour: [...rows.hour.values()], day: [...rows.day.values()] };
}

/** The levels at which the verifications of a workspace are counted by key. */
export const usageLevels = ["hour", "day"] as const satisfies readonly Level[];

export type UsageLevel = (typeof usageLevels)[number];

/** The count of one outcome of one key in one bucket of its workspace. */
export interface Usage {
  /** Start of the bucket, epoch milliseconds. */
  readonly time: number;
  readonly workspaceId: string;
  readonly keyId: string;
  readonly apiId: string;
  /** The identity of the key at the time of the verification; empty without one. */
  readonly identityId: string;
  readonly outcome: string;
  count: number;
  creditsSpent: number;
}

/** Aggregates the counts of keys into usage by level, in the order of the primary key. */
export function usageOf(counts: readonly MinuteCount[]): Record<UsageLevel, Usage[]> {
  const rows = { hour: new Map<string, Usage>(), day: new Map<string, Usage>() };
  for (const { time: minute, workspaceId, subject: keyId, apiId, identityId, outcome, count, amount } of counts) {
    if (apiId === "") continue;
    for (const level of usageLevels) {
      const time = minute - (minute % levels[level]);
      const name = `${time} ${keyId} ${identityId} ${outcome}`;
      const row = rows[level].get(name);
      if (row === undefined) {
        rows[level].set(name, { time, workspaceId, keyId, apiId, identityId, outcome, count, creditsSpent: amount });
      } else {
        row.count = sumOf(row.count, count);
        row.creditsSpent = sumOf(row.creditsSpent, amount);
      }
    }
  }
  return { hour: inKeyOrder(rows.hour.values()), day: inKeyOrder(rows.day.values()) };
}

/** Sorts usage as its tables do. All nodes write rows in the same order, so that no deadlock is possible. */
export function inKeyOrder(rows: Iterable<Usage>): Usage[] {
  return Array.from(rows, keyedUsage)
    .sort(compareKeyed)
    .map(([, row]) => row);
}

// Not closures in each call, which V8 would collect with their code and compile again.

type KeyedUsage = readonly [key: string, usage: Usage];

function keyedUsage(row: Usage): KeyedUsage {
  const { workspaceId, keyId, identityId, outcome } = row;
  return [`${workspaceId} ${keyId} ${identityId} ${outcome}`, row];
}

function compareKeyed([a, one]: KeyedUsage, [b, other]: KeyedUsage): number {
  return one.time - other.time || (a < b ? -1 : 1);
}

/** The name of a bucket of one subject. */
export function bucketOf({ time, subject }: Pick<Rollup, "time" | "subject">): string {
  return `${time} ${subject}`;
}

/**
 * Merges the parts beyond the maximum of their bucket into the overflow part of the bucket.
 *
 * @param has the existing parts of each bucket; new parts are added to it.
 */
export function bounded(rows: readonly Rollup[], has: ReadonlyMap<string, Set<string>>): Rollup[] {
  const kept: Rollup[] = [];
  const overflows = new Map<string, Rollup>();
  for (const row of rows) {
    if (row.part === "") {
      kept.push(row);
      continue;
    }
    const bucket = bucketOf(row);
    const parts = has.get(bucket)!;
    if (parts.has(row.part) || parts.size < partsMax(row.subject)) {
      parts.add(row.part);
      kept.push(row);
    } else {
      const name = `${bucket} ${row.outcome}`;
      const overflow = overflows.get(name);
      if (overflow === undefined) overflows.set(name, { ...row, part: OVERFLOW, label: "" });
      else {
        overflow.count = sumOf(overflow.count, row.count);
        overflow.amount = sumOf(overflow.amount, row.amount);
        overflow.latencyUs = sumOf(overflow.latencyUs, row.latencyUs);
      }
    }
  }
  return [...kept, ...overflows.values()];
}
