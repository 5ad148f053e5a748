import { useMemo } from "react";
import { Segments } from "./segments.tsx";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** The lengths of buckets in milliseconds. */
export const bucketLengths = { minute: MINUTE, hour: HOUR, day: DAY };

const last = (length: number) => (end: number) => end - length;

/** The ranges of time that an address can name, each with its start. */
export const ranges = {
  "1h": { label: "1 h", long: "last hour", start: last(HOUR), granularity: "minute" },
  "24h": { label: "24 h", long: "last 24 hours", start: last(DAY), granularity: "hour" },
  "7d": { label: "7 d", long: "last 7 days", start: last(7 * DAY), granularity: "hour" },
  "30d": { label: "30 d", long: "last 30 days", start: last(30 * DAY), granularity: "day" },
  month: { label: "Month", long: "this month (UTC)", start: monthStart, granularity: "day" },
  "90d": { label: "90 d", long: "last 90 days", start: last(90 * DAY), granularity: "day" },
  "1y": { label: "1 y", long: "last 365 days", start: last(365 * DAY), granularity: "day" },
} as const;
export type RangeName = keyof typeof ranges;
export const rangeNames = Object.keys(ranges) as RangeName[];
const rangeLabels = Object.fromEntries(rangeNames.map((name) => [name, ranges[name].label])) as Record<
  RangeName,
  string
>;

/** The ranges as options of a filter of a list. */
export const rangeOptions = rangeNames.map((value) => ({ value, label: ranges[value].long }));

/** When a range that ends now began, on a whole minute, so that a list that is drawn again reads nothing new. */
export function rangeStart(name: RangeName): number {
  return ranges[name].start(Math.floor(Date.now() / MINUTE) * MINUTE);
}

/** The start of the month in which a range ends. Days are counted in UTC. */
function monthStart(end: number): number {
  const date = new Date(end - 1);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}

/** Start and end of a range that ends now, on whole buckets, so that a page that is drawn again reads nothing new. */
export function useRange(name: RangeName): { start: number; end: number; granularity: "minute" | "hour" | "day" } {
  const { granularity } = ranges[name];
  const bucket = bucketLengths[granularity];
  const end = Math.floor(Date.now() / bucket) * bucket + bucket;
  return useMemo(() => ({ start: ranges[name].start(end), end, granularity }), [name, end, granularity]);
}

/** Chooses a range. Undefined: a range without a name is shown. */
export function RangePicker({
  value,
  onChange,
}: {
  value: RangeName | undefined;
  onChange: (value: RangeName) => void;
}) {
  return <Segments label="Range of time" options={rangeLabels} value={value} onChange={onChange} />;
}
