import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import { newId, type Random } from "../../../../../engine/src/random/random.ts";
import { insertRows } from "../insert-rows.ts";
import type { Sql } from "../store.ts";
import { type EventData, type EventType, eventTypes, hasActor } from "./types.ts";

/** An event to record. */
export type NewEvent = {
  [Type in EventType]: {
    /** `evt_…` */
    readonly id: string;
    readonly workspaceId: string;
    readonly type: Type;
    /** The object that it is about. Events of one object are numbered in the order in which they happened. */
    readonly objectId: string;
    readonly at: Instant;
    /** Never a secret. */
    readonly data: EventData<Type>;
  };
}[EventType];

/** An event as the code that makes a change describes it. Types that name an actor get it from the audit entry. */
export type EventContent = {
  [Type in EventType]: {
    readonly type: Type;
    readonly objectId: string;
    readonly data: Omit<EventData<Type>, "actor">;
  };
}[EventType];

/** The events of changes that one actor made at one time. */
export function eventsOf(
  contents: readonly EventContent[],
  { workspaceId, at, actor }: { workspaceId: string; at: Instant; actor: string },
  random: Random,
): NewEvent[] {
  return contents.map(({ type, objectId, data }) => {
    const named = hasActor(type) ? { ...data, actor } : data;
    return { id: newId(random, "evt"), workspaceId, type, objectId, at, data: named } as NewEvent;
  });
}

const types = {
  id: "text",
  workspace_id: "text",
  type: "text",
  version: "bigint",
  object_id: "text",
  created_at: "bigint",
  data: "text",
} as const;

/**
 * Records events in the transaction of the change that they report, and puts them into the outbox. An event whose id exists
 * is ignored.
 *
 * Numbers of events of one object ascend in the order of commits if the row of the object is locked before: a number is
 * drawn here, and the lock is held until the commit.
 */
export async function insertEvents(sql: Sql, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ id, workspaceId, type, objectId, at, data }) => ({
    id,
    workspace_id: workspaceId,
    type,
    version: eventTypes[type].version,
    object_id: objectId,
    created_at: at,
    data: JSON.stringify(data),
  }));
  const insert = (db: Pick<Sql["db"], "insertInto">) =>
    insertRows({ db, dialect: sql.dialect }, "events", types, rows)
      .onConflict((conflict) => conflict.column("id").doNothing())
      .returning("number");
  if (sql.dialect.hasWritingCtes) {
    await sql.db
      .with("inserted", insert)
      .insertInto("event_outbox")
      .columns(["number"])
      .expression((query) => query.selectFrom("inserted").select("number"))
      .execute();
    return;
  }
  const inserted = await insert(sql.db).execute();
  if (inserted.length > 0) await sql.db.insertInto("event_outbox").values(inserted).execute();
}
