import { digest } from "../../../../engine/src/crypto/digest.ts";
import { inKeyOrder, type Rollup, type Usage, type UsageLevel, usageLevels } from "../../features/analytics/batch.ts";
import type { Level } from "../../features/analytics/levels.ts";
import { DAY, type DemoContent, type DemoKey, type DemoWorkspace, HOUR, MINUTE } from "./demo-content.ts";

const DAYS = 30;

/** Verifications per key in 30 days, on average. Keys that do not work have fewer, so that 100,000 keys have 12 million. */
const VERIFICATIONS_PER_KEY = 140;

/** Keys with at least this many verifications have some on every day; others on a few days. */
const DAILY_MIN = 300;
/** The busiest keys have verifications in every hour of the last week. */
const HOURLY_KEYS = 300;
const HOURLY_DAYS = 7;
/** Minutes of APIs, as far back as charts show minutes. */
const MINUTES_OF = 6 * HOUR;

const LATENCY_US = 190;
/** Attempts with unknown keys, in proportion to verifications. */
const UNKNOWN_SHARE = 0.004;

/** Rows of one transaction. */
const ROWS_PER_WRITE = 4_000;

/** Counts by outcome. */
type Counts = Map<string, number>;

/** Writes rows of one level. Each call is a small transaction. */
export interface TrafficWriter {
  rollups(level: Level, rows: readonly Rollup[]): Promise<unknown>;
  usage(level: UsageLevel, rows: readonly Usage[]): Promise<unknown>;
}

/** The traffic of one day in the order of the hours: quiet nights, busy afternoons. */
const hourly = Array.from({ length: 24 }, (_, hour) => 0.35 + 0.65 * Math.sin((Math.PI * ((hour + 2) % 24)) / 24) ** 2);

/**
 * Makes 30 days of traffic as rollups. They agree with one another: an API, an identity and a day have the sum of their
 * keys and hours. Returns the number of verifications, and when each key had its last one.
 */
export async function writeTraffic(
  workspace: DemoWorkspace,
  content: DemoContent,
  writer: TrafficWriter,
  onDay: (day: number, days: number) => void,
): Promise<{ verifications: number; lastUsed: ReadonlyMap<string, number> }> {
  const { now, random, workspaceId } = workspace;
  const today = now - (now % DAY);
  const plan = planOf(workspace, content.keys);
  /** The last hour in which a key was used, or the last day. */
  const lastBuckets = new Map<string, { time: number; length: number }>();
  const use = (key: DemoKey, time: number, length: number) => {
    const last = lastBuckets.get(key.id);
    if (last === undefined || last.time < time) lastBuckets.set(key.id, { time, length });
  };
  let verifications = 0;
  for (let back = DAYS - 1; back >= 0; back--) {
    const start = today - back * DAY;
    const rows: Record<Level, Rows> = { minute: new Rows(), hour: new Rows(), day: new Rows() };
    const usage: Record<UsageLevel, Usage[]> = { hour: [], day: [] };
    const ofApis = new Map(content.apis.map(({ id }) => [id, { counts: new Map() as Counts, creditsSpent: 0 }]));
    for (const [i, key] of content.keys.entries()) {
      const count = plan.count(i, DAYS - 1 - back);
      if (count === 0 || key.createdAt >= start + DAY) continue;
      const counts = outcomesOf(key, count, start, random.below(100));
      const subjects = key.identityId === null ? [key.id] : [key.id, key.identityId];
      const { id: keyId, apiId, identityId } = key;
      const used = { workspaceId, keyId, apiId, identityId: identityId ?? "" };
      const spent = (outcome: string, number: number) => (key.hasCredits && outcome === "VALID" ? number : 0);
      for (const [outcome, number] of counts) {
        verifications += number;
        const ofApi = ofApis.get(key.apiId)!;
        addTo(ofApi.counts, outcome, number);
        ofApi.creditsSpent += spent(outcome, number);
        usage.day.push({ ...used, time: start, outcome, count: number, creditsSpent: spent(outcome, number) });
        for (const subject of subjects) rows.day.add(start, subject, outcome, number, spent(outcome, number));
        if (back >= HOURLY_DAYS) {
          use(key, start, DAY);
          continue;
        }
        for (const [time, part] of hoursOf(start, number, now, plan.hours(i, random.below(24)))) {
          usage.hour.push({ ...used, time, outcome, count: part, creditsSpent: spent(outcome, part) });
          use(key, time, HOUR);
          for (const subject of subjects) rows.hour.add(time, subject, outcome, part, spent(outcome, part));
        }
      }
    }
    for (const { id, paths } of content.apis) {
      const { counts, creditsSpent } = ofApis.get(id)!;
      for (const [outcome, number] of counts) {
        const spent = outcome === "VALID" ? creditsSpent : 0;
        rows.day.add(start, id, outcome, number, spent);
        addPaths(rows.day, start, id, outcome, number, spent, paths);
        const spentIn = dividing(spent, number);
        for (const [time, part] of hoursOf(start, number, now)) {
          const ofHour = spentIn(part);
          rows.hour.add(time, id, outcome, part, ofHour);
          addPaths(rows.hour, time, id, outcome, part, ofHour, paths);
          if (time + HOUR <= now - MINUTES_OF) continue;
          const ofMinute = dividing(ofHour, part);
          for (const [minute, some] of minutesOf(time, part, now)) {
            rows.minute.add(minute, id, outcome, some, ofMinute(some));
          }
        }
      }
    }
    const ofDay = [...ofApis.values()]
      .flatMap(({ counts }) => [...counts.values()])
      .reduce((sum, number) => sum + number, 0);
    const unknown = Math.round(ofDay * UNKNOWN_SHARE);
    for (const [time, part] of hoursOf(start, unknown, now)) rows.hour.add(time, workspaceId, "NOT_FOUND", part);
    rows.day.add(start, workspaceId, "NOT_FOUND", unknown);
    addRatelimits(rows, workspace, content, start);
    for (const level of ["day", "hour", "minute"] as const) {
      await inPieces(rows[level].sorted(), (some) => writer.rollups(level, some));
    }
    for (const level of usageLevels) await inPieces(inKeyOrder(usage[level]), (some) => writer.usage(level, some));
    onDay(DAYS - back, DAYS);
  }
  const lastUsed = new Map<string, number>();
  for (const { id, createdAt } of content.keys) {
    const bucket = lastBuckets.get(id);
    if (bucket === undefined) continue;
    const end = Math.min(now, bucket.time + bucket.length);
    lastUsed.set(id, Math.max(createdAt, end - 1 - random.below(Math.max(1, end - bucket.time))));
  }
  return { verifications, lastUsed };
}

async function inPieces<Row>(rows: readonly Row[], write: (some: readonly Row[]) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < rows.length; i += ROWS_PER_WRITE) await write(rows.slice(i, i + ROWS_PER_WRITE));
}

/** The verifications of each key on each day. Few keys have most of them. */
function planOf({ random, now }: DemoWorkspace, keys: readonly DemoKey[]) {
  const ranks = keys.map((_, i) => i);
  for (let i = ranks.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [ranks[i], ranks[j]] = [ranks[j]!, ranks[i]!];
  }
  const weights = ranks.map((rank) => (rank + 3) ** -0.8);
  const sum = weights.reduce((a, b) => a + b, 0);
  const totals = weights.map((weight) => Math.max(1, Math.round((keys.length * VERIFICATIONS_PER_KEY * weight) / sum)));
  const today = now - (now % DAY);
  const factors = Array.from({ length: DAYS }, (_, day) => {
    const start = today - (DAYS - 1 - day) * DAY;
    const isWeekend = [0, 6].includes(new Date(start).getUTCDay());
    const share = elapsedShare(start, now);
    return (isWeekend ? 0.62 : 1) * (0.85 + 0.3 * (day / DAYS)) * (0.92 + random.below(160) / 1_000) * share;
  });
  const factorSum = factors.reduce((a, b) => a + b, 0);
  /** The two days of a key with few verifications. */
  const active = keys.map(() => [random.below(DAYS), random.below(DAYS)] as const);
  return {
    count(i: number, day: number): number {
      const total = totals[i]!;
      if (total >= DAILY_MIN) return Math.round((total * factors[day]!) / factorSum);
      const [one, other] = active[i]!;
      const whole = [one, other].filter((active) => active === day).length * (total / 2);
      return Math.ceil(whole * elapsedShare(today - (DAYS - 1 - day) * DAY, now));
    },
    /** The hours of a key's day: all of them, or a few that begin at `first`. */
    hours(i: number, first: number): readonly number[] | undefined {
      if (ranks[i]! < HOURLY_KEYS) return undefined;
      const length = totals[i]! >= DAILY_MIN ? 3 : 1;
      return Array.from({ length }, (_, n) => (first + n * 5) % 24);
    },
  };
}

/** The outcomes of one key on one day. Their sum is `count`, less for a key that does not work. */
function outcomesOf(key: DemoKey, count: number, start: number, noise: number): Counts {
  // Callers give up on keys that do not work.
  if (!key.isEnabled) return new Map([["DISABLED", Math.ceil(count / 20)]]);
  if (key.expiresAt !== null && key.expiresAt <= start) return new Map([["EXPIRED", Math.ceil(count / 10)]]);
  const part = (perMille: number) => Math.floor((count * perMille) / 1_000);
  const limited = key.hasLimit ? part(noise < 15 ? 90 : 14) : 0;
  const exceeded = key.hasCredits ? part(noise < 8 ? 60 : 6) : 0;
  const lacking = part(noise % 10 === 0 ? 20 : 2);
  const counts: Counts = new Map([["VALID", count - limited - exceeded - lacking]]);
  if (limited > 0) counts.set("RATE_LIMITED", limited);
  if (exceeded > 0) counts.set("USAGE_EXCEEDED", exceeded);
  if (lacking > 0) counts.set("INSUFFICIENT_PERMISSIONS", lacking);
  return counts;
}

function addTo(counts: Counts, outcome: string, number: number): void {
  counts.set(outcome, (counts.get(outcome) ?? 0) + number);
}

/** The share of a day's traffic that belongs to the time before `now`. */
function elapsedShare(start: number, now: number): number {
  const elapsed = (now - start) / HOUR;
  const before = hourly.reduce((sum, weight, hour) => sum + weight * Math.min(1, Math.max(0, elapsed - hour)), 0);
  return before / hourly.reduce((sum, weight) => sum + weight, 0);
}

/** Divides a count over the hours of a day that have begun. */
function hoursOf(start: number, count: number, now: number, hours: readonly number[] = hourly.map((_, hour) => hour)) {
  const begun = hours.filter((hour) => start + hour * HOUR <= now);
  const used = begun.length > 0 ? begun : [0];
  return divide(
    count,
    used.map((hour) => [start + hour * HOUR, hourly[hour]!] as const),
  );
}

function minutesOf(start: number, count: number, now: number) {
  const minutes = Array.from({ length: 60 }, (_, i) => start + i * MINUTE).filter((time) => time <= now);
  return divide(
    count,
    minutes.map((time, i) => [time, 1 + 0.3 * Math.sin(i * 1.7 + (start / HOUR) * 0.9)] as const),
  );
}

/** Whole numbers in the proportion of the weights; their sum is `count`. Without the zeros. */
function* divide(count: number, parts: readonly (readonly [time: number, weight: number])[]) {
  const sum = parts.reduce((total, [, weight]) => total + weight, 0);
  let [reached, given] = [0, 0];
  for (const [time, weight] of parts) {
    reached += weight;
    const until = Math.round((count * reached) / sum);
    if (until > given) yield [time, until - given] as const;
    given = until;
  }
}

/** Gives each part of a count, in their order, its share of an amount. The shares of all parts are the amount. */
function dividing(amount: number, count: number): (part: number) => number {
  let [reached, given] = [0, 0];
  return (part) => {
    reached += part;
    const share = Math.round((amount * reached) / count) - given;
    given += share;
    return share;
  };
}

function addPaths(
  rows: Rows,
  time: number,
  api: string,
  outcome: string,
  count: number,
  spent: number,
  paths: readonly string[],
): void {
  const ofPath = dividing(spent, count);
  const weighted = paths.map((path, i) => [i, 1 / (i + 1), path] as const);
  for (const [i, number] of divide(
    count,
    weighted.map(([i, weight]) => [i, weight] as const),
  )) {
    rows.add(time, api, outcome, number, ofPath(number), JSON.stringify([`path=${weighted[i]![2]}`]));
  }
}

function addRatelimits(
  rows: Record<Level, Rows>,
  { random, keys, now }: DemoWorkspace,
  { namespaces }: DemoContent,
  start: number,
): void {
  for (const [n, { id, identifiers }] of namespaces.entries()) {
    for (const [i, identifier] of identifiers.entries()) {
      const ofDay = Math.round(((keys / 50) * (3 - n)) / (i + 1)) + random.below(20);
      const passed = Math.round(ofDay * elapsedShare(start, now));
      const denied = i < 4 ? random.below(1 + passed) : 0;
      for (const [outcome, count] of [
        ["PASSED", passed],
        ["DENIED", denied],
      ] as const) {
        const amount = (number: number) => (outcome === "PASSED" ? number : 0);
        for (const [time, number] of hoursOf(start, count, now)) {
          for (const label of ["", identifier]) {
            rows.hour.add(time, id, outcome, number, amount(number), label);
            rows.day.add(start, id, outcome, number, amount(number), label);
          }
        }
      }
    }
  }
}

/** Rows of one level, each combination once. */
class Rows {
  readonly #rows = new Map<string, Rollup>();

  add(time: number, subject: string, outcome: string, count: number, amount = 0, label = ""): void {
    if (count === 0) return;
    const name = `${time} ${subject} ${outcome} ${label}`;
    const row = this.#rows.get(name);
    if (row === undefined) {
      const part = label === "" ? "" : digest(label);
      this.#rows.set(name, { time, subject, part, outcome, label, count, amount, latencyUs: count * LATENCY_US });
      return;
    }
    row.count += count;
    row.amount += amount;
    row.latencyUs += count * LATENCY_US;
  }

  /** In the order of the primary key, in which databases insert them fastest. */
  sorted(): Rollup[] {
    return [...this.#rows.values()].sort((a, b) => a.time - b.time || (a.subject < b.subject ? -1 : 1));
  }
}
