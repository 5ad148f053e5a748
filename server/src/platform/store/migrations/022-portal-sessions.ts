import { type Kysely, sql } from "kysely";

/** Sessions of the portal, in which the owners of keys manage their own. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table portal_sessions (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       root_key_id ${text} not null references root_keys (id),
       api_id ${text} not null references apis (id),
       identity_id ${text} not null references identities (id),
       hash ${text} not null,
       terms ${text} not null,
       page ${text} not null,
       created_at ${integer} not null,
       expires_at ${integer} not null
     )${postgres ? "" : " strict"}`,
  );
  await run("create unique index portal_sessions_hash on portal_sessions (hash)");
  await run("create index portal_sessions_created on portal_sessions (workspace_id, created_at, id)");
  await run("create index portal_sessions_api on portal_sessions (api_id, created_at, id)");
  await run("create index portal_sessions_identity on portal_sessions (identity_id, created_at, id)");
  await run("create index portal_sessions_root_key on portal_sessions (root_key_id)");
  await run("create index portal_sessions_expires on portal_sessions (expires_at)");
}
