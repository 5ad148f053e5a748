import type { Selectable } from "kysely";
import type { EventType } from "../../../platform/store/events/types.ts";
import type { EventRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** Which events to read. */
export interface EventPageOptions {
  order: "asc" | "desc";
  types?: readonly EventType[] | undefined;
  objectId?: string | undefined;
  /** Only events at or after this time, in epoch milliseconds. */
  start?: number | undefined;
  /** Only events before this time, in epoch milliseconds. */
  end?: number | undefined;
  /** Only events with higher numbers. */
  after?: number | undefined;
  /** The id of the first event of the page. If it was deleted, the page begins with the oldest event. */
  from?: string | undefined;
  limit: number;
}

/** The events of one workspace. */
export class EventReader extends WorkspaceRows {
  /** The number of an event; undefined if there is no event with this id. */
  async numberOf(eventId: string): Promise<number | undefined> {
    const row = await this.sql.db
      .selectFrom("events")
      .select("number")
      .where("id", "=", eventId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
    return row?.number;
  }

  /**
   * Up to `limit` events in the order of their numbers. No event appears later with a number below one that was read, so a
   * reader that continues after the last event misses none.
   */
  async page({
    order,
    types,
    objectId,
    start,
    end,
    after,
    from,
    limit,
  }: EventPageOptions): Promise<Selectable<EventRow>[]> {
    const first = from === undefined ? undefined : await this.numberOf(from);
    // Before events are deleted, all older ones were.
    if (from !== undefined && first === undefined && order === "desc") return [];
    const horizon = await this.sql.dialect.readEventHorizon(this.sql);
    let query = this.sql.db.selectFrom("events").selectAll().where("workspace_id", "=", this.workspaceId);
    if (horizon !== undefined) query = query.where("number", "<=", horizon);
    if (types) query = query.where("type", "in", types);
    if (objectId !== undefined) query = query.where("object_id", "=", objectId);
    if (start !== undefined) query = query.where("created_at", ">=", start);
    if (end !== undefined) query = query.where("created_at", "<", end);
    if (after !== undefined) query = query.where("number", ">", after);
    if (first !== undefined) query = query.where("number", order === "asc" ? ">=" : "<=", first);
    return query.orderBy("number", order).limit(limit).execute();
  }
}
