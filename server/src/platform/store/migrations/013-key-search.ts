import { type Kysely, sql } from "kysely";

/** Keys are searched in an index that holds every searched column, so that a search does not read the rows. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const text = dialect === "postgres" ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);

  await run(`alter table keys add column name_folded ${text}`);
  // Both databases fold ASCII alike. Other letters are folded here, as the program folds them.
  const isAscii = dialect === "postgres" ? "name !~ '[^ -~]'" : "name not glob '*[^ -~]*'";
  await run(`update keys set name_folded = lower(name) where name is not null and ${isAscii}`);
  const { rows } = await sql<{ id: string; name: string }>`
    select id, name from keys where name is not null and name_folded is null`.execute(db);
  for (const { id, name } of rows) {
    await sql`update keys set name_folded = ${fold(name)} where id = ${id}`.execute(db);
  }

  await run(
    `create index keys_search on keys (api_id, created_at, id, enabled, expires_at, identity_id, start, name_folded)
     where deleted_at is null`,
  );
  await run("drop index keys_created");
  await run(
    `create index keys_expiring on keys (workspace_id, expires_at)
     where deleted_at is null and expires_at is not null`,
  );
}

function fold(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}
