import { type Kysely, sql } from "kysely";

/** Rate limit namespaces and their overrides. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const table = (name: string, columns: string) =>
    sql.raw(`create table ${name} (${columns})${postgres ? "" : " strict"}`).execute(db);
  const index = (text: string) => sql.raw(`create ${text}`).execute(db);

  await table(
    "ratelimit_namespaces",
    `id ${text} not null primary key,
     workspace_id ${text} not null references workspaces (id),
     name ${text} not null,
     name_folded ${text} not null,
     created_at ${integer} not null,
     deleted_at ${integer}`,
  );
  await index(
    "unique index ratelimit_namespaces_name on ratelimit_namespaces (workspace_id, name) where deleted_at is null",
  );
  await index("index ratelimit_namespaces_workspace on ratelimit_namespaces (workspace_id, id)");

  await table(
    "ratelimit_overrides",
    `id ${text} not null primary key,
     workspace_id ${text} not null,
     namespace_id ${text} not null references ratelimit_namespaces (id),
     identifier ${text} not null,
     "limit" ${integer} not null,
     duration ${integer} not null,
     created_at ${integer} not null,
     updated_at ${integer}`,
  );
  await index("unique index ratelimit_overrides_identifier on ratelimit_overrides (namespace_id, identifier)");
  await index("index ratelimit_overrides_page on ratelimit_overrides (namespace_id, id)");
}
