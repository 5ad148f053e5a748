import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { insertEvents, type NewEvent } from "../../../platform/store/events/events.ts";
import { keysInEvents } from "../../../platform/store/events/keys.ts";
import { holdLease, type Lease } from "../../../platform/store/lease.ts";
import { pruningTime } from "../../../platform/store/pruning-time.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { readSweep, writeSweep } from "./sweep-state.ts";

const DAY: Milliseconds = 24 * 3_600_000;

/** The days before its expiry for which an API can ask for an event of a key. */
export const NOTICE_DAYS = [1, 3, 7, 14, 30, 60, 90] as const;

/** The days of an API that has no others. */
export const DEFAULT_NOTICES: readonly number[] = [1, 7];

/** The moments that a pass looks for: the expiry, and days before it. */
const moments = [0, ...NOTICE_DAYS] as const;

/**
 * A pass looks at times until this long ago, so that it does not miss a key whose transaction was open when its time came.
 */
const LAG: Milliseconds = 10_000;

/** Keys of one transaction. */
const KEYS_PER_STEP = 200;

const SWEEP = "expiry";

/** Where the sweep is. Without a pass, everything until `until` was looked at. */
interface ExpirySweep {
  until: number;
  pass?: ExpiryPass;
}

/** A pass over the times after `until` up to `to`, which continues after a key of a workspace. */
interface ExpiryPass extends ExpiryPlace {
  to: number;
}

interface ExpiryPlace {
  /** Index of `moments`. */
  moment: number;
  workspaceId: string;
  /** The expiry and the id of the last key; Infinity is stored as null: the workspace is done. */
  expiresAt: number | null;
  keyId: string;
}

/** The next step of the sweep, found without a transaction; null while everything was looked at. */
export interface ExpiryStep {
  /** The state of the sweep in which the step was found. */
  state: string;
  to: number;
  /** What to look at; null: the pass ends. */
  at: { moment: number; workspaceId: string } | null;
}

/** Finds the next workspace that has keys whose expiry, or a day before it, has come. */
export async function findExpiryStep(sql: Sql, now: Instant): Promise<ExpiryStep | null> {
  const { text, sweep } = await readSweep<ExpirySweep>(sql, SWEEP);
  const to = sweep?.pass?.to ?? (await pruningTime(sql, now)) - LAG;
  if (sweep === undefined) return { state: text, to, at: null };
  if (to <= sweep.until) return null;
  const first = sweep.pass?.moment ?? 0;
  for (let moment = first; moment < moments.length; moment++) {
    const place = moment === first ? sweep.pass : undefined;
    const { rows: found } = await raw<{ id: string }>`
      select workspaces.id from workspaces
      where workspaces.id >= ${place?.workspaceId ?? ""} and exists (
        select 1 from keys where keys.workspace_id = workspaces.id and ${isDue(sweep.until, to, moment)}
          and (workspaces.id > ${place?.workspaceId ?? ""} or ${isAfter(place)})
      ) order by workspaces.id limit 1`.execute(sql.db);
    if (found[0]) return { state: text, to, at: { moment, workspaceId: found[0].id } };
  }
  return { state: text, to, at: null };
}

/**
 * Records the events of some keys, and where the sweep continues, in one transaction. Does nothing if the sweep has moved
 * since the step was found.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function recordExpiries(
  sql: Sql,
  { step, lease, now, random }: { step: ExpiryStep; lease: Lease; now: Instant; random: Random },
): Promise<void> {
  await holdLease(sql, lease, now);
  const { text, sweep } = await readSweep<ExpirySweep>(sql, SWEEP);
  if (text !== step.state) return;
  const { to, at } = step;
  if (sweep === undefined || at === null) {
    await writeSweep(sql, SWEEP, { until: to } satisfies ExpirySweep);
    return;
  }
  const { moment, workspaceId } = at;
  const isContinued = sweep.pass?.moment === moment && sweep.pass.workspaceId === workspaceId;
  const place = isContinued ? sweep.pass : undefined;
  const { rows } = await raw<{ id: string; expires_at: number; is_wanted: number }>`
    select keys.id, keys.expires_at, case when ${isWanted(moment)} then 1 else 0 end as is_wanted
    from keys join apis on apis.id = keys.api_id
    where keys.workspace_id = ${workspaceId} and ${isDue(sweep.until, to, moment)} and ${isAfter(place)}
    order by keys.expires_at, keys.id limit ${KEYS_PER_STEP}
    ${sql.dialect.locks.clause("share", "keys")}`.execute(sql.db);
  const expiries = new Map(
    rows.filter(({ is_wanted }) => Number(is_wanted) === 1).map(({ id, expires_at }) => [id, Number(expires_at)]),
  );
  const keys = expiries.size === 0 ? [] : await keysInEvents(sql, [...expiries.keys()]);
  const events = keys.map(({ workspaceId, about }): NewEvent => {
    const common = { id: newId(random, "evt"), workspaceId, objectId: about.keyId, at: now };
    const data = { ...about, expires: expiries.get(about.keyId)! };
    return moment === 0
      ? { ...common, type: "key.expired", data }
      : { ...common, type: "key.expiring", data: { ...data, days: moments[moment]! } };
  });
  await insertEvents(sql, events);
  const last = rows.length === KEYS_PER_STEP ? rows.at(-1) : undefined;
  const next = last ? { expiresAt: Number(last.expires_at), keyId: last.id } : { expiresAt: null, keyId: "" };
  await writeSweep(sql, SWEEP, {
    until: sweep.until,
    pass: { to, moment, workspaceId, ...next },
  } satisfies ExpirySweep);
}

/** Whether the time of a moment of a key came after `until` and not after `to`. */
function isDue(until: number, to: number, moment: number) {
  const ahead = moments[moment]! * DAY;
  return raw<boolean>`keys.deleted_at is null and keys.expires_at > ${until + ahead} and keys.expires_at <= ${to + ahead}`;
}

function isAfter(place: ExpiryPlace | undefined) {
  if (place === undefined) return raw<boolean>`true`;
  if (place.expiresAt === null) return raw<boolean>`false`;
  return raw<boolean>`(keys.expires_at, keys.id) > (${place.expiresAt}, ${place.keyId})`;
}

/** Whether the API of a key has events for a moment. */
function isWanted(moment: number) {
  if (moment === 0) return raw<boolean>`true`;
  const days = moments[moment]!;
  const listed = raw<boolean>`replace(replace(apis.expiry_notices, '[', ','), ']', ',') like ${`%,${days},%`}`;
  return DEFAULT_NOTICES.includes(days) ? raw<boolean>`(apis.expiry_notices is null or ${listed})` : listed;
}
