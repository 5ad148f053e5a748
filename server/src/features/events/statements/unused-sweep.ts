import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { insertEvents } from "../../../platform/store/events/events.ts";
import { keysInEvents } from "../../../platform/store/events/keys.ts";
import { UNUSED_DAYS } from "../../../platform/store/events/types.ts";
import { holdLease, type Lease } from "../../../platform/store/lease.ts";
import { pruningTime } from "../../../platform/store/pruning-time.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { readSweep, writeSweep } from "./sweep-state.ts";

const UNUSED: Milliseconds = UNUSED_DAYS * 24 * 3_600_000;

/** Time between the starts of two passes over all keys. */
const INTERVAL: Milliseconds = 24 * 3_600_000;

/** Keys that one step reads. */
const KEYS_PER_STEP = 1_000;

const SWEEP = "unused";

/**
 * Where the sweep is. A key counts as unused since its last use, or since its creation. A pass looks for keys that became
 * unused after `from` and not after `to`, in the order of ids, so a key is found once unless it is used again.
 */
interface UnusedSweep {
  from: number;
  to: number;
  /** The id of the last key; null: the pass has ended. */
  after: string | null;
}

/** The next step of the sweep, found without a transaction. */
export interface UnusedStep {
  /** The state of the sweep in which the pass was found. */
  state: string;
  next: UnusedSweep;
  /** Ids of keys that may be unused. */
  found: string[];
}

/**
 * Looks at the next keys, after the last one of the step before if it was of this pass. Null while no pass is due. An index
 * by the time of the last use would make every use of a key more expensive, so the keys are read one after the other.
 */
export async function findUnusedStep(
  sql: Sql,
  { now, before }: { now: Instant; before: UnusedStep | null },
): Promise<UnusedStep | null> {
  const { text, sweep } = await readSweep<UnusedSweep>(sql, SWEEP);
  const at = await pruningTime(sql, now);
  if (sweep === undefined) return { state: text, next: { from: at, to: at, after: null }, found: [] };
  if (sweep.after === null && at - sweep.to < INTERVAL) return null;
  const started: UnusedSweep = sweep.after === null ? { from: sweep.to, to: at, after: "" } : sweep;
  const pass = before !== null && before.state === text ? before.next : started;
  const { rows } = await raw<{ id: string; active_at: number }>`
    select keys.id, coalesce(key_usage.last_used_at, keys.created_at) as active_at
    from keys left join key_usage on key_usage.key_id = keys.id
    where keys.id > ${pass.after} and keys.deleted_at is null order by keys.id limit ${KEYS_PER_STEP}`.execute(sql.db);
  const found = rows.filter(({ active_at }) => isDue(pass, Number(active_at))).map(({ id }) => id);
  const after = rows.length === KEYS_PER_STEP ? rows.at(-1)!.id : null;
  return { state: text, next: { ...pass, after }, found };
}

/**
 * Records the events of keys that were found, and where the sweep continues, in one transaction. Does nothing if the sweep
 * has moved since the step was found.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function recordUnused(
  sql: Sql,
  { step, lease, now, random }: { step: UnusedStep; lease: Lease; now: Instant; random: Random },
): Promise<void> {
  await holdLease(sql, lease, now);
  const { text } = await readSweep<UnusedSweep>(sql, SWEEP);
  if (text !== step.state) return;
  const { next, found } = step;
  const rows = await sql.db
    .selectFrom("keys")
    .leftJoin("key_usage", "key_usage.key_id", "keys.id")
    .select(["keys.id", "keys.created_at", "key_usage.last_used_at"])
    .where(sql.dialect.values.isOneOf("keys.id", found))
    .execute();
  const lastUses = new Map(
    rows
      .filter(({ created_at, last_used_at }) => isDue(next, last_used_at ?? created_at))
      .map(({ id, last_used_at }) => [id, last_used_at]),
  );
  const keys = lastUses.size === 0 ? [] : await keysInEvents(sql, [...lastUses.keys()]);
  await insertEvents(
    sql,
    keys.map(({ workspaceId, about }) => ({
      id: newId(random, "evt"),
      workspaceId,
      type: "key.unused",
      objectId: about.keyId,
      at: now,
      data: { ...about, lastUsedAt: lastUses.get(about.keyId)!, days: UNUSED_DAYS },
    })),
  );
  await writeSweep(sql, SWEEP, next);
}

function isDue({ from, to }: UnusedSweep, activeAt: number): boolean {
  return activeAt + UNUSED > from && activeAt + UNUSED <= to;
}
