import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { DirectoryDerivedKey, KeyLocation } from "../../../../../engine/src/directory/stored.ts";
import type { Place } from "../../../platform/store/cursor.ts";
import type { StoreRules } from "../../../platform/store/inspection.ts";
import { demandStep } from "../../../platform/store/migrate.ts";
import { onePage } from "../../../platform/store/page.ts";
import type { RetentionTask } from "../../../platform/store/retention.ts";
import { oldestBy } from "../../../platform/store/retention.ts";
import type { DerivedKeyRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { BalanceWriter } from "../../credits/statements/balances.ts";

/** How long a derived key stays after its end, so that its calls are answered with EXPIRED. */
const KEPT = 3_600_000;

/** The derived keys at these locations, each with those that it was derived from; the directory loads its records with this. */
export async function findDerivedKeysAt(sql: Sql, locations: readonly KeyLocation[]): Promise<DirectoryDerivedKey[]> {
  const wanted = new Set(locations.map(({ hash, workspace_id }) => `${hash} ${workspace_id}`));
  const hashes = [...new Set(locations.map(({ hash }) => hash))];
  const found = (await rowsOf(sql, "hash", hashes)).filter(({ hash, workspace_id }) =>
    wanted.has(`${hash} ${workspace_id}`),
  );
  const known = await withParents(sql, found);
  return found.map((row) => {
    const levels: DerivedKeyRow[] = [];
    for (let next: DerivedKeyRow | undefined = row; next; next = known.get(next.parent_id)) levels.push(next);
    const { hash, workspace_id, top_id, level } = row;
    return { hash, workspace_id, top_id, level, levels: levels.map(levelOf) };
  });
}

/** These derived keys and those that they were derived from, by id. */
async function withParents(sql: Sql, rows: readonly DerivedKeyRow[]): Promise<Map<string, DerivedKeyRow>> {
  const known = new Map(rows.map((row) => [row.id, row]));
  let last = rows;
  for (;;) {
    const missing = last.flatMap(({ level, parent_id }) => (level > 1 && !known.has(parent_id) ? [parent_id] : []));
    if (missing.length === 0) return known;
    last = await rowsOf(sql, "id", [...new Set(missing)]);
    for (const row of last) known.set(row.id, row);
  }
}

function rowsOf({ db, dialect }: Sql, column: "hash" | "id", values: readonly string[]): Promise<DerivedKeyRow[]> {
  return db.selectFrom("derived_keys").selectAll().where(dialect.values.isOneOf(column, values)).execute();
}

function levelOf(row: DerivedKeyRow): DirectoryDerivedKey["levels"][number] {
  const { id, parent_id, expires_at, deleted_at, permissions, ratelimits, allowed_ips, meta, credits_max } = row;
  return { id, parent_id, expires_at, deleted_at, permissions, ratelimits, allowed_ips, meta, credits_max };
}

/** A derived key with what is left of what it may spend; null: it has no such bound. */
export type ListedDerivedKey = DerivedKeyRow & { remaining: number | null };

/** The derived keys of one workspace. */
export class DerivedKeyReader extends WorkspaceRows {
  /** A derived key that was not ended. It may have expired. */
  find(id: string): Promise<DerivedKeyRow | undefined> {
    return this.#select().where("id", "=", id).where("deleted_at", "is", null).executeTakeFirst();
  }

  /** The derived key of this hash, ended or not. */
  findByHash(hash: string): Promise<DerivedKeyRow | undefined> {
    return this.#select().where("hash", "=", hash).executeTakeFirst();
  }

  /**
   * A page of the living derived keys of a key, or of what was derived of a derived key, in the order of creation. There are
   * at most as many as a key may have.
   */
  page(
    { topId, ancestorId }: { topId: string; ancestorId: string },
    { from, limit, now }: { from: Place | undefined; limit: number; now: Instant },
  ): Promise<ListedDerivedKey[]> {
    const query = this.#select()
      .leftJoin("balances", "balances.pool_id", "derived_keys.id")
      .select("balances.remaining")
      .where("top_id", "=", topId)
      .where("expires_at", ">", now)
      .where("deleted_at", "is", null)
      .$if(ancestorId !== topId, (rows) => rows.where(below(ancestorId)));
    return onePage(query, { from, limit }, "derived_keys").execute();
  }

  /** How many living derived keys each of these keys has; those with none are missing. */
  async countsOfTops(topIds: readonly string[], now: Instant): Promise<ReadonlyMap<string, number>> {
    const rows = await this.sql.db
      .selectFrom("derived_keys")
      .select(["top_id", ({ fn }) => fn.countAll<number | string>().as("count")])
      .where("workspace_id", "=", this.workspaceId)
      .where(this.sql.dialect.values.isOneOf("top_id", topIds))
      .where("expires_at", ">", now)
      .where("deleted_at", "is", null)
      .groupBy("top_id")
      .execute();
    return new Map(rows.map(({ top_id, count }) => [top_id, Number(count)]));
  }

  #select() {
    return this.sql.db
      .selectFrom("derived_keys")
      .selectAll("derived_keys")
      .where("derived_keys.workspace_id", "=", this.workspaceId);
  }
}

/** Those that were derived of a derived key, directly or not: there are three levels. */
function below(id: string) {
  return raw<boolean>`(derived_keys.parent_id = ${id} or derived_keys.parent_id in (
    select children.id from derived_keys as children where children.parent_id = ${id}))`;
}

export class DerivedKeyWriter extends DerivedKeyReader {
  static readonly writes = true;

  /** Whether derived keys can be stored: programs of earlier releases would not find them. */
  accepts(): Promise<boolean> {
    return demandStep(this.sql, "047-derived-keys");
  }

  /** How many living derived keys a key has, and whether it has others that have ended. */
  async countOfTop(topId: string, now: Instant): Promise<{ living: number; hadAny: boolean }> {
    const row = await this.sql.db
      .selectFrom("derived_keys")
      .select(({ fn }) => fn.countAll<number | string>().as("living"))
      .where("top_id", "=", topId)
      .where("expires_at", ">", now)
      .executeTakeFirstOrThrow();
    const any = await this.sql.db
      .selectFrom("derived_keys")
      .select("id")
      .where("top_id", "=", topId)
      .limit(1)
      .executeTakeFirst();
    return { living: Number(row.living), hadAny: any !== undefined };
  }

  /** The time of the creation before the last `limit - 1` ones of an owner, if it is after `since`: the rate is used up. */
  async oldestOfRate(ownerId: string, limit: number, since: Instant): Promise<number | undefined> {
    const row = await this.sql.db
      .selectFrom("derived_keys")
      .select("created_at")
      .where("owner_id", "=", ownerId)
      .where("created_at", ">", since)
      .orderBy("created_at", "desc")
      .limit(1)
      .offset(limit - 1)
      .executeTakeFirst();
    return row?.created_at;
  }

  async insert(row: Omit<DerivedKeyRow, "workspace_id" | "deleted_at">): Promise<void> {
    const texts = [row.meta, row.permissions, row.ratelimits, row.allowed_ips];
    this.metadataBytes += texts.reduce((sum, text) => sum + (text === null ? 0 : Buffer.byteLength(text)), 0);
    await this.sql.db
      .insertInto("derived_keys")
      .values({ ...row, workspace_id: this.workspaceId })
      .execute();
  }

  /** Ends a derived key and what was derived of it; returns how many that were. */
  async end({ id, top_id }: Pick<DerivedKeyRow, "id" | "top_id">, now: Instant): Promise<number> {
    const { numUpdatedRows } = await this.sql.db
      .updateTable("derived_keys")
      .set({ deleted_at: now, expires_at: raw<number>`case when expires_at < ${now} then expires_at else ${now} end` })
      .where("top_id", "=", top_id)
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null)
      .where(({ or, eb }) => or([eb("id", "=", id), below(id)]))
      .executeTakeFirstOrThrow();
    return Number(numUpdatedRows);
  }

  /** Deletes the derived keys of a key that is erased. */
  async erase(topId: string): Promise<void> {
    const ids = this.sql.db.selectFrom("derived_keys").select("id").where("top_id", "=", topId);
    await this.sql.db
      .deleteFrom("balances")
      .where("pool_id", "in", ids)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
    await this.sql.db
      .deleteFrom("derived_keys")
      .where("top_id", "=", topId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}

/** Deletes derived keys an hour after their end, with the balances of what they could spend. */
export const derivedKeyRetention: RetentionTask = {
  keep: () => KEPT,
  oldest: oldestBy("derived_keys", "expires_at"),
  async step(sql, before, limit) {
    const rows = await sql.db
      .selectFrom("derived_keys")
      .select(["id", "workspace_id", "credits_max"])
      .where("expires_at", "<", before)
      .orderBy("expires_at")
      .orderBy("id")
      .limit(limit)
      .execute();
    // Open holds can outlast the derived key.
    for (const { id, workspace_id, credits_max } of rows)
      if (credits_max !== null) await new BalanceWriter(sql, workspace_id).remove(id, before);
    const ids = rows.map(({ id }) => id);
    await sql.db.deleteFrom("derived_keys").where(sql.dialect.values.isOneOf("id", ids)).execute();
    return rows.length;
  },
  limit: 200,
};

/** What holds for all derived keys. */
export const derivedKeyRules: StoreRules = {
  "every derived key that may spend so much has its balance": `select count(*) as count from derived_keys
    where credits_max is not null and deleted_at is null
    and not exists (select 1 from balances where balances.pool_id = derived_keys.id)`,
};
