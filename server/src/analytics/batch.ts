import { digest } from "../crypto/digest.ts";
import { type Level, levelNames, levels } from "./levels.ts";

/** What was counted in one minute under one combination; what a recorder hands on. */
export type VerificationCell = readonly [
  minute: number,
  workspaceId: string,
  apiId: string | null,
  keyId: string | null,
  identityId: string | null,
  /** JSON array of the set's tags in order; empty: none. */
  tags: string,
  code: string,
  count: number,
  creditsSpent: number,
  latencyUs: number,
];

/** The same of a rate limit namespace and one identifier in it. */
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
 * A second's counts, or a part of them. A recorder numbers its batches and hands them on in that order, so that a store
 * which remembers the last number of each recorder counts none twice.
 */
export interface Batch {
  readonly recorder: string;
  readonly sequence: number;
  readonly verifications: readonly VerificationCell[];
  readonly ratelimits: readonly RatelimitCell[];
}

/** One line of a rollup: how often one outcome came of one subject in one bucket. */
export interface Rollup {
  /** Beginning of the bucket, epoch milliseconds. */
  readonly time: number;
  /** A key, an API, an identity, a namespace, or the workspace that nobody's key was presented to. */
  readonly subject: string;
  /** Empty: all of the bucket. Else the digest of `label`, or `OVERFLOW`. */
  part: string;
  readonly outcome: string;
  /** Of a part: the tag set as JSON, or the identifier. */
  label: string;
  count: number;
  /** Credits spent, or what limits were charged. */
  amount: number;
  latencyUs: number;
}

/** The part of a bucket for whatever has no part of its own any more. Digests hold no such character. */
export const OVERFLOW = "~";

/** Tag sets that a bucket of a key, an API or an identity tells apart. */
export const TAG_SETS_MAX = 100;
/** Identifiers that a bucket of a namespace tells apart. */
export const IDENTIFIERS_MAX = 1_000;

/** How many parts a bucket of this subject may have. */
export function partsMax(subject: string): number {
  return subject.startsWith("rlns_") ? IDENTIFIERS_MAX : TAG_SETS_MAX;
}

/** Every line that the batches add to, once, by level. Each subject is counted by itself: there is no cube of all. */
export function rollUp(batches: readonly Batch[]): Record<Level, Rollup[]> {
  const rows = { minute: new Map<string, Rollup>(), hour: new Map<string, Rollup>(), day: new Map<string, Rollup>() };
  const add = (
    minute: number,
    subject: string,
    part: string,
    label: string,
    outcome: string,
    [count, amount, latencyUs]: readonly [number, number, number],
  ) => {
    for (const level of levelNames) {
      const time = minute - (minute % levels[level]);
      const name = `${time} ${subject} ${part} ${outcome}`;
      const row = rows[level].get(name);
      if (row === undefined) rows[level].set(name, { time, subject, part, outcome, label, count, amount, latencyUs });
      else {
        row.count += count;
        row.amount += amount;
        row.latencyUs += latencyUs;
      }
    }
  };
  const digests = new Map<string, string>();
  const partOf = (label: string) => {
    let part = digests.get(label);
    if (part === undefined) {
      part = digest(label);
      digests.set(label, part);
    }
    return part;
  };
  for (const { verifications, ratelimits } of batches) {
    for (const [minute, workspaceId, apiId, keyId, identityId, tags, code, ...figures] of verifications) {
      const subjects = keyId === null ? [workspaceId] : [keyId, apiId!, ...(identityId === null ? [] : [identityId])];
      for (const subject of subjects) {
        add(minute, subject, "", "", code, figures);
        if (tags !== "") add(minute, subject, partOf(tags), tags, code, figures);
      }
    }
    for (const [minute, , namespaceId, identifier, outcome, ...figures] of ratelimits) {
      add(minute, namespaceId, "", "", outcome, figures);
      add(minute, namespaceId, partOf(identifier), identifier, outcome, figures);
    }
  }
  return { minute: [...rows.minute.values()], hour: [...rows.hour.values()], day: [...rows.day.values()] };
}

/** A bucket of one subject. */
export function bucketOf({ time, subject }: Pick<Rollup, "time" | "subject">): string {
  return `${time} ${subject}`;
}

/**
 * The rows with every part that its bucket has no room for put into the bucket's overflow.
 *
 * @param has the parts that each bucket has; those that come are added.
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
        overflow.count += row.count;
        overflow.amount += row.amount;
        overflow.latencyUs += row.latencyUs;
      }
    }
  }
  return [...kept, ...overflows.values()];
}
