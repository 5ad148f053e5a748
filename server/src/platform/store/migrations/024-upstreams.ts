import { type Kysely, sql } from "kysely";

/** The upstream verifiers of APIs, and what finds those of a workspace. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(`alter table apis add column upstream ${dialect === "postgres" ? 'text collate "C"' : "text"}`);
  await run("create index apis_upstream on apis (workspace_id, id) where upstream is not null");
}
