import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { RetentionTask } from "../../../platform/store/retention.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** The time of the oldest entry of the audit log before this time; null if there is none. */
async function oldestAudit(sql: Sql, before: Instant): Promise<number | null> {
  return (await oldestOfWorkspaces(sql, before))?.at ?? null;
}

/**
 * The workspace whose oldest entry is the oldest of all. The log has an index by workspace and time and none by time
 * alone, so one look-up for each workspace finds it.
 */
async function oldestOfWorkspaces({ db }: Sql, before: Instant): Promise<{ id: string; at: number } | undefined> {
  const { rows } = await raw<{ id: string; at: number }>`
    select id, at from (
      select id, (select min(occurred_at) from audit_events where workspace_id = workspaces.id) as at from workspaces
    ) as oldest where at < ${before} order by at limit 1`.execute(db);
  return rows[0] && { id: rows[0].id, at: Number(rows[0].at) };
}

/** Deletes at most `limit` entries of the audit log before this time, of one workspace; returns their number. */
async function pruneAudit(sql: Sql, before: Instant, limit: number): Promise<number> {
  const oldest = await oldestOfWorkspaces(sql, before);
  if (oldest === undefined) return 0;
  const { db } = sql;
  const events = await db
    .selectFrom("audit_events")
    .select(["id", "occurred_at", "targets"])
    .where("workspace_id", "=", oldest.id)
    .where("occurred_at", "<", before)
    .orderBy("occurred_at")
    .orderBy("id")
    .limit(limit)
    .execute();
  const targets = events.flatMap(({ id, occurred_at, targets }) =>
    (JSON.parse(targets) as string[]).map((target) => ({ target, occurred_at, event_id: id })),
  );
  const types = { target: "text", occurred_at: "bigint", event_id: "text" } as const;
  await raw`delete from audit_targets where (workspace_id, target, occurred_at, event_id) in (
    select ${oldest.id}, target, occurred_at, event_id from ${sql.dialect.values.rows(types, targets)})`.execute(db);
  await db
    .deleteFrom("audit_events")
    .where(
      sql.dialect.values.isOneOf(
        "id",
        events.map(({ id }) => id),
      ),
    )
    .execute();
  return events.length;
}

/** Deletes old entries of the audit log. */
export const auditRetention: RetentionTask = {
  keep: ({ audit }) => audit,
  oldest: oldestAudit,
  step: pruneAudit,
  limit: 300,
  isCostly: true,
};
