import { type Kysely, sql } from "kysely";

/** The addresses that may use a key, and the policy of an API. */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const text = dialect === "postgres" ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  await run(`alter table keys add column allowed_ips ${text}`);
  await run(`alter table apis add column policy ${text}`);
}
