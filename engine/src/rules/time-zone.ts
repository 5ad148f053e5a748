import { type Instant, instantAt } from "../clock/clock.ts";

/** The furthest that a local time is before and after UTC. */
const BEHIND_MAX = 16 * 3_600_000;
const AHEAD_MAX = 16 * 3_600_000;
/** Time zones in memory: more than there are names. */
const ZONES_MAX = 1_024;
/** Starts of days in memory for each zone. */
const STARTS_MAX = 1_000;

/** Whether this is the name of a time zone in the IANA database, such as `Europe/Berlin`. */
export function isTimeZone(name: string): boolean {
  return zoneOf(name).isKnown;
}

/**
 * The first instant at which the local date is `day` or a later one; `day` counts from 1970-01-01. This is midnight. If
 * the clocks skip midnight, it is the instant at which they do; if midnight occurs twice, the first one; if the zone
 * skips the whole day, the start of the next one.
 */
export function startOfDay(day: number, timeZone: string | undefined): Instant {
  const midnight = day * 86_400_000;
  return timeZone === undefined || timeZone === "UTC" ? instantAt(midnight) : zoneOf(timeZone).startAt(midnight);
}

const zones = new Map<string, Zone>();

/** Upper and lower case are the same to Intl. Names that do not exist are not kept, so that they displace none. */
function zoneOf(name: string): Zone {
  const folded = name.toLowerCase();
  const known = zones.get(folded);
  if (known) return known;
  const zone = new Zone(name);
  if (!zone.isKnown) return zone;
  if (zones.size >= ZONES_MAX) zones.clear();
  zones.set(folded, zone);
  return zone;
}

class Zone {
  readonly #format: Intl.DateTimeFormat | undefined;
  readonly #starts = new Map<number, Instant>();

  constructor(timeZone: string) {
    this.#format = formatOf(timeZone);
  }

  get isKnown(): boolean {
    return this.#format !== undefined;
  }

  startAt(midnight: number): Instant {
    const known = this.#starts.get(midnight);
    if (known !== undefined) return known;
    if (this.#starts.size >= STARTS_MAX) this.#starts.clear();
    const start = instantAt(this.#findStart(midnight));
    this.#starts.set(midnight, start);
    return start;
  }

  #findStart(midnight: number): number {
    let before = midnight - AHEAD_MAX;
    let after = midnight + BEHIND_MAX;
    const offset = this.#offsetAt(before);
    const offsetAfter = this.#offsetAt(after);
    if (offset === offsetAfter) return midnight - offset;
    // The offset changes once in this time: by bisection, at `after`.
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (this.#offsetAt(middle) === offset) before = middle;
      else after = middle;
    }
    if (midnight - offset < after) return midnight - offset;
    return after + offsetAfter >= midnight ? after : midnight - offsetAfter;
  }

  /** Local time less UTC, in milliseconds. */
  #offsetAt(at: number): number {
    // Another version of Node has stored a zone that this one does not know. It counts as UTC: an error would fail the batch
    // of the ledger, and with it the calls of other workspaces.
    if (!this.#format) return 0;
    const value = this.#format.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "";
    // "GMT", "GMT+05:30", or with seconds "GMT-00:44:30".
    const parts = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(value);
    if (!parts) throw new Error(`Intl has an unknown form of an offset: ${value}`);
    const [, sign, hours = "0", minutes = "0", seconds = "0"] = parts;
    const size = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1_000;
    return sign === "-" ? -size : size;
  }
}

/** Writes the offsets of a zone; undefined if it does not exist. */
function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  // Intl also takes offsets such as "+01:00", which are not in the database.
  if (!/^[A-Za-z]/.test(timeZone)) return undefined;
  try {
    return new Intl.DateTimeFormat("en", { timeZone, timeZoneName: "longOffset" });
  } catch {
    return undefined;
  }
}
