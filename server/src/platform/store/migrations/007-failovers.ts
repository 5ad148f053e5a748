import { type Kysely, sql } from "kysely";

/**
 * What PostgreSQL needs to survive a failover: changes that say themselves which are under way, an identity for each,
 * and markers that decide a COMMIT whose answer was lost.
 */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  if (dialect !== "postgres") return;
  const run = (statement: string) => sql.raw(statement).execute(db);

  await run("alter table changes add column nonce uuid not null default gen_random_uuid()");
  // Before the statement draws its number: the lock says below which numbers this transaction announces nothing.
  await run(
    `create function announce_changes() returns trigger language plpgsql as $$
     declare
       drawn bigint;
     begin
       execute format('select case when is_called then last_value else last_value - 1 end from %I.changes_sequence_seq',
         tg_table_schema) into drawn;
       perform pg_advisory_xact_lock_shared(5497487770135822336 + drawn);
       perform pg_notify('latchkey_changes', '');
       return null;
     end $$`,
  );
  await run(
    `create trigger announce_changes before insert on changes for each statement execute function announce_changes()`,
  );
  // The newest row is never deleted, so that a reader recognises the table.
  await run(
    `insert into changes (tags, created_at)
     values ('[]', (extract(epoch from clock_timestamp()) * 1000)::bigint)`,
  );
  await run(
    `create table transaction_markers (
       id text collate "C" not null primary key,
       transaction bigint not null,
       used_at bigint not null default (extract(epoch from clock_timestamp()) * 1000)::bigint
     ) with (fillfactor = 50)`,
  );
}
