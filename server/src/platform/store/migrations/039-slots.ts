import { type Kysely, sql } from "kysely";

/**
 * Limits of concurrency of keys and identities. Their slots are balances, whose index is built beside the service on
 * PostgreSQL, where a build would block writes.
 */
export async function up(db: Kysely<unknown>, dialect: "sqlite" | "postgres"): Promise<void> {
  const postgres = dialect === "postgres";
  const text = postgres ? 'text collate "C"' : "text";
  const run = (statement: string) => sql.raw(statement).execute(db);
  // Before keys: batches of the ledger have locked balances when they read keys, and must not be chosen to end a deadlock.
  await run(`alter table balances add column slots_of ${text}`);
  await run(`alter table balances add column slots_name ${text}`);
  if (!postgres) await run("create index balances_slots on balances (slots_of) where slots_of is not null");
  for (const table of ["keys", "identities"]) await run(`alter table ${table} add column concurrency ${text}`);
}
