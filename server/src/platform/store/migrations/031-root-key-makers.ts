import { type Kysely, sql } from "kysely";

/** Which root key made a root key, when it was reported as leaked, and what happens then. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const run = (statement: string) => sql.raw(statement).execute(db);
  const text = postgres ? 'text collate "C"' : "text";
  await run(`alter table root_keys add column created_by ${text}`);
  await run(`alter table root_keys add column leak_action ${text}`);
  await run(`alter table root_keys add column leaked_at ${postgres ? "bigint" : "integer"}`);
  await run("create index root_keys_made on root_keys (created_by) where created_by is not null");
  // The audit log has the makers of root keys that exist already.
  await run(`
    update root_keys set created_by = (
      select min(e.actor) from audit_targets t join audit_events e on e.id = t.event_id and e.occurred_at = t.occurred_at
      where t.workspace_id = root_keys.workspace_id and t.target = root_keys.id
        and t.occurred_at = root_keys.created_at and e.actor like 'rk\\_%' escape '\\'
        and e.action in ('rootKeys.createRootKey', 'rootKeys.rerollRootKey')
    )`);
}
