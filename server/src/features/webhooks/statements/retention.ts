import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { deletedRows } from "../../../platform/store/deleted-rows.ts";
import type { RetentionTask } from "../../../platform/store/retention.ts";
import type { WebhookDeliveryRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { lockWebhooks, promote } from "./deliveries.ts";

/** The time of the oldest delivery before this time; null if there is none. */
async function oldestDelivery({ db }: Sql, before: Instant): Promise<number | null> {
  const { rows } = await raw<{ at: number }>`
    select created_at as at from webhook_deliveries where created_at < ${before} order by created_at limit 1`.execute(
    db,
  );
  return rows[0] === undefined ? null : Number(rows[0].at);
}

/** Deletes at most `limit` of the oldest deliveries that are older than `before`; returns their number. */
async function pruneDeliveries(sql: Sql, before: Instant, limit: number): Promise<number> {
  const { db } = sql;
  const old = await db
    .selectFrom("webhook_deliveries")
    .select(["webhook_id", "event_number"])
    .where("created_at", "<", before)
    .orderBy("created_at")
    .limit(limit)
    .execute();
  if (old.length === 0) return 0;
  await lockWebhooks(
    sql,
    old.map(({ webhook_id }) => webhook_id),
  );
  const deleted: Pick<WebhookDeliveryRow, "webhook_id" | "object_id" | "status">[] = [];
  for (const [webhookId, rows] of Map.groupBy(old, ({ webhook_id }) => webhook_id)) {
    const gone = await db
      .deleteFrom("webhook_deliveries")
      .where("webhook_id", "=", webhookId)
      .where(
        "event_number",
        "in",
        rows.map(({ event_number }) => event_number),
      )
      .returning(["webhook_id", "object_id", "status"])
      .execute();
    deleted.push(...gone);
    const pending = gone.filter(({ status }) => status === "pending").length;
    if (pending === 0) continue;
    await db
      .updateTable("webhooks")
      .set(({ eb }) => ({ pending: eb("pending", "-", pending) }))
      .where("id", "=", webhookId)
      .execute();
  }
  // One that was pending may have kept others waiting.
  await promote(
    sql,
    deleted
      .filter(({ status }) => status === "pending")
      .map(({ webhook_id, object_id }) => ({ webhookId: webhook_id, objectId: object_id })),
    before,
  );
  return deleted.length;
}

/** Deletes old deliveries. */
export const deliveryRetention: RetentionTask = {
  keep: ({ events }) => events,
  oldest: oldestDelivery,
  step: pruneDeliveries,
  limit: 300,
};

/** Deletes webhooks without deliveries. */
export const webhookRetention = deletedRows("webhooks", {
  references: "select 1 from webhook_deliveries where webhook_id = webhooks.id",
});
