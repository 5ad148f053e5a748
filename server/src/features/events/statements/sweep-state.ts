import type { Sql } from "../../../platform/store/store.ts";

/** The state of a sweep, and its text, by which a change of it is noticed. Undefined before the first pass. */
export async function readSweep<State>({ db }: Sql, name: string): Promise<{ text: string; sweep: State | undefined }> {
  const row = await db.selectFrom("event_sweeps").select("state").where("name", "=", name).executeTakeFirst();
  return { text: row?.state ?? "", sweep: row && (JSON.parse(row.state) as State) };
}

/** Stores the state of a sweep, in the transaction of the events that it found. The caller holds the lease. */
export async function writeSweep({ db }: Sql, name: string, sweep: object): Promise<void> {
  const state = JSON.stringify(sweep);
  await db
    .insertInto("event_sweeps")
    .values({ name, state })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ state }))
    .execute();
}
