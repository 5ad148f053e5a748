import { z } from "zod";

/** What an integer in an input counts: milliseconds since 1970, or the milliseconds that something takes. */
export type Unit = "time" | "duration";

/** The units of schemas, for messages about invalid values. */
export const units = z.registry<{ unit: Unit }>();

/** Longer texts are neither numbers nor dates. */
const TEXT_LENGTH_MAX = 40;
const INTEGER = /^-?\d{1,15}$/;
/** The forms of ISO 8601 that are in use; without a time zone it is UTC. */
const DATE = /^\d{4}-\d\d-\d\d(?:([T ])\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?$/i;
const DURATION = /^(\d{1,9}) ?(ms|s|m|h|d)$/;
const MILLISECONDS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** How to write a text as the number that is needed; undefined if it is not clear which one is meant. */
export function numberFix(text: string, unit: Unit | undefined): string | undefined {
  if (text.length > TEXT_LENGTH_MAX) return unit === undefined ? undefined : `Send ${PHRASES[unit]}.`;
  if (INTEGER.test(text)) return `Send ${Number(text)} without quotation marks.`;
  if (unit === undefined) return undefined;
  const number = unit === "time" ? timeOf(text) : durationOf(text);
  return number === undefined ? `Send ${PHRASES[unit]}.` : `Send ${PHRASES[unit]}: ${number}.`;
}

/** A sentence for a duration that was probably meant in seconds; empty if it was not. */
export function secondsFix(value: unknown, minimum: number): string {
  const milliseconds = Number(value) * 1_000;
  return Number.isInteger(milliseconds) && milliseconds >= minimum ? ` ${value} seconds are ${milliseconds}.` : "";
}

const PHRASES: Record<Unit, string> = {
  time: "a Unix time in milliseconds",
  duration: "a number of milliseconds",
};

function timeOf(text: string): number | undefined {
  const match = DATE.exec(text);
  if (match === null) return undefined;
  const [, separator, zone] = match;
  const time = Date.parse(separator !== undefined && zone === undefined ? `${text}Z` : text);
  return Number.isNaN(time) ? undefined : time;
}

function durationOf(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text) ?? [];
  return unit === undefined ? undefined : Number(count) * MILLISECONDS[unit as keyof typeof MILLISECONDS];
}
