import { type Kysely, sql } from "kysely";

/** Holds: credits that are taken before a call and settled when its cost is known. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(
    `create table holds (
       id ${text} not null primary key,
       workspace_id ${text} not null,
       key_id ${text} not null,
       api_id ${text} not null,
       cost ${integer} not null,
       balances ${text} not null,
       on_expiry ${text} not null,
       state ${text} not null,
       charged ${integer},
       uncovered ${integer},
       lacks ${text},
       limits ${text},
       settlement ${text},
       subject ${text},
       created_at ${integer} not null,
       expires_at ${integer} not null,
       closed_at ${integer}
     )${postgres ? " with (fillfactor = 60)" : " strict"}`,
  );
  // Without the state, which every hold changes: PostgreSQL then updates the row in its page and writes no index.
  await run("create index holds_due on holds (expires_at, id)");
  await run("create index holds_due_of_workspace on holds (workspace_id, expires_at, id)");
  await run("create index holds_created on holds (workspace_id, created_at, id)");
  await run("insert into leases (name, holder, token, expires_at) values ('holds', '', 0, 0)");
  const check = "check (coalesce(held, 0) >= 0)";
  await run(`alter table balances add column held ${integer}${postgres ? "" : ` ${check}`}`);
  await run(`alter table balances add column next_expiry_at ${integer}`);
  // Without a validation, which would read all rows: the column is new.
  if (postgres) await run(`alter table balances add constraint balances_held_check ${check} not valid`);
}
