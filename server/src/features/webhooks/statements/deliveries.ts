import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { WebhookDeliveryRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { RETRY_WINDOW } from "../retries.ts";

/** Deliveries that one call of `redeliver` starts. */
export const REDELIVERIES_MAX = 1_000;

/** The most dead letters of a webhook that are counted. */
export const DEAD_COUNTED_MAX = 1_000;

/** What came of the deliveries of a webhook. */
export interface DeliverySummary {
  /** The number of dead letters, at most `DEAD_COUNTED_MAX`. */
  dead: number;
  /** When the newest event that was delivered was, in epoch milliseconds; null: none was. */
  delivered_at: number | null;
}

/** A delivery with its event, which may be gone. */
export interface DeliveryOfEvent extends WebhookDeliveryRow {
  event_id: string | null;
  event_type: string | null;
}

/** Which deliveries of a webhook to read, the newest first. */
export interface DeliveryPageOptions {
  webhookId: string;
  status: WebhookDeliveryRow["status"] | undefined;
  eventId: string | undefined;
  /** The highest number of an event on the page. */
  from: number | undefined;
  limit: number;
}

/** The deliveries of one workspace. */
export class DeliveryReader extends WorkspaceRows {
  page({ webhookId, status, eventId, from, limit }: DeliveryPageOptions): Promise<DeliveryOfEvent[]> {
    let query = this.sql.db
      .selectFrom("webhook_deliveries as d")
      .leftJoin("events as e", "e.number", "d.event_number")
      .selectAll("d")
      .select(["e.id as event_id", "e.type as event_type"])
      .where("d.workspace_id", "=", this.workspaceId)
      .where("d.webhook_id", "=", webhookId);
    if (status !== undefined) query = query.where("d.status", "=", status);
    if (eventId !== undefined) {
      query = query.where("d.event_number", "=", ({ selectFrom }) =>
        selectFrom("events").select("number").where("id", "=", eventId).where("workspace_id", "=", this.workspaceId),
      );
    }
    if (from !== undefined) query = query.where("d.event_number", "<=", from);
    return query.orderBy("d.event_number", "desc").limit(limit).execute();
  }

  /** What came of the deliveries of these webhooks, by their ids. */
  async summaries(webhookIds: readonly string[]): Promise<Map<string, DeliverySummary>> {
    const { rows } = await raw<{ id: string; dead: number; delivered_at: number | null }>`
      select w.id, (
        select count(*) from (
          select 1 from webhook_deliveries d where d.webhook_id = w.id and d.status = 'dead' limit ${DEAD_COUNTED_MAX}
        ) counted
      ) as dead, (
        select d.completed_at from webhook_deliveries d where d.webhook_id = w.id and d.status = 'delivered'
        order by d.event_number desc limit 1
      ) as delivered_at
      from webhooks w where w.workspace_id = ${this.workspaceId} and ${this.sql.dialect.values.isOneOf("w.id", webhookIds)}`.execute(
      this.sql.db,
    );
    return new Map(
      rows.map(({ id, dead, delivered_at }) => [
        id,
        { dead: Number(dead), delivered_at: delivered_at === null ? null : Number(delivered_at) },
      ]),
    );
  }

  /** The number of an event that a webhook got or is to get. */
  async numberOf(webhookId: string, eventId: string): Promise<number | undefined> {
    const [delivery] = await this.page({ webhookId, eventId, status: undefined, from: undefined, limit: 1 });
    return delivery?.event_number;
  }
}

export class DeliveryWriter extends DeliveryReader {
  static readonly writes = true;

  /**
   * Sends events again, in their order: one, or the oldest dead ones up to `REDELIVERIES_MAX`. Returns their number. The
   * webhook must be locked.
   */
  async redeliver(webhookId: string, eventNumber: number | undefined, at: Instant): Promise<number> {
    const { db } = this.sql;
    let chosen = db
      .selectFrom("webhook_deliveries")
      .select("event_number")
      .where("workspace_id", "=", this.workspaceId)
      .where("webhook_id", "=", webhookId);
    chosen =
      eventNumber === undefined
        ? chosen.where("status", "=", "dead").orderBy("event_number").limit(REDELIVERIES_MAX)
        : chosen.where("event_number", "=", eventNumber);
    const former = await chosen.select(["status", "object_id", "next_attempt_at"]).execute();
    if (former.length === 0) return 0;
    await db
      .updateTable("webhook_deliveries")
      .set({ status: "pending", attempts: 0, deadline: at + RETRY_WINDOW, completed_at: null })
      .where("webhook_id", "=", webhookId)
      .where(
        "event_number",
        "in",
        former.map(({ event_number }) => event_number),
      )
      .execute();
    const added = former.filter(({ status }) => status !== "pending").length;
    await db
      .updateTable("webhooks")
      .set(({ eb }) => ({ pending: eb("pending", "+", added) }))
      .where("id", "=", webhookId)
      .execute();
    await promote(
      this.sql,
      former.map(({ object_id }) => ({ webhookId, objectId: object_id })),
      at,
    );
    // One that waits for its next attempt need not wait longer.
    await this.attemptNow(webhookId, at, eventNumber);
    return former.length;
  }

  /** Makes a delivery that waits for its next attempt due, or the first ones up to `REDELIVERIES_MAX` of a webhook. */
  async attemptNow(webhookId: string, at: Instant, eventNumber: number | undefined): Promise<void> {
    const { db } = this.sql;
    let waiting = db
      .selectFrom("webhook_deliveries")
      .select("event_number")
      .where("webhook_id", "=", webhookId)
      .where("workspace_id", "=", this.workspaceId)
      .where("next_attempt_at", ">", at);
    if (eventNumber !== undefined) waiting = waiting.where("event_number", "=", eventNumber);
    await db
      .updateTable("webhook_deliveries")
      .set({ next_attempt_at: at })
      .where("webhook_id", "=", webhookId)
      .where("event_number", "in", waiting.orderBy("next_attempt_at").limit(REDELIVERIES_MAX))
      .execute();
  }
}

/**
 * Locks webhooks until the transaction ends. Every transaction that changes deliveries locks their webhooks first, so that
 * two of them cannot wait for each other.
 */
export async function lockWebhooks(sql: Sql, webhookIds: readonly string[]): Promise<void> {
  if (webhookIds.length === 0) return;
  const webhooks = sql.db
    .selectFrom("webhooks")
    .select("id")
    .where("id", "in", [...new Set(webhookIds)])
    .orderBy("id");
  await sql.dialect.locks.lockRows(webhooks, "no key update");
}

/** Objects of whose events a webhook may have none under way. */
export interface ObjectOfWebhook {
  webhookId: string;
  objectId: string;
}

/** Makes the first waiting delivery of each object due, unless one of the object is due or under way already. */
export async function promote(sql: Sql, objects: readonly ObjectOfWebhook[], at: number): Promise<void> {
  if (objects.length === 0) return;
  const pairs = new Map(
    objects.map(({ webhookId, objectId }) => [`${webhookId} ${objectId}`, { webhookId, objectId }]),
  );
  const rows = [...pairs.values()].map(({ webhookId, objectId }) => ({ webhook_id: webhookId, object_id: objectId }));
  const input = sql.dialect.values.rows({ webhook_id: "text", object_id: "text" }, rows);
  await raw`
    update webhook_deliveries set next_attempt_at = ${at}
    where (webhook_id, event_number) in (
      select input.webhook_id, (
        select event_number from webhook_deliveries p
        where p.webhook_id = input.webhook_id and p.object_id = input.object_id and p.status = 'pending'
        order by event_number limit 1
      ) from ${input}
      where not exists (
        select 1 from webhook_deliveries n
        where n.webhook_id = input.webhook_id and n.object_id = input.object_id and n.next_attempt_at is not null
      )
    )`.execute(sql.db);
}
