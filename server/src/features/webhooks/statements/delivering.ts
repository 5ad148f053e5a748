import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../../engine/src/random/random.ts";
import { recordChange } from "../../../platform/store/audit/audit.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import { holdLease, type Lease } from "../../../platform/store/lease.ts";
import { addBytesAnyway, ROW_BYTES } from "../../../platform/store/quotas/workspace-bytes.ts";
import type { WebhookDeliveryRow, WebhookRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { RETRY_WINDOW } from "../retries.ts";
import { Backlog, roomOf } from "./backlog.ts";
import { lockWebhooks, promote } from "./deliveries.ts";

/** An endpoint is disabled when a delivery is given up and none has succeeded for this long. */
export const FAILING_MAX: Milliseconds = 2 * 86_400_000;

const EVENTS_PER_STEP = 200;

/** Webhooks that catch up in one step. */
const WEBHOOKS_PER_STEP = 20;

/** A webhook with deliveries that are due. */
export interface DueWebhook {
  webhookId: string;
  workspaceId: string;
  url: string;
  /** When the first one was due, in epoch milliseconds. */
  dueAt: number;
  /** Whether its last attempt failed. */
  isFailing: boolean;
}

/** What is to be done. */
export interface DeliveryWork {
  /** The time of the first event that is in the outbox; null if it is empty. */
  outboxSince: number | null;
  /** Webhooks with events that wait without deliveries, and with room for some. */
  behind: string[];
  due: DueWebhook[];
}

/**
 * Finds what is to be done. The cost depends on the number of webhooks with waiting deliveries, not on the number of
 * deliveries: the query jumps from one webhook to the next in an index.
 */
export async function findDeliveryWork({ db }: Sql, now: Instant): Promise<DeliveryWork> {
  const { rows: outbox } = await raw<{ since: number | null }>`
    select coalesce(e.created_at, 0) as since from event_outbox o left join events e on e.number = o.number
    order by o.number limit 1`.execute(db);
  const { rows } = await raw<{
    id: string;
    workspace_id: string;
    url: string;
    due_at: number;
    failing_since: number | null;
  }>`
    with recursive waiting (id) as (
      select min(webhook_id) from webhook_deliveries where next_attempt_at is not null
      union all
      select (
        select min(webhook_id) from webhook_deliveries where next_attempt_at is not null and webhook_id > waiting.id
      ) from waiting where waiting.id is not null
    ), first (id, due_at) as (
      select id, (
        select min(next_attempt_at) from webhook_deliveries
        where webhook_id = waiting.id and next_attempt_at is not null
      ) from waiting where id is not null
    )
    select w.id, w.workspace_id, w.url, first.due_at, w.failing_since from first join webhooks w on w.id = first.id
    where w.enabled = 1 and w.deleted_at is null and first.due_at <= ${now}
    order by first.due_at, w.id`.execute(db);
  const backlogs = await db
    .selectFrom("webhooks")
    .select(["id", "failing_since", "delivered_at", "handed_at", "pending"])
    .where("behind", "is not", null)
    .where("enabled", "=", 1)
    .where("deleted_at", "is", null)
    .execute();
  return {
    behind: backlogs.filter((webhook) => roomOf(webhook, now) > 0).map(({ id }) => id),
    outboxSince: outbox[0] === undefined ? null : Number(outbox[0].since),
    due: rows.map(({ id, workspace_id, url, due_at, failing_since }) => ({
      webhookId: id,
      workspaceId: workspace_id,
      url,
      dueAt: Number(due_at),
      isFailing: failing_since !== null,
    })),
  };
}

/** A delivery that is due, with its event. */
export interface DueDelivery {
  event_number: number;
  object_id: string;
  attempts: number;
  deadline: number;
  event_id: string;
  type: string;
  version: number;
  created_at: number;
  /** JSON. */
  data: string;
}

/** The deliveries of a webhook that are due, in the order in which they became due; at most one for each object. */
export function findDueDeliveries(
  { db }: Sql,
  { webhookId, limit, now }: { webhookId: string; limit: number; now: Instant },
): Promise<DueDelivery[]> {
  return db
    .selectFrom("webhook_deliveries as d")
    .innerJoin("events as e", "e.number", "d.event_number")
    .select(["d.event_number", "d.object_id", "d.attempts", "d.deadline"])
    .select(["e.id as event_id", "e.type", "e.version", "e.created_at", "e.data"])
    .where("d.webhook_id", "=", webhookId)
    .where("d.next_attempt_at", "<=", now)
    .orderBy("d.next_attempt_at")
    .orderBy("d.event_number")
    .limit(limit)
    .execute();
}

/** A webhook that can receive. */
export function findReceiver({ db }: Sql, webhookId: string): Promise<WebhookRow | undefined> {
  return db
    .selectFrom("webhooks")
    .selectAll()
    .where("id", "=", webhookId)
    .where("enabled", "=", 1)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
}

/**
 * Hands events of the outbox to the webhooks that want them, in one transaction: after a crash an event is either in the
 * outbox or has its deliveries. Returns whether there may be more.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function handOut(sql: Sql, { lease, now }: { lease: Lease; now: Instant }): Promise<boolean> {
  await holdLease(sql, lease, now);
  const { db } = sql;
  const events = await db
    .selectFrom("event_outbox as o")
    // Events beyond their retention are gone.
    .leftJoin("events as e", "e.number", "o.number")
    .select(["o.number", "e.workspace_id", "e.type", "e.object_id", "e.data"])
    .orderBy("o.number")
    .limit(EVENTS_PER_STEP)
    .execute();
  if (events.length === 0) return false;
  const workspaceIds = [...new Set(events.flatMap(({ workspace_id }) => workspace_id ?? []))];
  const first = events[0]!.number;
  const receiving = db
    .selectFrom("webhooks")
    .selectAll()
    .where(sql.dialect.values.isOneOf("workspace_id", workspaceIds))
    .where((eb) => eb.or([eb("enabled", "=", 1), eb("behind", "is not", null)]))
    .where("deleted_at", "is", null)
    .orderBy("id");
  const webhooks = await sql.dialect.locks.locking(receiving, "no key update").execute();
  const handed: Handed[] = [];
  for (const webhook of webhooks) {
    const backlog = new Backlog(webhook.behind);
    if (webhook.enabled === 0) {
      backlog.closeBefore(first);
      await putBacklog(sql, webhook, backlog, now);
      continue;
    }
    const wants = filterOf(webhook);
    const wanted = events.filter(
      (event) =>
        event.workspace_id === webhook.workspace_id &&
        event.number > webhook.after_number &&
        wants(event as OutboxEvent),
    ) as HandedEvent[];
    if (wanted.length === 0) continue;
    // While events wait, later ones wait behind them. One that was committed late has a number before them.
    const from = backlog.first?.[0] ?? wanted[roomOf(webhook, now)]?.number ?? Number.POSITIVE_INFINITY;
    const isHere = ({ number, type }: HandedEvent) => number < from || type === "webhook.test";
    const waiting = wanted.find((event) => !isHere(event) && !backlog.has(event.number));
    if (waiting) backlog.open(waiting.number);
    await putBacklog(sql, webhook, backlog, now);
    handed.push({ webhook, events: wanted.filter(isHere) });
  }
  await insertDeliveries(sql, handed, now);
  await db
    .deleteFrom("event_outbox")
    .where(
      "number",
      "in",
      events.map(({ number }) => number),
    )
    .execute();
  return events.length === EVENTS_PER_STEP;
}

/**
 * Makes deliveries of events that wait, as far as webhooks have room. Returns whether it made any.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function catchUp(
  sql: Sql,
  { lease, webhookIds, now }: { lease: Lease; webhookIds: readonly string[]; now: Instant },
): Promise<boolean> {
  await holdLease(sql, lease, now);
  const ids = [...webhookIds].sort().slice(0, WEBHOOKS_PER_STEP);
  await lockWebhooks(sql, ids);
  const handed: Handed[] = [];
  for (const id of ids) {
    const webhook = await findReceiver(sql, id);
    if (webhook === undefined) continue;
    const backlog = new Backlog(webhook.behind);
    const room = roomOf(webhook, now);
    if (backlog.first === undefined || room === 0) continue;
    const [from, to] = backlog.first;
    const found = await waitingEvents(sql, webhook.workspace_id, from, to);
    const wants = filterOf(webhook);
    const wanted = found.filter((event) => event.number > webhook.after_number && wants(event));
    const here = wanted.slice(0, room);
    const next = wanted[here.length]?.number ?? (found.length < EVENTS_PER_STEP ? null : found.at(-1)!.number + 1);
    backlog.advance(next);
    await putBacklog(sql, webhook, backlog, now);
    handed.push({ webhook, events: here });
  }
  await insertDeliveries(sql, handed, now);
  return handed.length > 0;
}

/** Events of a workspace that left the outbox, the first ones of a range. */
async function waitingEvents(
  { db }: Sql,
  workspaceId: string,
  from: number,
  to: number | null,
): Promise<(OutboxEvent & HandedEvent)[]> {
  let query = db
    .selectFrom("events")
    .select(["number", "type", "object_id", "data"])
    .where("workspace_id", "=", workspaceId)
    .where("number", ">=", from)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom("event_outbox").select("number").whereRef("event_outbox.number", "=", "events.number"))),
    );
  if (to !== null) query = query.where("number", "<=", to);
  const rows = await query.orderBy("number").limit(EVENTS_PER_STEP).execute();
  return rows.map((row) => ({ ...row, number: Number(row.number) }));
}

interface HandedEvent {
  number: number;
  type: string;
  object_id: string;
}

/** Events of which a webhook gets deliveries. */
interface Handed {
  webhook: WebhookRow;
  events: readonly HandedEvent[];
}

async function putBacklog({ db }: Sql, webhook: WebhookRow, { column }: Backlog, now: Instant): Promise<void> {
  if (column === webhook.behind) return;
  await db
    .updateTable("webhooks")
    .set({ behind: column, behind_since: column === null ? null : (webhook.behind_since ?? now) })
    .where("id", "=", webhook.id)
    .execute();
}

interface OutboxEvent {
  type: string;
  object_id: string;
  data: string;
}

/** Whether a webhook wants an event. */
function filterOf({ id, event_types, api_ids }: WebhookRow): (event: OutboxEvent) => boolean {
  const types = event_types === null ? undefined : new Set(JSON.parse(event_types) as string[]);
  const apiIds = api_ids === null ? undefined : new Set(JSON.parse(api_ids) as string[]);
  return ({ type, object_id, data }) => {
    // Only the tested webhook gets it, whatever its filters.
    if (type === "webhook.test") return object_id === id;
    if (types?.has(type) === false) return false;
    return apiIds === undefined || apiIds.has((JSON.parse(data) as { apiId?: string }).apiId ?? "");
  };
}

const deliveryTypes = {
  webhook_id: "text",
  event_number: "bigint",
  workspace_id: "text",
  object_id: "text",
  status: "text",
  attempts: "bigint",
  deadline: "bigint",
  created_at: "bigint",
} as const;

/** Inserts deliveries, and makes the first one of each object due. */
async function insertDeliveries(sql: Sql, handed: readonly Handed[], now: Instant): Promise<void> {
  const rows = handed.flatMap(({ webhook, events }) =>
    events.map(({ number, object_id }) => ({
      webhook_id: webhook.id,
      event_number: number,
      workspace_id: webhook.workspace_id,
      object_id,
      status: "pending",
      attempts: 0,
      deadline: now + RETRY_WINDOW,
      created_at: now,
    })),
  );
  if (rows.length === 0) return;
  const inserted = await insertRows(sql, "webhook_deliveries", deliveryTypes, rows)
    // A node of an earlier release hands out events that wait.
    .onConflict((conflict) => conflict.columns(["webhook_id", "event_number"]).doNothing())
    .returning("webhook_id")
    .execute();
  for (const [webhookId, those] of Map.groupBy(inserted, ({ webhook_id }) => webhook_id)) {
    await sql.db
      .updateTable("webhooks")
      .set(({ eb }) => ({ pending: eb("pending", "+", those.length), handed_at: now }))
      .where("id", "=", webhookId)
      .execute();
  }
  await promote(
    sql,
    rows.map(({ webhook_id, object_id }) => ({ webhookId: webhook_id, objectId: object_id })),
    now,
  );
  // Sorted, so that it cannot wait for a change that waits for it.
  const byWorkspace = [...Map.groupBy(rows, ({ workspace_id }) => workspace_id)].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [workspaceId, those] of byWorkspace) {
    await addBytesAnyway(sql, workspaceId, { audit: 0, events: those.length * ROW_BYTES.delivery }, now);
  }
}

/** What came of one attempt. */
export interface Attempt {
  webhookId: string;
  /** The endpoint to which it went. */
  url: string;
  eventNumber: number;
  at: number;
  /** The status of the answer; null if there was none. */
  answerStatus: number | null;
  /** What was wrong, in one line; null: it was delivered. */
  error: string | null;
  duration: Milliseconds;
  /** When to try again. Null: it was delivered, or is dead. */
  nextAttemptAt: number | null;
  /** Whether the receiver wants no more deliveries: it answered 410. */
  isGone: boolean;
}

/** A webhook that failed for too long. */
export interface DisabledWebhook {
  webhookId: string;
  workspaceId: string;
  reason: "failing" | "gone";
}

const attemptTypes = {
  webhook_id: "text",
  event_number: "bigint",
  attempted_at: "bigint",
  answer_status: "bigint",
  error: "text",
  duration: "bigint",
  next_attempt_at: "bigint",
} as const;

/**
 * Records attempts in one transaction: deliveries end or wait for their next attempt, and the next delivery of the same
 * object becomes due. Returns the webhooks that were disabled.
 *
 * @throws {LeaseLost} when another node does this work.
 */
export async function recordAttempts(
  sql: Sql,
  { lease, attempts: made, now }: { lease: Lease; attempts: readonly Attempt[]; now: Instant },
  random: Random,
): Promise<DisabledWebhook[]> {
  await holdLease(sql, lease, now);
  await lockWebhooks(
    sql,
    made.map(({ webhookId }) => webhookId),
  );
  const attempts = await withoutFormerEndpoints(sql, made, now);
  const rows = attempts.map((attempt) => ({
    webhook_id: attempt.webhookId,
    event_number: attempt.eventNumber,
    attempted_at: attempt.at,
    answer_status: attempt.answerStatus,
    error: attempt.error,
    duration: Math.round(attempt.duration),
    next_attempt_at: attempt.nextAttemptAt,
  }));
  const input = sql.dialect.values.rows(attemptTypes, rows);
  const { rows: updated } = await raw<Pick<WebhookDeliveryRow, "webhook_id" | "object_id" | "status">>`
    update webhook_deliveries set
      attempts = webhook_deliveries.attempts + 1, attempted_at = input.attempted_at,
      answer_status = input.answer_status, error = input.error, duration = input.duration,
      next_attempt_at = input.next_attempt_at,
      status = case when input.error is null then 'delivered' when input.next_attempt_at is null then 'dead' else 'pending' end,
      completed_at = case when input.next_attempt_at is null then input.attempted_at end
    from ${input}
    where webhook_deliveries.webhook_id = input.webhook_id
      and webhook_deliveries.event_number = input.event_number and webhook_deliveries.status = 'pending'
    returning webhook_deliveries.webhook_id, webhook_deliveries.object_id, webhook_deliveries.status`.execute(sql.db);
  const ended = updated.filter(({ status }) => status !== "pending");
  await promote(
    sql,
    ended.map(({ webhook_id, object_id }) => ({ webhookId: webhook_id, objectId: object_id })),
    now,
  );
  const disabled: DisabledWebhook[] = [];
  const byWebhook = Map.groupBy(attempts, ({ webhookId }) => webhookId);
  for (const webhookId of [...byWebhook.keys()].sort()) {
    const those = byWebhook.get(webhookId)!;
    const count = ended.filter(({ webhook_id }) => webhook_id === webhookId).length;
    const one = await recordState(sql, webhookId, those, count, now, random);
    if (one) disabled.push(one);
  }
  return disabled;
}

/** An endpoint that wants no more says nothing about the one that has replaced it meanwhile, which gets the event at once. */
async function withoutFormerEndpoints(
  { db, dialect }: Sql,
  attempts: readonly Attempt[],
  now: Instant,
): Promise<readonly Attempt[]> {
  const ids = attempts.flatMap(({ webhookId, isGone }) => (isGone ? [webhookId] : []));
  if (ids.length === 0) return attempts;
  const webhooks = db.selectFrom("webhooks").select(["id", "url"]).where(dialect.values.isOneOf("id", ids));
  const urls = new Map((await webhooks.execute()).map(({ id, url }) => [id, url]));
  return attempts.map((attempt) =>
    attempt.isGone && urls.get(attempt.webhookId) !== attempt.url
      ? { ...attempt, isGone: false, nextAttemptAt: now }
      : attempt,
  );
}

/** Records in a webhook whether it fails, and disables it after too long. */
async function recordState(
  sql: Sql,
  webhookId: string,
  attempts: readonly Attempt[],
  ended: number,
  now: Instant,
  random: Random,
): Promise<DisabledWebhook | undefined> {
  const lastSuccess = attempts.findLastIndex(({ error }) => error === null);
  const firstFailure = attempts[lastSuccess + 1];
  const webhook = await sql.db
    .updateTable("webhooks")
    .set(({ eb, fn }) => ({
      pending: eb("pending", "-", ended),
      failing_since:
        firstFailure === undefined
          ? null
          : lastSuccess === -1
            ? fn.coalesce("failing_since", eb.val(firstFailure.at))
            : firstFailure.at,
      ...(lastSuccess !== -1 && { delivered_at: attempts[lastSuccess]!.at }),
    }))
    .where("id", "=", webhookId)
    .returningAll()
    .executeTakeFirst();
  if (!webhook || webhook.enabled === 0 || webhook.deleted_at !== null) return undefined;
  const isGivenUp = attempts.some(({ error, nextAttemptAt }) => error !== null && nextAttemptAt === null);
  const isGone = attempts.some((attempt) => attempt.isGone);
  const isFailing = isGivenUp && webhook.failing_since !== null && Number(webhook.failing_since) <= now - FAILING_MAX;
  if (!isGone && !isFailing) return undefined;
  const reason = isGone ? "gone" : "failing";
  await sql.db
    .updateTable("webhooks")
    .set({ enabled: 0, disabled_at: now, disabled_reason: reason })
    .where("id", "=", webhookId)
    .execute();
  const { url: endpoint, name, failing_since: failingSince } = webhook;
  await recordChange(
    sql,
    {
      workspaceId: webhook.workspace_id,
      occurredAt: now,
      actor: "system",
      action: "webhooks.updateWebhook",
      targets: [webhookId],
      meta: { enabled: false, reason, ...(failingSince !== null && { failingSince: Number(failingSince) }) },
      events: [
        {
          type: "webhook.disabled",
          objectId: webhookId,
          data: { webhookId, endpoint, name: name ?? undefined, reason },
        },
      ],
    },
    random,
  );
  return { webhookId, workspaceId: webhook.workspace_id, reason };
}
