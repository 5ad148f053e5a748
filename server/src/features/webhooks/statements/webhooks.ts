import type { Updateable } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { insertEvents } from "../../../platform/store/events/events.ts";
import type { EventData } from "../../../platform/store/events/types.ts";
import { eraseOutcomesOfKey } from "../../../platform/store/idempotency.ts";
import { onePage, type PageOptions } from "../../../platform/store/page.ts";
import type { WebhookRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** The most webhooks of a workspace. */
export const WEBHOOKS_PER_WORKSPACE_MAX = 50;

/** The webhooks of one workspace. */
export class WebhookReader extends WorkspaceRows {
  find(webhookId: string): Promise<WebhookRow | undefined> {
    return this.#select().where("id", "=", webhookId).executeTakeFirst();
  }

  page(place: Pick<PageOptions, "from" | "limit">): Promise<WebhookRow[]> {
    return onePage(this.#select(), place).execute();
  }

  #select() {
    return this.sql.db
      .selectFrom("webhooks")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null);
  }
}

export class WebhookWriter extends WebhookReader {
  static readonly writes = true;

  /** Inserts a webhook; false if the workspace has as many as it may have. */
  async insert(
    webhook: Pick<WebhookRow, "id" | "name" | "url" | "event_types" | "api_ids" | "secret" | "created_at">,
  ): Promise<boolean> {
    // Two calls at a time must not exceed the maximum.
    const workspace = this.sql.db.selectFrom("workspaces").select("id").where("id", "=", this.workspaceId);
    await this.sql.dialect.locks.lockRows(workspace, "no key update");
    const { count } = await this.sql.db
      .selectFrom("webhooks")
      .select(({ fn }) => fn.countAll().as("count"))
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null)
      .executeTakeFirstOrThrow();
    if (Number(count) >= WEBHOOKS_PER_WORKSPACE_MAX) return false;
    const { last } = await this.sql.db
      .selectFrom("events")
      .select(({ fn }) => fn.max("number").as("last"))
      .executeTakeFirstOrThrow();
    await this.sql.db
      .insertInto("webhooks")
      .values({
        ...webhook,
        workspace_id: this.workspaceId,
        enabled: 1,
        pending: 0,
        after_number: last ?? 0,
        behind: null,
        behind_since: null,
        handed_at: null,
        delivered_at: null,
      })
      .execute();
    return true;
  }

  /** Finds a webhook and locks it until the transaction ends. */
  async findForUpdate(webhookId: string): Promise<WebhookRow | undefined> {
    await this.lockRow("webhooks", webhookId);
    return this.find(webhookId);
  }

  async update(webhookId: string, values: Updateable<WebhookRow>, at: Instant): Promise<void> {
    await this.#set(webhookId, { ...values, updated_at: at });
  }

  /** Also erases its secrets, and stored outcomes that may contain them. Its deliveries stay until their retention ends. */
  async markDeleted(webhookId: string, at: Instant): Promise<void> {
    await this.#set(webhookId, { secret: "", previous_secret: null, previous_until: null, deleted_at: at });
    await eraseOutcomesOfKey(this.sql, webhookId);
  }

  /** Replaces the secret. Stored outcomes no longer contain the former one. */
  async replaceSecret(
    webhookId: string,
    secrets: Pick<WebhookRow, "secret" | "previous_secret" | "previous_until">,
    at: Instant,
  ): Promise<void> {
    await eraseOutcomesOfKey(this.sql, webhookId);
    await this.update(webhookId, secrets, at);
  }

  /** Records an event that only this webhook gets. */
  async recordTest(eventId: string, data: EventData<"webhook.test">, at: Instant): Promise<void> {
    const { workspaceId } = this;
    await insertEvents(this.sql, [
      { id: eventId, workspaceId, type: "webhook.test", objectId: data.webhookId, at, data },
    ]);
  }

  async #set(webhookId: string, values: Updateable<WebhookRow>): Promise<void> {
    await this.sql.db
      .updateTable("webhooks")
      .set(values)
      .where("id", "=", webhookId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}
