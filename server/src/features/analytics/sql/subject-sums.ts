import type { MinuteCount } from "../batch.ts";
import { type Level, levels } from "../levels.ts";
import { sumOf } from "../sums.ts";

/** Lists of counts in the order of places, as one. In pairs, so that each count is compared a few times. */
export function mergeSorted(lists: readonly (readonly MinuteCount[])[]): readonly MinuteCount[] {
  const half = Math.floor(lists.length / 2);
  if (half === 0) return lists[0] ?? [];
  return mergeTwo(mergeSorted(lists.slice(0, half)), mergeSorted(lists.slice(half)));
}

function mergeTwo(a: readonly MinuteCount[], b: readonly MinuteCount[]): MinuteCount[] {
  const merged: MinuteCount[] = [];
  let [i, j] = [0, 0];
  let [one, other] = [a[0], b[0]];
  while (one !== undefined && other !== undefined) {
    if (isBefore(other, one)) {
      merged.push(other);
      other = b[++j];
    } else {
      merged.push(one);
      one = a[++i];
    }
  }
  for (; one !== undefined; one = a[++i]) merged.push(one);
  for (; other !== undefined; other = b[++j]) merged.push(other);
  return merged;
}

function isBefore(one: MinuteCount, other: MinuteCount): boolean {
  return one.workspaceId === other.workspaceId ? one.subject < other.subject : one.workspaceId < other.workspaceId;
}

/** Adds up counts that are in the order of places, by bucket. The sums are in the same order. */
export function addedInOrder(sorted: readonly MinuteCount[], level: Level): MinuteCount[] {
  const sums: MinuteCount[] = [];
  /** The first sum of the same subject. */
  let first = 0;
  for (const one of sorted) {
    const time = one.time - (one.time % levels[level]);
    if (sums[first]?.subject !== one.subject || sums[first]?.workspaceId !== one.workspaceId) first = sums.length;
    let at = first;
    let known = sums[at];
    while (known !== undefined && !isSame(known, time, one)) known = sums[++at];
    if (known === undefined) sums.push(copyOf(one, time));
    else {
      known.count = sumOf(known.count, one.count);
      known.amount = sumOf(known.amount, one.amount);
      known.latencyUs = sumOf(known.latencyUs, one.latencyUs);
    }
  }
  return sums;
}

function copyOf(one: MinuteCount, time: number): MinuteCount {
  const { workspaceId, subject, apiId, identityId, outcome, count, amount, latencyUs } = one;
  return { time, workspaceId, subject, apiId, identityId, outcome, count, amount, latencyUs };
}

function isSame(sum: MinuteCount, time: number, { outcome, identityId }: MinuteCount): boolean {
  return sum.time === time && sum.outcome === outcome && sum.identityId === identityId;
}
