import { type Kysely, sql } from "kysely";

/** The trees of descriptors of rate limit namespaces. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  await sql
    .raw(
      `create table ratelimit_descriptors (
         namespace_id ${text} not null primary key references ratelimit_namespaces (id),
         workspace_id ${text} not null references workspaces (id),
         descriptors ${text} not null,
         atomic ${integer} not null,
         metadata ${integer} not null,
         updated_at ${integer} not null
       )${postgres ? "" : " strict, without rowid"}`,
    )
    .execute(db);
}
