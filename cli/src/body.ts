import type { Instant } from "../../engine/src/clock/clock.ts";
import type { Flag } from "./declared.ts";
import { UsageError } from "./output.ts";

/** What the command line gave for a flag. `true`: a boolean flag without a value. */
export type Given = string | readonly string[] | true;

type Json = Record<string, unknown>;

/**
 * The request body that flags give, on top of `base`.
 *
 * @param given by the path of the member.
 * @throws {UsageError} on a text that does not fit its flag.
 */
export function bodyOf(
  flags: readonly Flag[],
  given: ReadonlyMap<string, Given>,
  now: Instant,
  base: unknown = {},
): unknown {
  const whole = flags.find(({ path }) => path === "");
  if (whole) return given.has("") ? memberOf(whole, given.get("")!, now) : base;
  const body = structuredClone(base) as Json;
  for (const flag of flags) {
    if (!given.has(flag.path)) continue;
    set(body, flag.path.split("."), memberOf(flag, given.get(flag.path)!, now), flag);
  }
  return body;
}

/** Sets a nested member. Objects on its path are created. */
function set(target: Json, [name = "", ...rest]: string[], value: unknown, flag: Flag): void {
  const isLast = rest.length === 0;
  const existing = Object.hasOwn(target, name) ? target[name] : undefined;
  if (!isLast && existing !== undefined && !isObject(existing)) {
    throw new UsageError(
      `--${flag.name} is a member of ${name}, which another flag sets as a whole. Give only one of them.`,
    );
  }
  const member = isLast ? value : (existing ?? {});
  // A plain assignment of `__proto__` would set the prototype.
  Object.defineProperty(target, name, { value: member, enumerable: true, writable: true, configurable: true });
  if (!isLast) set(member as Json, rest, value, flag);
}

function memberOf(flag: Flag, given: Given, now: Instant): unknown {
  const texts = given === true ? ["true"] : typeof given === "string" ? [given] : given;
  const last = texts.at(-1)!;
  if (flag.nullable && last === "null") return null;
  switch (flag.kind) {
    case "text":
      return last;
    case "boolean":
      if (last !== "true" && last !== "false") throw misfit(flag, last, "true or false");
      return last === "true";
    case "integer":
      return readInteger(last) ?? fail(flag, last, "a whole number");
    case "time":
    case "duration":
      return readUnit(flag.kind, last, now) ?? fail(flag, last, unitForms[flag.kind]);
    case "json":
      return readJson(last) ?? fail(flag, last, "JSON");
    case "list":
      return texts.flatMap((text) => readList(flag, text));
    case "members": {
      const members: Json = {};
      for (const text of texts) readMembers(members, text, flag);
      return members;
    }
    case "entries":
      return texts.flatMap((text) => readEntries(flag, text, now));
  }
}

function misfit({ name, nullable }: Flag, text: string, accepted: string): UsageError {
  return new UsageError(`--${name} ${text}: give ${accepted}${nullable ? ", or null" : ""}.`);
}

function fail(flag: Flag, text: string, accepted: string): never {
  throw misfit(flag, text, accepted);
}

/** A whole number that a double holds exactly. */
function readInteger(text: string): number | undefined {
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

const unitForms = {
  time: "a date such as 2027-01-31, a time from now such as +30d, or Unix time in milliseconds",
  duration: "a duration such as 60s or 1h, or milliseconds",
} as const;

/** A time or a duration, in milliseconds; undefined for any other text. */
function readUnit(kind: keyof typeof unitForms, text: string, now: Instant): number | undefined {
  return readInteger(text) ?? (kind === "time" ? readTime(text, now) : readDuration(text));
}

const unitMs = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
} as const;

/** A duration such as `60s`, in milliseconds; undefined for any other text. */
export function readDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,12})(ms|s|m|h|d|w)$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * unitMs[unit as keyof typeof unitMs];
}

function readTime(text: string, now: Instant): number | undefined {
  if (text.startsWith("+")) {
    const length = readDuration(text.slice(1));
    return length === undefined ? undefined : now + length;
  }
  const time = /^\d{4}-\d{2}-\d{2}(T|$)/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

/** A JSON value in a list of its own, because it can be null; undefined for other texts. */
function tryJson(text: string): [unknown] | undefined {
  try {
    return [JSON.parse(text)];
  } catch {
    return undefined;
  }
}

function readJson(text: string): unknown {
  return tryJson(text)?.[0];
}

function readList(flag: Flag, text: string): unknown[] {
  const list = text.startsWith("[") ? readJson(text) : undefined;
  if (Array.isArray(list)) return list;
  const items = flag.commas ? text.split(",").map((part) => part.trim()) : [text];
  return flag.integers ? items.map((item) => readInteger(item) ?? fail(flag, text, "whole numbers")) : items;
}

/** Adds the members of a JSON object, or of `path=value`. */
function readMembers(members: Json, text: string, flag: Flag): void {
  const object = text.startsWith("{") ? readJson(text) : undefined;
  if (isObject(object)) {
    for (const [name, value] of Object.entries(object)) set(members, [name], value, flag);
    return;
  }
  const [path, value] = splitPair(text) ?? fail(flag, text, "a JSON object, or name=value");
  set(members, path.split("."), scalar(value), flag);
}

function readEntries(flag: Flag, text: string, now: Instant): unknown[] {
  const value = /^[[{]/.test(text) ? readJson(text) : undefined;
  if (Array.isArray(value)) return value;
  if (isObject(value)) return [value];
  const entry: Json = {};
  for (const part of text.split(",")) {
    const [name, member] = splitPair(part) ?? fail(flag, text, "a JSON object, or name=value,name=value");
    const camel = name.trim().replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const kind = flag.members?.[camel];
    const value =
      kind === undefined
        ? scalar(member)
        : (readUnit(kind, member.trim(), now) ?? fail(flag, text, `${name.trim()} as ${unitForms[kind]}`));
    set(entry, camel.split("."), value, flag);
  }
  return [entry];
}

function splitPair(text: string): [name: string, value: string] | undefined {
  const at = text.indexOf("=");
  return at < 1 ? undefined : [text.slice(0, at), text.slice(at + 1)];
}

/** The value of `name=value`: JSON if it is JSON, else the text itself. */
function scalar(text: string): unknown {
  const json = tryJson(text);
  return json ? json[0] : text;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
