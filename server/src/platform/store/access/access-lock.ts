import type { Sql } from "../store.ts";

// An arbitrary number that nothing else on the server uses as a lock class.
const ACCESS_LOCK_CLASS = 726_283_712;

/**
 * Locks the access of a workspace's root keys until the transaction ends: `shared` for a transaction that relies on it,
 * `exclusive` for one that reduces it. After a root key is deleted, disabled or narrowed, no transaction that relied on
 * the old access can commit. Acquire this lock before any other lock.
 *
 * Advisory locks are granted in order. With row locks, a steady flow of shared locks could delay the exclusive lock
 * without end.
 */
export async function lockAccess(sql: Sql, workspaceId: string, mode: "shared" | "exclusive"): Promise<void> {
  await sql.dialect.locks.lockText(sql, ACCESS_LOCK_CLASS, workspaceId, mode);
}
