import { type Kysely, sql } from "kysely";

/**
 * On PostgreSQL, divides the tables of the audit log by month if they are empty. The service divides tables that have rows
 * beside reads and writes.
 */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  if (dialect !== "postgres") return;
  await sql
    .raw(
      `do $$
       declare
         -- A month that begins at least 35 days ahead.
         until timestamp := date_trunc('month', (now() at time zone 'utc') + interval '35 days') + interval '1 month';
         item record;
       begin
         for item in
           select * from (values
             ('audit_events', 'id, occurred_at'),
             ('audit_targets', 'workspace_id, target, occurred_at, event_id')
           ) as tables (name, key)
         loop
           -- Roles and views that were given a table belong to it and not to its name.
           continue when exists (select 1 from pg_class where oid = item.name::regclass and relacl is not null)
             or exists (select 1 from pg_depend
               where refobjid = item.name::regclass and classid = 'pg_rewrite'::regclass);
           if item.name = 'audit_events' then
             continue when exists (select 1 from audit_events);
             lock table audit_events in access exclusive mode;
             continue when exists (select 1 from audit_events);
           else
             continue when exists (select 1 from audit_targets);
             lock table audit_targets in access exclusive mode;
             continue when exists (select 1 from audit_targets);
           end if;
           execute format('alter table %I rename to %I', item.name, item.name || '_whole');
           execute format('create table %I (like %I including defaults) partition by range (occurred_at)',
             item.name, item.name || '_whole');
           execute format('drop table %I', item.name || '_whole');
           execute format('alter table %I add primary key (%s)', item.name, item.key);
           execute format('create table %I partition of %I for values from (minvalue) to (%s)',
             item.name || to_char(until, '"_until_"YYYY_MM'), item.name, extract(epoch from until)::bigint * 1000);
           execute format('create table %I partition of %I default', item.name || '_default', item.name);
           if item.name = 'audit_events' then
             create index audit_events_time on audit_events (workspace_id, occurred_at, id);
             create index audit_events_actor on audit_events (workspace_id, actor, occurred_at, id);
             create index audit_events_action on audit_events (workspace_id, action, occurred_at, id);
           end if;
         end loop;
       end $$`,
    )
    .execute(db);
}
