import type { DirectoryKind, RecordCaches } from "../../../../engine/src/directory/directories.ts";
import type { RecordCacheCounts } from "../../../../engine/src/directory/record-cache.ts";
import type { Limiter } from "../../../../engine/src/limits/limiter.ts";
import type { VerificationCode } from "../../../../engine/src/verification/request.ts";
import type { Verification } from "../../../../engine/src/verification/verification.ts";
import type { CallMetrics } from "../../metrics/calls.ts";

/** What each thread counts since its start. */
export interface ThreadCounts {
  calls: readonly Float64Array[];
  verifications: Readonly<Record<VerificationCode, number>>;
  directories: Readonly<Record<DirectoryKind, RecordCacheCounts>>;
  /** Calls whose limits could not be decided. */
  undecided: number;
  /** What limits in shadow mode would have denied. */
  shadowed: number;
  /** Rejections by limits that were not recorded as events. */
  droppedLimitEvents: number;
}

/** The parts of a thread that count. */
export interface CountingParts {
  calls: CallMetrics;
  verification: Pick<Verification, "counts">;
  directories: Pick<RecordCaches, "counts">;
  limiter: Pick<Limiter, "undecided" | "shadowed" | "exceeded">;
}

export function countsOf({ calls, verification, directories, limiter }: CountingParts): ThreadCounts {
  return {
    calls: calls.numbers,
    verifications: verification.counts,
    directories: directories.counts,
    undecided: limiter.undecided,
    shadowed: limiter.shadowed,
    droppedLimitEvents: limiter.exceeded.dropped,
  };
}

export function addCounts(one: ThreadCounts, other: ThreadCounts): ThreadCounts {
  const directories = mapValues({ ...one.directories }, (counts, kind) =>
    addMembers({ ...counts }, { ...other.directories[kind] }),
  );
  return {
    calls: one.calls.map((numbers, i) => numbers.map((number, k) => number + other.calls[i]![k]!)),
    verifications: addMembers(one.verifications, other.verifications),
    directories,
    undecided: one.undecided + other.undecided,
    shadowed: one.shadowed + other.shadowed,
    droppedLimitEvents: one.droppedLimitEvents + other.droppedLimitEvents,
  };
}

/** The counts of a thread that has ended: its caches are gone. */
export function countsAfterEnd(counts: ThreadCounts): ThreadCounts {
  return {
    ...counts,
    directories: mapValues({ ...counts.directories }, (cache) => ({ ...cache, entries: 0, bytes: 0 })),
  };
}

function addMembers<K extends string>(one: Readonly<Record<K, number>>, other: Readonly<Record<K, number>>) {
  return mapValues(one, (value, name) => value + other[name]);
}

function mapValues<K extends string, V, R>(
  record: Readonly<Record<K, V>>,
  map: (value: V, name: K) => R,
): Record<K, R> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value as V, name as K)])) as never;
}
