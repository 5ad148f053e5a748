import { type Kysely, sql } from "kysely";

/**
 * On PostgreSQL, divides the tables of counts by month if they are empty. The service divides tables that have rows beside
 * reads and writes.
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
         has_rows boolean;
       begin
         for item in
           select * from (values
             ('analytics_minutes', 'time, subject, part, outcome'),
             ('analytics_hours', 'time, subject, part, outcome'),
             ('analytics_days', 'time, subject, part, outcome'),
             ('analytics_usage_hours', 'time, workspace_id, key_id, identity_id, outcome'),
             ('analytics_usage_days', 'time, workspace_id, key_id, identity_id, outcome')
           ) as tables (name, key)
         loop
           -- Roles and views that were given a table belong to it and not to its name.
           continue when exists (select 1 from pg_class where oid = item.name::regclass and relacl is not null)
             or exists (select 1 from pg_depend
               where refobjid = item.name::regclass and classid = 'pg_rewrite'::regclass);
           execute format('select exists (select 1 from %I)', item.name) into has_rows;
           continue when has_rows;
           execute format('lock table %I in access exclusive mode', item.name);
           execute format('select exists (select 1 from %I)', item.name) into has_rows;
           continue when has_rows;
           execute format('alter table %I rename to %I', item.name, item.name || '_whole');
           execute format('create table %I (like %I including defaults) partition by range (time)',
             item.name, item.name || '_whole');
           execute format('drop table %I', item.name || '_whole');
           execute format('alter table %I add primary key (%s)', item.name, item.key);
           execute format('create table %I partition of %I for values from (minvalue) to (%s)',
             item.name || to_char(until, '"_until_"YYYY_MM'), item.name, extract(epoch from until)::bigint * 1000);
           execute format('create table %I partition of %I default', item.name || '_default', item.name);
         end loop;
       end $$`,
    )
    .execute(db);
}
