import { type Kysely, sql } from "kysely";

/** What was charged or created under an Idempotency-Key. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  await sql
    .raw(
      `create table idempotency_records (
         sequence ${postgres ? "bigint generated always as identity" : "integer"} not null primary key${postgres ? "" : " autoincrement"},
         scope ${text} not null,
         workspace_id ${text} not null,
         fingerprint ${text} not null,
         outcome ${text} not null,
         key_id ${text},
         created_at ${integer} not null
       )${postgres ? "" : " strict"}`,
    )
    .execute(db);
  await sql.raw("create unique index idempotency_records_scope on idempotency_records (scope)").execute(db);
  await sql.raw("create index idempotency_records_time on idempotency_records (created_at)").execute(db);
  await sql
    .raw("create index idempotency_records_key on idempotency_records (key_id) where key_id is not null")
    .execute(db);
}
