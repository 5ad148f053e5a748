import { sql as raw } from "kysely";
import type { Sql } from "../store.ts";

// Any fixed number will do, as long as nothing else on the server takes locks of the same class.
const ACCESS_LOCK_CLASS = 726_283_712;

/**
 * Locks what the root keys of a workspace may do, until the transaction ends: `shared` by a transaction that relies on
 * it, `exclusive` by one that takes something away. So once a root key is deleted, disabled or narrowed, nothing that
 * needed what was taken away can commit any more. Take it first, before any other lock.
 *
 * Advisory locks queue: a steady flow of shared holders cannot keep the exclusive one waiting, as it could with row
 * locks. SQLite has one writer.
 */
export async function lockAccess(sql: Sql, workspaceId: string, mode: "shared" | "exclusive"): Promise<void> {
  if (sql.dialect !== "postgres") return;
  const take = raw.ref(mode === "shared" ? "pg_advisory_xact_lock_shared" : "pg_advisory_xact_lock");
  await raw`select ${take}(${ACCESS_LOCK_CLASS}::integer, hashtext(${workspaceId}))`.execute(sql.db);
}
