import { type Kysely, sql } from "kysely";

/** Events of changes, what finds events that depend on time, and the thresholds of balances. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const strict = postgres ? "" : " strict";
  const run = (statement: string) => sql.raw(statement).execute(db);

  await run(
    `create table events (
       number ${postgres ? "bigint generated always as identity primary key" : "integer not null primary key autoincrement"},
       id ${text} not null,
       workspace_id ${text} not null,
       type ${text} not null,
       version ${integer} not null,
       object_id ${text} not null,
       created_at ${integer} not null,
       data ${text} not null
     )${strict}`,
  );
  await run("create unique index events_id on events (id)");
  await run("create index events_workspace on events (workspace_id, number)");
  await run("create index events_type on events (workspace_id, type, number)");
  await run("create index events_object on events (workspace_id, object_id, number)");
  await run(`create table event_outbox (number ${integer} not null primary key)${strict}`);
  await run(`create table event_sweeps (name ${text} not null primary key, state ${text} not null)${strict}`);
  await run("insert into leases (name, holder, token, expires_at) values ('events', '', 0, 0)");
  await run(`alter table apis add column expiry_notices ${text}`);
  await run(`alter table balances add column low_at ${integer}`);

  if (!postgres) return;
  // Before the statement draws its number: the lock says below which numbers this transaction inserts nothing. Its class is
  // one more than that of `changes`.
  await run(
    `create function announce_events() returns trigger language plpgsql as $$
     declare
       drawn bigint;
     begin
       execute format('select case when is_called then last_value else last_value - 1 end from %I.events_number_seq',
         tg_table_schema) into drawn;
       perform pg_advisory_xact_lock_shared(5497769245112532992 + drawn);
       return null;
     end $$`,
  );
  await run(
    `create trigger announce_events before insert on events for each statement execute function announce_events()`,
  );
}
