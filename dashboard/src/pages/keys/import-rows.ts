import type { Input } from "../../api/client.ts";

export const FILE_BYTES_MAX = 10 * 1024 * 1024;
export const ROWS_MAX = 20_000;
const HASH = /^(?:[0-9a-fA-F]{64}|[A-Za-z0-9+/_-]{43}=?)$/;

/** A key as `keys.migrateKeys` takes it. */
export type ImportedKey = Input<"keys.migrateKeys">["keys"][number];

/** What a file holds: the keys to import, and the rows that cannot be. */
export interface Rows {
  readonly keys: readonly ImportedKey[];
  readonly rejected: readonly { readonly row: number; readonly reason: string }[];
}

/** The names of columns, in any case, with the member that they fill. */
const columns: Record<string, string> = {
  key: "key",
  hash: "hash",
  name: "name",
  externalid: "externalId",
  owner: "externalId",
  expires: "expires",
  expiresat: "expires",
  enabled: "enabled",
  roles: "roles",
  permissions: "permissions",
  credits: "credits",
  remaining: "credits",
  creditsremaining: "credits",
  creditsrefillinterval: "interval",
  creditsrefillamount: "amount",
  creditsrefillrefillday: "refillDay",
  creditsrefillrefillmonth: "refillMonth",
  creditsrefilltimezone: "timeZone",
  creditsrefillrollover: "rollover",
  meta: "meta",
  ratelimits: "ratelimits",
};
/** A column with one member of the metadata: `meta.plan`. */
const META = /^meta\.(.+)$/;

/**
 * Reads a file of keys: JSON with a list of objects, CSV with a line of names, or one key per line. Key strings are hashed
 * here and never sent.
 */
export async function readRows(text: string): Promise<Rows> {
  const records = recordsOf(text);
  if (records.length > ROWS_MAX) {
    throw new Error(`The file has more than ${ROWS_MAX.toLocaleString("en")} rows: use the command line.`);
  }
  const keys: ImportedKey[] = [];
  const rejected: { row: number; reason: string }[] = [];
  const seen = new Set<string>();
  for (const [index, record] of records.entries()) {
    try {
      const key = await keyOf(record);
      if (seen.has(key.hash)) throw new Error("The same key is in an earlier row.");
      seen.add(key.hash);
      keys.push(key);
    } catch (error) {
      rejected.push({ row: index + 1, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return { keys, rejected };
}

type Fields = Readonly<Record<string, unknown>>;

function recordsOf(text: string): Fields[] {
  const trimmed = text.replace(/^\uFEFF/, "").trim();
  if (trimmed.startsWith("[")) {
    return parseList(trimmed).map((entry) => named(Object.entries(Object(entry))));
  }
  const [head = [], ...rows] = parseCsv(trimmed);
  const names = head.map((name) => name.trim());
  const isTable = names.some((name) => columns[plain(name)] === "key" || columns[plain(name)] === "hash");
  if (!isTable) return [head, ...rows].map(([key]) => ({ key }));
  return rows.map((row) => named(row.map((value, index) => [names[index] ?? "", value])));
}

function parseList(text: string): unknown[] {
  try {
    return JSON.parse(text) as unknown[];
  } catch (error) {
    throw new Error(`This is no JSON: ${error instanceof Error ? error.message : error}`);
  }
}

function named(entries: [string, unknown][]): Fields {
  return Object.fromEntries(
    entries.flatMap(([name, value]) => {
      const member = META.test(name) ? name : columns[plain(name)];
      return member === undefined || value === "" || value === null ? [] : [[member, value]];
    }),
  );
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, "");
}

async function keyOf({
  key,
  hash,
  name,
  externalId,
  expires,
  enabled,
  roles,
  permissions,
  credits,
  interval,
  amount,
  refillDay,
  refillMonth,
  timeZone,
  rollover,
  meta,
  ratelimits,
  ...more
}: Fields): Promise<ImportedKey> {
  const digest = hash === undefined ? await hashOf(key) : String(hash).trim();
  if (!HASH.test(digest)) throw new Error("The hash is no SHA-256 in hex or base64.");
  return {
    hash: digest,
    ...(name !== undefined && { name: String(name) }),
    ...(externalId !== undefined && { externalId: String(externalId) }),
    ...(expires !== undefined && { expires: timeOf(expires) }),
    ...(enabled !== undefined && { enabled: !/^(false|0|no)$/i.test(String(enabled)) }),
    ...(roles !== undefined && { roles: namesOf(roles) }),
    ...(permissions !== undefined && { permissions: namesOf(permissions) }),
    ...(credits !== undefined && {
      credits: creditsOf(credits, { interval, amount, refillDay, refillMonth, timeZone, rollover }),
    }),
    ...((meta !== undefined || Object.keys(more).length > 0) && { meta: metaOf(meta, more) }),
    ...(ratelimits !== undefined && { ratelimits: jsonOf(ratelimits, "ratelimits") as Ratelimits }),
  };
}

async function hashOf(key: unknown): Promise<string> {
  if (typeof key !== "string" || key.trim() === "") throw new Error("It has neither a key nor a hash.");
  if (!globalThis.isSecureContext) {
    throw new Error("A browser hashes only on https or localhost: give hashes, or use `latchkey import`.");
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key.trim())));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function timeOf(value: unknown): number {
  const text = String(value);
  const time = /^\d{12,13}$/.test(text) ? Number(text) : Date.parse(text);
  if (Number.isNaN(time)) throw new Error(`${text} is no time: use 2027-01-31T12:00:00Z or milliseconds.`);
  return time;
}

function wholeOf(value: unknown): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${value} is no number of credits.`);
  return number;
}

type Credits = NonNullable<ImportedKey["credits"]>;
type Ratelimits = NonNullable<ImportedKey["ratelimits"]>;

/** A balance: a number, or the object that the operation takes. */
function creditsOf(
  credits: unknown,
  { interval, amount, refillDay, refillMonth, timeZone, rollover }: Fields,
): Credits {
  if (typeof credits === "object") return credits as Credits;
  const refill = interval !== undefined && {
    interval: interval as NonNullable<Credits["refill"]>["interval"],
    amount: wholeOf(amount),
    ...(refillDay !== undefined && { refillDay: wholeOf(refillDay) }),
    ...(refillMonth !== undefined && { refillMonth: wholeOf(refillMonth) }),
    ...(timeZone !== undefined && { timeZone: String(timeZone) }),
    ...(rollover !== undefined && { rollover: wholeOf(rollover) }),
  };
  return { remaining: wholeOf(credits), ...(refill && { refill }) };
}

/** Metadata: an object, and members in columns of their own. */
function metaOf(meta: unknown, columns: Fields): Record<string, unknown> {
  const members = Object.entries(columns).map(([name, value]) => [META.exec(name)![1]!, parsed(value)]);
  return { ...(meta === undefined ? {} : jsonOf(meta, "meta")), ...Object.fromEntries(members) };
}

/** An object or a list of a JSON file, or its JSON in a cell. */
function jsonOf(value: unknown, name: string): object {
  const found = parsed(value);
  if (typeof found !== "object" || found === null) throw new Error(`${name} is no JSON.`);
  return found;
}

/** The value of a text that is JSON; anything else as it is. */
function parsed(value: unknown): unknown {
  try {
    return typeof value === "string" ? JSON.parse(value) : value;
  } catch {
    return value;
  }
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value)
    ? value.map(String)
    : String(value)
        .split(/[\s,;]+/)
        .filter(Boolean);
}

/** The rows of a CSV text (RFC 4180). */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, unquoted = "", end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    row.push(quoted === undefined ? unquoted : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    if (row.some((value) => value !== "")) rows.push(row);
    row = [];
  }
  return rows;
}
