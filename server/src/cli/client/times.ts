const units: readonly [milliseconds: number, name: string][] = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
];

/** A duration in its largest unit, rounded up. */
export function length(milliseconds: number): string {
  const [unit, name] = units.find(([unit]) => milliseconds >= unit) ?? [1, "millisecond"];
  const count = Math.ceil(milliseconds / unit);
  return `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;
}

/** A time as ISO 8601, or as it is if no date can hold it. */
export function iso(time: number): string {
  return Math.abs(time) <= 8_640_000_000_000_000 ? new Date(time).toISOString() : String(time);
}
