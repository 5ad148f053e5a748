import { type Kysely, sql } from "kysely";

/** Keys that were made elsewhere: the migrations through which they come, and which of them need to be named. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);

  await run(
    `create table key_migrations (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       name ${text} not null,
       algorithm ${text} not null,
       pepper ${text},
       created_at ${integer} not null
     )${postgres ? "" : " strict"}`,
  );
  await run("create unique index key_migrations_name on key_migrations (workspace_id, name)");
  await run(`alter table keys add column migration_id ${text} references key_migrations (id)`);
}
