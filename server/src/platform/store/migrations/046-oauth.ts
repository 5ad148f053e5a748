import { type Kysely, sql } from "kysely";

/** The keys that sign access tokens, and the resources of an API for which its keys get them. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(`create table signing_keys (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       algorithm ${text} not null,
       public_key ${text} not null,
       sealed ${text} not null,
       active_from ${integer} not null,
       created_at ${integer} not null
     )${postgres ? "" : " strict"}`);
  await run("create index signing_keys_workspace on signing_keys (workspace_id, active_from)");
  await run(`alter table apis add column resources ${text}`);
}
