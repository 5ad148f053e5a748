/** A call that a limit admitted. Times are of one clock, in ms. */
export interface Admission {
  cost: number;
  sentAt: number;
  answeredAt: number;
}

/** The most that was certainly admitted within one duration: by calls that began and ended in it. */
export function mostAtOnce(admissions: readonly Admission[], duration: number): number {
  const sorted = admissions.toSorted((a, b) => a.sentAt - b.sentAt);
  let most = 0;
  for (const [i, { sentAt }] of sorted.entries()) {
    let admitted = 0;
    for (let j = i; j < sorted.length && sorted[j]!.sentAt < sentAt + duration; j++) {
      if (sorted[j]!.answeredAt <= sentAt + duration) admitted += sorted[j]!.cost;
    }
    most = Math.max(most, admitted);
  }
  return most;
}
