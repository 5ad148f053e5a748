import type { Sql } from "../../platform/store/store.ts";

/** What changed in a workspace after a place in its events; null: only the place of the newest one is asked for. */
export interface ChangesQuestion {
  readonly workspaceId: string;
  readonly after: number | null;
}

export interface RecordedChanges extends ChangesQuestion {
  /** The place of the newest event that was read; the one that was asked about if there are none. */
  readonly newest: number;
  /** The kinds of objects that changed, each with the place of its last event. */
  readonly kinds: readonly { readonly kind: string; readonly last: number }[];
  /** Whether there are more events than were read. */
  readonly isCut: boolean;
}

const EVENTS_MAX = 200;

/** Reads what changed in each workspace, in a few rows of an index. */
export async function changedKinds(sql: Sql, questions: readonly ChangesQuestion[]): Promise<RecordedChanges[]> {
  const horizon = await sql.dialect.readEventHorizon(sql);
  const answers: RecordedChanges[] = [];
  for (const { workspaceId, after } of questions) {
    let newestOf = sql.db
      .selectFrom("events")
      .select("number")
      .where("workspace_id", "=", workspaceId)
      .orderBy("number", "desc")
      .limit(1);
    if (horizon !== undefined) newestOf = newestOf.where("number", "<=", horizon);
    const newest = Number((await newestOf.executeTakeFirst())?.number ?? 0);
    if (after === null || newest <= after) {
      answers.push({ workspaceId, after, newest, kinds: [], isCut: false });
      continue;
    }
    const rows = await sql.db
      .selectFrom("events")
      .select(["number", "type"])
      .where("workspace_id", "=", workspaceId)
      .where("number", ">", after)
      .where("number", "<=", newest)
      .orderBy("number")
      .limit(EVENTS_MAX + 1)
      .execute();
    const last = new Map<string, number>();
    for (const { number, type } of rows) last.set(type.slice(0, type.indexOf(".")), Number(number));
    const kinds = [...last].map(([kind, last]) => ({ kind, last }));
    answers.push({ workspaceId, after, newest, kinds, isCut: rows.length > EVENTS_MAX });
  }
  return answers;
}
