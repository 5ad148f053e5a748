import type { Range } from "../../api/workspace-stats.ts";
import type { AnalyticsSearch } from "../../layout/searches.ts";
import { bucketLengths } from "../../ui/fields/range.tsx";

/** Buckets of one answer, so that a chart stays readable. */
const BUCKETS_MAX = 1_500;
export const granularities = ["minute", "hour", "day"] as const;

/** The range that an address asks for; `named` is that of its name. */
export function rangeOf({ start, end, granularity }: AnalyticsSearch, named: Range): Range {
  const range = start !== undefined && end !== undefined && start < end ? { start, end } : named;
  const length = range.end - range.start;
  const own = length <= 3 * bucketLengths.hour ? "minute" : length <= 7 * bucketLengths.day ? "hour" : "day";
  const wanted = granularity ?? own;
  return { start: range.start, end: range.end, granularity: fits(range, wanted) ? wanted : own };
}

/** Whether the range has few enough buckets. */
export function fits({ start, end }: { start: number; end: number }, granularity: Range["granularity"]): boolean {
  return (end - start) / bucketLengths[granularity] <= BUCKETS_MAX;
}

/** The range of the same length that ends where this one begins. */
export function rangeBefore({ start, end, granularity }: Range): Range {
  const bucket = bucketLengths[granularity];
  const first = Math.floor(start / bucket) * bucket;
  const length = Math.ceil(end / bucket) * bucket - first;
  return { start: first - length, end: first, granularity };
}

/** The call behind the chart, if it is one call. */
export function callOf({ api, key, owner, tags }: AnalyticsSearch, range: Range) {
  const rest = { ...range, ...(tags && { tags: tags.split(" ") }) };
  if (key) return { operation: "analytics.getKeyStats", input: { keyId: key, ...rest } } as const;
  if (owner) return { operation: "analytics.getIdentityStats", input: { identity: owner, ...rest } } as const;
  if (api) return { operation: "analytics.getApiStats", input: { apiId: api, ...rest } } as const;
  return undefined;
}
