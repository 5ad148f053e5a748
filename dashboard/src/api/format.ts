/** The language of numbers and times: English, as the texts are, in the spelling that the viewer prefers. */
export const locale = navigator.languages.find((language) => /^en\b/.test(language)) ?? "en-GB";

const short = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat(locale);
const moment = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
const day = new Intl.DateTimeFormat(locale, { dateStyle: "medium" });
const dayOfUtc = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" });
const relative = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
const units = [
  ["day", DAY],
  ["hour", HOUR],
  ["minute", MINUTE],
  ["second", SECOND],
] as const;

/** `12.4K`. */
export function shortNumber(value: number): string {
  return Math.abs(value) < 10_000 ? exact.format(value) : short.format(value);
}

/** `12,403`. */
export function exactNumber(value: number): string {
  return exact.format(value);
}

/** A time in the zone of the viewer: `22 Nov 2026, 14:05`. */
export function localTime(time: number): string {
  return moment.format(time);
}

/** A day in the zone of the viewer. */
export function localDay(time: number): string {
  return day.format(time);
}

/** A day that begins at midnight in UTC. */
export function utcDay(time: number): string {
  return dayOfUtc.format(time);
}

/** A time as a field of the browser takes it, in the zone of the viewer: `2026-11-22T14:05`. */
export function fieldTime(time: number): string {
  return new Date(time - new Date(time).getTimezoneOffset() * MINUTE).toISOString().slice(0, 16);
}

/** `2026-11-22 13:05:02 UTC`. */
export function utcTime(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** `5 min. ago`, `in 3 days`. */
export function relativeTime(time: number, now: number = Date.now()): string {
  const distance = time - now;
  if (Math.abs(distance) < 10 * SECOND) return "now";
  const [unit, length] = units.find(([, length]) => Math.abs(distance) >= length) ?? units[3];
  return relative.format(Math.round(distance / length), unit);
}

/** A length of time as its largest exact unit: `1 minute`, `24 hours`, `30 days`. */
export function duration(length: number): string {
  const [unit, size] = units.find(([, size]) => length >= size && length % size === 0) ?? ["millisecond", 1];
  const count = length / size;
  return `${exact.format(count)} ${unit}${count === 1 ? "" : "s"}`;
}

/** `1 key`, `2 keys`. */
export function counted(count: number, one: string, many: string = `${one}s`): string {
  return `${exact.format(count)} ${count === 1 ? one : many}`;
}

/** A time in milliseconds with its unit: `0.21 ms`, `12 ms`. */
export function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(2) : Math.round(value)} ms`;
}
