import { sql as raw } from "kysely";
import type { Instant, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { KeyRow } from "../../../platform/store/schema.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";

/** The most keys that one finding returns, and the most that it counts. */
export const FOUND_MAX = 20;
export const COUNTED_MAX = 1_000;

/** The most balances and expiring keys of a workspace that are examined. */
const EXAMINED_MAX = 100_000;

/** The most reports of leaks that are examined, the newest first. */
const REPORTS_MAX = 10_000;

export type FoundKey = Pick<KeyRow, "id" | "api_id" | "name" | "start">;

/** Up to `FOUND_MAX` keys of all APIs of a workspace that need attention, and how many there are. */
export interface KeyFinding<Key> {
  /** At most `COUNTED_MAX`. */
  count: number;
  keys: Key[];
}

/**
 * Keys of a workspace that need attention. They are cross joined, because SQLite then keeps the order of the tables: with the
 * keys first, it would read everything that was found once for each key.
 */
export class KeyFindingReader extends WorkspaceRows {
  /** Active keys that expire soon, the first one first. */
  async expiringWithin(length: Milliseconds, now: Instant): Promise<KeyFinding<FoundKey & Pick<KeyRow, "expires_at">>> {
    const expiring = this.sql.db
      .selectFrom("keys")
      .select(["id", "expires_at"])
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null)
      .where("expires_at", ">", now)
      .where("expires_at", "<", now + length)
      .orderBy("expires_at")
      .orderBy("id")
      .limit(EXAMINED_MAX)
      .as("expiring");
    const rows = await this.sql.db
      .selectFrom(expiring)
      .crossJoin("keys")
      .whereRef("keys.id", "=", "expiring.id")
      .where(this.#isActive())
      .select(["keys.id", "keys.api_id", "keys.name", "keys.start", "keys.expires_at"])
      .orderBy("keys.expires_at")
      .orderBy("keys.id")
      .limit(COUNTED_MAX)
      .execute();
    return { count: rows.length, keys: rows.slice(0, FOUND_MAX) };
  }

  /** Active keys whose credits are nearly spent: at most a tenth of their refill, or `left` without a refill. */
  async lowOnCredits(
    left: number,
    now: Instant,
  ): Promise<KeyFinding<FoundKey & { remaining: number; refill_amount: number | null }>> {
    const pools = this.sql.db
      .selectFrom("balances")
      .select(["pool_id", "remaining", "refill_amount"])
      .where("workspace_id", "=", this.workspaceId)
      // Those of budgets have books.
      .where("granted", "is", null)
      .where("slots_of", "is", null)
      .orderBy("pool_id")
      .limit(EXAMINED_MAX)
      .as("pools");
    const rows = await this.sql.db
      .selectFrom(pools)
      .crossJoin("keys")
      .whereRef("keys.pool_id", "=", "pools.pool_id")
      .where(this.#isActive())
      .select(["keys.id", "keys.api_id", "keys.name", "keys.start", "pools.remaining", "pools.refill_amount"])
      .where(raw<boolean>`pools.remaining <= coalesce(pools.refill_amount / 10, ${left})`)
      .where(this.#isUnexpired(now))
      .orderBy("pools.remaining")
      .orderBy("keys.id")
      .limit(COUNTED_MAX)
      .execute();
    return { count: rows.length, keys: rows.slice(0, FOUND_MAX) };
  }

  /**
   * Active keys that were reported as leaked, the last one first. They are found by their entries in the audit log, as long
   * as these are stored.
   */
  async leaked(now: Instant): Promise<KeyFinding<FoundKey & { leaked_at: number }>> {
    const { sql } = this;
    const reports = sql.db
      .selectFrom("audit_events")
      .select(sql.dialect.json.first(raw`targets`).as("key_id"))
      .where("workspace_id", "=", this.workspaceId)
      .where("action", "=", "keys.reportLeak")
      .orderBy("occurred_at", "desc")
      .limit(REPORTS_MAX)
      .as("reports");
    const rows = await sql.db
      .selectFrom(reports)
      .crossJoin("keys")
      .whereRef("keys.id", "=", "reports.key_id")
      .where(this.#isActive())
      .where(this.#isUnexpired(now))
      .where("keys.leaked_at", "is not", null)
      .distinct()
      .select(["keys.id", "keys.api_id", "keys.name", "keys.start", "keys.leaked_at"])
      .$narrowType<{ leaked_at: number }>()
      .orderBy("keys.leaked_at", "desc")
      .orderBy("keys.id")
      .limit(COUNTED_MAX)
      .execute();
    return { count: rows.length, keys: rows.slice(0, FOUND_MAX) };
  }

  #isUnexpired(now: Instant) {
    return raw<boolean>`(keys.expires_at is null or keys.expires_at > ${now})`;
  }

  #isActive() {
    return raw<boolean>`keys.workspace_id = ${this.workspaceId} and keys.deleted_at is null and keys.enabled = 1
      and exists (select 1 from apis where apis.id = keys.api_id and apis.deleted_at is null)`;
  }
}
