const SECOND = 1_000;
const DAY = 86_400_000;

/** The units of limits in the protocol, by their numbers there. The service calls 30 days a month, and 365 a year. */
const durations: ReadonlyMap<number, number> = new Map([
  [1, SECOND],
  [2, 60 * SECOND],
  [3, 3_600 * SECOND],
  [4, DAY],
  [5, 30 * DAY],
  [6, 365 * DAY],
  [7, 7 * DAY],
]);
const units = new Map([...durations].map(([unit, duration]) => [duration, unit]));

export const UNKNOWN_UNIT = 0;

/** The length of a unit in milliseconds; undefined: there is no such unit. */
export function durationOf(unit: number): number | undefined {
  return durations.get(unit);
}

export function unitOf(duration: number): number {
  return units.get(duration) ?? UNKNOWN_UNIT;
}
