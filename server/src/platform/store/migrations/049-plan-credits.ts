import { type Kysely, sql } from "kysely";

/** Credits and limits of concurrency of plans. The index of balances is built beside the service on PostgreSQL. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const withoutRowid = postgres ? "" : " strict, without rowid";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(`alter table balances add column plan_id ${text}`);
  await run(`alter table balances add column plan_version ${integer}`);
  if (!postgres) await run("create index balances_plan on balances (plan_id, plan_version) where plan_id is not null");
  await run(`alter table plans add column concurrency ${text}`);
  await run(`alter table plans add column credits ${text}`);
  await run(`alter table plans add column credits_version ${integer}`);
  await run(
    `create table plan_credits (
       plan_id ${text} not null references plans (id) on delete cascade,
       workspace_id ${text} not null references workspaces (id),
       version ${integer} not null,
       since ${integer} not null,
       credits ${text},
       primary key (plan_id, version)
     )${withoutRowid}`,
  );
  await run(
    `create table plan_grants (
       pool_id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       kept ${integer},
       granted_until ${integer},
       reset_until ${integer}
     )${withoutRowid}`,
  );
}
