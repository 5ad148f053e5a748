import { type Kysely, sql } from "kysely";

/** What happens to leaked keys of an API, and when a key was reported. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(`alter table apis add column leak_action ${postgres ? 'text collate "C"' : "text"}`);
  await run(`alter table keys add column leaked_at ${postgres ? "bigint" : "integer"}`);
}
