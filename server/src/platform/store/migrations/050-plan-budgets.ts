import { type Kysely, sql } from "kysely";

/** Budgets that plans give to identities. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(`alter table plans add column budget ${text}`);
  await run(
    `create table plan_budgets (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       identity_id ${text} not null,
       unit ${text},
       created_at ${integer} not null
     )${postgres ? "" : " strict, without rowid"}`,
  );
  await run("create index plan_budgets_identity on plan_budgets (identity_id)");
}
