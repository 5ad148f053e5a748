import { useMemo } from "react";
import { Segments } from "./segments.tsx";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The ranges of time that an address can name. */
export const ranges = {
  "1h": { label: "1 h", long: "last hour", length: HOUR, granularity: "minute" },
  "24h": { label: "24 h", long: "last 24 hours", length: DAY, granularity: "hour" },
  "7d": { label: "7 d", long: "last 7 days", length: 7 * DAY, granularity: "hour" },
  "30d": { label: "30 d", long: "last 30 days", length: 30 * DAY, granularity: "day" },
  "90d": { label: "90 d", long: "last 90 days", length: 90 * DAY, granularity: "day" },
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
  return Math.floor(Date.now() / MINUTE) * MINUTE - ranges[name].length;
}

/** Start and end of a range that ends now, on whole buckets, so that a page that is drawn again reads nothing new. */
export function useRange(name: RangeName): { start: number; end: number; granularity: "minute" | "hour" | "day" } {
  const { length, granularity } = ranges[name];
  const bucket = { minute: MINUTE, hour: HOUR, day: DAY }[granularity];
  const end = Math.floor(Date.now() / bucket) * bucket + bucket;
  return useMemo(() => ({ start: end - length, end, granularity }), [end, length, granularity]);
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
