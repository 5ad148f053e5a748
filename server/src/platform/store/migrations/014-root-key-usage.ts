import { type Kysely, sql } from "kysely";

/** When root keys were last used, and what finds the balances of a workspace. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table root_key_usage (
       root_key_id ${text} not null primary key references root_keys (id) on delete cascade,
       last_used_at ${postgres ? "bigint" : "integer"} not null
     )${postgres ? "" : " strict, without rowid"}`,
  );
  // Spends change neither column, so PostgreSQL does not update the index with them.
  await run("create index balances_workspace on balances (workspace_id, pool_id)");
}
