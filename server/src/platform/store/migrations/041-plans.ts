import { type Kysely, sql } from "kysely";

/** Plans, and which pools of keys and identities have one. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const strict = postgres ? "" : " strict";
  const withoutRowid = postgres ? "" : " strict, without rowid";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table plans (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       name ${text} not null,
       name_folded ${text} not null,
       ratelimits ${text} not null,
       meta ${text},
       version ${integer} not null,
       created_at ${integer} not null,
       updated_at ${integer}
     )${strict}`,
  );
  await run("create unique index plans_name on plans (workspace_id, name)");
  await run("create index plans_created on plans (workspace_id, created_at, id)");
  for (const [things, thing] of [
    ["permissions", "permission"],
    ["roles", "role"],
  ]) {
    await run(
      `create table plans_${things} (
         workspace_id ${text} not null references workspaces (id),
         plan_id ${text} not null references plans (id) on delete cascade,
         ${thing}_id ${text} not null references ${things} (id) on delete cascade,
         primary key (plan_id, ${thing}_id)
       )${withoutRowid}`,
    );
    await run(`create index plans_${things}_of on plans_${things} (${thing}_id)`);
  }
  await run(
    `create table plan_assignments (
       owner_id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       owner ${text} not null check (owner in ('key', 'identity')),
       plan_id ${text} not null
     )${withoutRowid}`,
  );
  await run("create index plan_assignments_plan on plan_assignments (plan_id, owner, owner_id)");
}
