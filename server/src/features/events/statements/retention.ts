import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { RetentionTask } from "../../../platform/store/retention.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** The time of the oldest event before this time; null if there is none. */
async function oldestEvent({ db }: Sql, before: Instant): Promise<number | null> {
  const { rows } = await raw<{ at: number }>`
    select created_at as at from events order by number limit 1`.execute(db);
  return rows[0] !== undefined && Number(rows[0].at) < before ? Number(rows[0].at) : null;
}

/**
 * Deletes at most `limit` of the oldest events that are older than `before`; returns their number. They are looked for from
 * the lowest number, because numbers rise with time and times have no index.
 */
async function pruneEvents({ db }: Sql, before: Instant, limit: number): Promise<number> {
  const { rows } = await raw<{ number: number }>`
    delete from events where created_at < ${before} and number in (
      select number from events order by number limit ${limit}
    ) returning number`.execute(db);
  if (rows.length === 0) return 0;
  const last = Math.max(...rows.map(({ number }) => Number(number)));
  await raw`delete from event_outbox where number <= ${last}
    and not exists (select 1 from events where events.number = event_outbox.number)`.execute(db);
  return rows.length;
}

/** Deletes old events. */
export const eventRetention: RetentionTask = {
  keep: ({ events }) => events,
  oldest: oldestEvent,
  step: pruneEvents,
  limit: 1_000,
};
