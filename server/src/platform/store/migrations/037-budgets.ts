import { type Kysely, sql } from "kysely";

/**
 * Budgets: balances over many keys, which keep books. The indexes of `budget_id` are built beside the service on PostgreSQL,
 * where a build would block writes.
 */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table budgets (
       id ${text} not null primary key,
       workspace_id ${text} not null references workspaces (id),
       name ${text} not null,
       name_folded ${text} not null,
       parent_id ${text} references budgets (id),
       unit ${text},
       thresholds ${text},
       meta ${text},
       created_at ${integer} not null,
       updated_at ${integer}
     )${postgres ? "" : " strict"}`,
  );
  await run("create index budgets_created on budgets (workspace_id, created_at, id)");
  await run("create index budgets_parent on budgets (parent_id, created_at, id) where parent_id is not null");
  const addBudgetIds = async () => {
    for (const table of ["keys", "identities"]) {
      await run(`alter table ${table} add column budget_id ${text}`);
      if (!postgres) await run(`create index ${table}_budget on ${table} (budget_id) where budget_id is not null`);
    }
  };
  const columns = ["granted", "spent", "lapsed", "period", "spent_before", "watched"];
  const check = "check (remaining >= 0 or coalesce(watched, 0) = 1)";
  if (postgres) {
    // Before keys: batches of the ledger have locked balances when they read keys, and must not be chosen to end a deadlock.
    for (const column of columns) await run(`alter table balances add column ${column} ${integer}`);
    await run(
      `alter table balances drop constraint balances_remaining_check,
         add constraint balances_remaining_check ${check} not valid`,
    );
    await addBudgetIds();
    return;
  }
  await addBudgetIds();
  // SQLite cannot change a check, so the rows are copied: a million take about a second.
  const former = `pool_id, workspace_id, remaining, refill_interval, refill_amount, refill_day, refill_due_at, low_at,
    refill_month, refill_zone, refill_rollover, refill_mark`;
  await run("alter table balances rename to former_balances");
  await run(
    `create table balances (
       pool_id text not null primary key,
       workspace_id text not null,
       remaining integer not null ${check},
       refill_interval text,
       refill_amount integer,
       refill_day integer,
       refill_due_at integer,
       low_at integer,
       refill_month integer,
       refill_zone text,
       refill_rollover integer,
       refill_mark integer,
       ${columns.map((column) => `${column} integer`).join(",\n       ")}
     ) strict, without rowid`,
  );
  await run(`insert into balances (${former}) select ${former} from former_balances order by pool_id`);
  await run("drop table former_balances");
  await run("create index balances_due on balances (refill_due_at) where refill_due_at is not null");
  await run("create index balances_workspace on balances (workspace_id, pool_id)");
}
