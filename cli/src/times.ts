const units: readonly [milliseconds: number, name: string][] = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
];

/** A duration in its largest unit, rounded up if `round` does not say otherwise. */
export function length(milliseconds: number, round = Math.ceil): string {
  const [unit, name] = units.find(([unit]) => milliseconds >= unit) ?? [1, "millisecond"];
  const count = round(milliseconds / unit);
  return `${count.toLocaleString("en")} ${name}${count === 1 ? "" : "s"}`;
}

/** How far a time is from now, such as `3 days ago` or `in 2 hours`. */
export function fromNow(time: number, now: number): string {
  const distance = Math.abs(time - now);
  if (distance < 1_000) return "now";
  return time < now ? `${length(distance, Math.floor)} ago` : `in ${length(distance)}`;
}

/** A time as ISO 8601, or as it is if no date can hold it. */
export function iso(time: number): string {
  return Math.abs(time) <= 8_640_000_000_000_000 ? new Date(time).toISOString() : String(time);
}
