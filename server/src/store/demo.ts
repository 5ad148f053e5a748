import type { Sql } from "./store.ts";

/** The tables that demo data is written to. */
export type DemoTable =
  | "apis"
  | "identities"
  | "permissions"
  | "roles"
  | "roles_permissions"
  | "keys"
  | "keys_roles"
  | "key_usage"
  | "balances"
  | "ratelimits"
  | "ratelimit_namespaces"
  | "ratelimit_overrides"
  | "root_keys"
  | "root_key_usage"
  | "audit_events"
  | "audit_targets";

/** Rows of one table, all with the same columns. */
export interface DemoRows {
  table: DemoTable;
  rows: readonly Readonly<Record<string, string | number | null>>[];
}

const ROWS_PER_STATEMENT = 100;

/** Inserts rows as they are. */
export async function insertDemoRows({ db }: Sql, { table, rows }: DemoRows): Promise<void> {
  for (let i = 0; i < rows.length; i += ROWS_PER_STATEMENT) {
    await db
      .insertInto(table)
      .values(rows.slice(i, i + ROWS_PER_STATEMENT) as never)
      .execute();
  }
}
