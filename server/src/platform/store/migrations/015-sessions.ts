import { type Kysely, sql } from "kysely";

/** Sessions of the dashboard, and links that sign in once. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table sessions (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       root_key_id ${text} not null references root_keys (id),
       hash ${text} not null,
       address ${text} not null,
       user_agent ${text} not null,
       created_at ${integer} not null,
       last_used_at ${integer} not null,
       expires_at ${integer} not null
     )${postgres ? "" : " strict"}`,
  );
  await run("create unique index sessions_hash on sessions (hash)");
  await run("create index sessions_created on sessions (workspace_id, created_at, id)");
  await run("create index sessions_root_key on sessions (root_key_id, last_used_at)");
  await run("create index sessions_last_used on sessions (last_used_at)");
  await run(
    `create table sign_in_links (
       hash ${text} not null primary key,
       root_key_id ${text} not null references root_keys (id),
       expires_at ${integer} not null
     )${postgres ? "" : " strict, without rowid"}`,
  );
  await run("create index sign_in_links_expires on sign_in_links (expires_at)");
}
