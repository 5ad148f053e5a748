import { type Kysely, sql } from "kysely";

/** Whether a key is deleted some time after it expired: it was replaced, or its owner made it. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const run = (statement: string) => sql.raw(statement).execute(db);
  const integer = dialect === "postgres" ? "bigint" : "integer";
  await run(`alter table keys add column deleted_once_expired ${integer} not null default 0`);
  if (dialect === "postgres") return;
  await run(
    "create index keys_ended on keys (expires_at) where expires_at is not null and deleted_once_expired = 1 and deleted_at is null",
  );
}
