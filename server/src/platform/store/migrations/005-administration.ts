import { type Kysely, sql } from "kysely";

/** What the lists of APIs, root keys and workspaces are searched by, and what the audit log is. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const integer = postgres ? "bigint" : "integer";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);

  for (const table of ["apis", "root_keys", "workspaces"]) {
    await run(`alter table ${table} add column name_folded ${text} not null default ''`);
    // Here and not there: neither database folds letters beyond ASCII as the program does, whatever its locale.
    const { rows } = await sql<{ id: string; name: string }>`select id, name from ${sql.table(table)}`.execute(db);
    for (const { id, name } of rows) {
      await sql`update ${sql.table(table)} set name_folded = ${fold(name)} where id = ${id}`.execute(db);
    }
  }

  await run(
    `create table audit_targets (
       workspace_id ${text} not null,
       target ${text} not null,
       occurred_at ${integer} not null,
       event_id ${text} not null,
       primary key (workspace_id, target, occurred_at, event_id)
     )${postgres ? "" : " strict, without rowid"}`,
  );
  const targets = postgres ? "jsonb_array_elements_text(e.targets::jsonb) as t(value)" : "json_each(e.targets) as t";
  await run(
    `insert into audit_targets (workspace_id, target, occurred_at, event_id)
     select distinct e.workspace_id, t.value, e.occurred_at, e.id from audit_events e cross join ${targets}`,
  );
  await run("create index audit_events_actor on audit_events (workspace_id, actor, occurred_at, id)");
  await run("create index audit_events_action on audit_events (workspace_id, action, occurred_at, id)");
}

function fold(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}
