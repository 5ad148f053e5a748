import { type Kysely, sql } from "kysely";

/** What permissions and roles are searched by, in lower case. Databases fold ASCII alike and the rest each in its way. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const text = dialect === "postgres" ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);

  await run(`alter table permissions add column name_folded ${text} not null default ''`);
  await run(`alter table permissions add column description_folded ${text}`);
  await run(`alter table roles add column description_folded ${text}`);
  // No operation before this step gave a permission another name than its slug, or anything a description.
  await run("update permissions set name_folded = slug_folded");
  // Both small sigmas are folded into one from here on.
  await run("update ratelimit_namespaces set name_folded = replace(name_folded, 'ς', 'σ')");
}
