import type { Data } from "./client.ts";

/** Verifications in a range of time. */
export type VerificationStats = Pick<
  Data<"analytics.getApiStats">,
  "total" | "valid" | "outcomes" | "creditsSpent" | "series" | "tags"
>;
/** Decisions about rate limits in a range of time. */
export type RatelimitStats = Pick<
  Data<"analytics.getRatelimitStats">,
  "total" | "passed" | "denied" | "cost" | "series" | "identifiers"
>;

const TOP_MAX = 100;

/** The sum of statistics of the same range. */
export function sumVerifications(parts: readonly VerificationStats[]): VerificationStats {
  const series = new Map<number, VerificationStats["series"][number]>();
  const tags = new Map<string, VerificationStats["tags"][number]>();
  for (const part of parts) {
    for (const bucket of part.series) {
      const sum = series.get(bucket.time) ?? { time: bucket.time, total: 0, valid: 0, creditsSpent: 0, outcomes: {} };
      series.set(bucket.time, { time: bucket.time, ...sumCounts(sum, bucket) });
    }
    for (const { tag, total, valid } of part.tags) {
      const sum = tags.get(tag);
      tags.set(tag, { tag, total: total + (sum?.total ?? 0), valid: valid + (sum?.valid ?? 0) });
    }
  }
  return {
    ...parts.reduce(sumCounts, { total: 0, valid: 0, creditsSpent: 0, outcomes: {} }),
    series: [...series.values()].sort((a, b) => a.time - b.time),
    tags: [...tags.values()].sort((a, b) => b.total - a.total).slice(0, TOP_MAX),
  };
}

type Counts = Pick<VerificationStats, "total" | "valid" | "outcomes" | "creditsSpent">;
function sumCounts(a: Counts, b: Counts): Counts {
  const outcomes = { ...a.outcomes };
  for (const [code, count] of Object.entries(b.outcomes)) outcomes[code] = (outcomes[code] ?? 0) + count;
  return {
    total: a.total + b.total,
    valid: a.valid + b.valid,
    creditsSpent: a.creditsSpent + b.creditsSpent,
    outcomes,
  };
}

/** The sum of statistics of the same range. Identifiers of different namespaces stay apart. */
export function sumRatelimits(parts: readonly RatelimitStats[]): Omit<RatelimitStats, "identifiers"> {
  const series = new Map<number, RatelimitStats["series"][number]>();
  let [total, passed, denied, cost] = [0, 0, 0, 0];
  for (const part of parts) {
    total += part.total;
    passed += part.passed;
    denied += part.denied;
    cost += part.cost;
    for (const bucket of part.series) {
      const sum = series.get(bucket.time);
      series.set(bucket.time, {
        time: bucket.time,
        total: bucket.total + (sum?.total ?? 0),
        passed: bucket.passed + (sum?.passed ?? 0),
        denied: bucket.denied + (sum?.denied ?? 0),
        cost: bucket.cost + (sum?.cost ?? 0),
      });
    }
  }
  return { total, passed, denied, cost, series: [...series.values()].sort((a, b) => a.time - b.time) };
}

/** `4.2 %`. */
export function share(part: number, whole: number): string {
  if (whole === 0 || part === 0) return "0 %";
  const percent = (100 * part) / whole;
  return `${percent < 0.1 ? "< 0.1" : percent > 99.9 && part < whole ? "> 99.9" : percent.toFixed(percent < 10 ? 1 : 0)} %`;
}
