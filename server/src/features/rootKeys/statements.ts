import { sql as raw, type Updateable } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import { HASH_VERSION, hashSecret } from "../../../../engine/src/crypto/hash.ts";
import type { SecretSource } from "../../../../engine/src/crypto/secret.ts";
import { newId, type Random } from "../../../../engine/src/random/random.ts";
import { formatKey, ROOT_KEY_PREFIX } from "../../../../engine/src/rules/key-string.ts";
import { lockAccess } from "../../platform/store/access/access-lock.ts";
import { isAdministrator } from "../../platform/store/access/root-key-lookup.ts";
import { deletedRows } from "../../platform/store/deleted-rows.ts";
import { eraseOutcomesOfKeys } from "../../platform/store/idempotency.ts";
import { type PageOptions, searchPage } from "../../platform/store/page.ts";
import type { LeakAction, RootKeyRow, SqlBoolean } from "../../platform/store/schema.ts";
import { fold } from "../../platform/store/search.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";

const BYTES = 24;

/** A root key with the time of its last use, in epoch milliseconds. */
export interface ListedRootKey extends RootKeyRow {
  last_used_at: number | null;
}

/** The root keys of one workspace that are not deleted. */
export class RootKeyReader extends WorkspaceRows {
  find(rootKeyId: string): Promise<ListedRootKey | undefined> {
    return this.#select().where("id", "=", rootKeyId).executeTakeFirst();
  }

  list(): Promise<ListedRootKey[]> {
    return this.#select().orderBy("created_at").orderBy("id").execute();
  }

  /** A page of root keys, searched by name and id. */
  page(options: PageOptions): Promise<ListedRootKey[]> {
    return searchPage(this.sql, this.#select(), options).execute();
  }

  #select() {
    return this.sql.db
      .selectFrom("root_keys")
      .selectAll()
      .select(({ selectFrom }) =>
        selectFrom("root_key_usage")
          .select("last_used_at")
          .whereRef("root_key_usage.root_key_id", "=", "root_keys.id")
          .as("last_used_at"),
      )
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null);
  }
}

export interface NewRootKey {
  name: string;
  /** In canonical form. */
  grants: readonly string[];
  expiresAt: number | null;
  enabled?: SqlBoolean;
  /** The root key that creates it; null: the command line. */
  createdBy: string | null;
  leakAction?: LeakAction | null | undefined;
}

/** A root key that another one made, directly or through others that it made. */
interface MadeRootKey extends RootKeyRow {
  /** 1: the other one made it itself. */
  depth: number;
}

/** Root keys that one call examines, deleted ones among them. */
const MADE_MAX = 10_000;
/** Root keys that one call deletes beside the one that made them. It holds the writer of SQLite for a few milliseconds. */
export const MADE_DELETED_MAX = 200;

export class RootKeyWriter extends RootKeyReader {
  static readonly writes = true;

  /** Creates a root key. Only this result contains its string. */
  async issue(
    { name, grants, expiresAt, createdBy, enabled = 1, leakAction = null }: NewRootKey,
    { random, secrets }: { random: Random; secrets: SecretSource },
    at: Instant,
  ): Promise<{ rootKeyId: string; key: string; hash: string }> {
    const { key, start } = formatKey(ROOT_KEY_PREFIX, secrets(BYTES));
    const [rootKeyId, hash] = [newId(random, "rk"), hashSecret(key)];
    await this.insert({
      id: rootKeyId,
      name,
      hash,
      hash_version: HASH_VERSION,
      start,
      grants: JSON.stringify(grants),
      source: "issued",
      enabled,
      expires_at: expiresAt,
      created_by: createdBy,
      leak_action: leakAction,
      created_at: at,
    });
    return { rootKeyId, key, hash };
  }

  async insert(
    rootKey: Omit<RootKeyRow, "workspace_id" | "name_folded" | "leaked_at" | "updated_at" | "deleted_at">,
  ): Promise<void> {
    await this.sql.db
      .insertInto("root_keys")
      .values({ ...rootKey, name_folded: fold(rootKey.name), workspace_id: this.workspaceId })
      .execute();
  }

  /**
   * Finds a root key and locks all root keys of the workspace until the transaction ends, so that two administrators
   * cannot delete each other at the same time.
   */
  async findForUpdate(rootKeyId: string): Promise<RootKeyRow | undefined> {
    await lockAccess(this.sql, this.workspaceId, "exclusive");
    return this.find(rootKeyId);
  }

  /** Lists all root keys and locks them in the same way. */
  async listForUpdate(): Promise<RootKeyRow[]> {
    await lockAccess(this.sql, this.workspaceId, "exclusive");
    return this.list();
  }

  /** A deleted root key, as long as it is stored. Locks like `findForUpdate`. */
  async findDeletedForUpdate(rootKeyId: string): Promise<RootKeyRow | undefined> {
    await lockAccess(this.sql, this.workspaceId, "exclusive");
    return this.sql.db
      .selectFrom("root_keys")
      .selectAll()
      .where("id", "=", rootKeyId)
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is not", null)
      .executeTakeFirst();
  }

  /**
   * The root keys that a root key made, directly or through others: how many are not deleted, in every workspace, and those
   * of this workspace that can be deleted with it, the nearest first. A caller, the root key of the configuration and what
   * these made cannot.
   */
  async findMade(rootKeyId: string, callerId: string | null): Promise<{ living: number; deletable: RootKeyRow[] }> {
    const made = await this.#listMade(rootKeyId);
    const spared = new Set<string>();
    for (const { id, created_by, source } of made) {
      const isProtected = id === callerId || source === "environment";
      if (isProtected || spared.has(created_by!)) spared.add(id);
    }
    const living = made.filter(({ deleted_at }) => deleted_at === null);
    const deletable = living.filter(({ id, workspace_id }) => workspace_id === this.workspaceId && !spared.has(id));
    return { living: living.length, deletable: deletable.slice(0, MADE_DELETED_MAX) };
  }

  /** Of every workspace and with deleted ones, the nearest first: at most `MADE_MAX`. */
  async #listMade(rootKeyId: string): Promise<MadeRootKey[]> {
    const { rows } = await raw<MadeRootKey>`
      with recursive made as (
        select root_keys.*, 1 as depth from root_keys where created_by = ${rootKeyId}
        union all
        select root_keys.*, made.depth + 1 from made join root_keys on root_keys.created_by = made.id
      )
      select * from made limit ${MADE_MAX}`.execute(this.sql.db);
    return rows.map((row) => ({ ...row, depth: Number(row.depth) })).sort((a, b) => a.depth - b.depth);
  }

  /** Whether the workspace would have no administrator without these root keys. Call this while they are locked. */
  async hasNoAdministratorBeside(rootKeys: readonly RootKeyRow[]): Promise<boolean> {
    if (!rootKeys.some(isAdministrator)) return false;
    const ids = new Set(rootKeys.map(({ id }) => id));
    return (await this.list()).every((other) => ids.has(other.id) || !isAdministrator(other));
  }

  async update(
    rootKeyId: string,
    values: Pick<
      Updateable<RootKeyRow>,
      "name" | "grants" | "source" | "enabled" | "expires_at" | "leak_action" | "leaked_at"
    >,
    at: Instant,
  ): Promise<void> {
    await this.#set([rootKeyId], {
      ...values,
      ...(values.name !== undefined && { name_folded: fold(values.name) }),
      updated_at: at,
    });
  }

  /** Also erases stored outcomes that may contain their strings. */
  async markDeleted(rootKeyIds: readonly string[], at: Instant): Promise<void> {
    await this.#set(rootKeyIds, { deleted_at: at });
    await eraseOutcomesOfKeys(this.sql, rootKeyIds);
  }

  async #set(rootKeyIds: readonly string[], values: Updateable<RootKeyRow>): Promise<void> {
    await lockAccess(this.sql, this.workspaceId, "exclusive");
    await this.sql.db
      .updateTable("root_keys")
      .set(values)
      .where(this.sql.dialect.values.isOneOf("id", rootKeyIds))
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}

/**
 * Makes the makers of deleted root keys, which are about to be forgotten, the makers of what these made. Each statement at
 * least halves the chains among them.
 */
async function passOnMadeRootKeys(sql: Sql, rootKeyIds: readonly string[]): Promise<void> {
  for (;;) {
    const { numUpdatedRows } = await sql.db
      .updateTable("root_keys")
      .set({
        created_by: raw<
          string | null
        >`(select maker.created_by from root_keys maker where maker.id = root_keys.created_by)`,
      })
      .where(sql.dialect.values.isOneOf("created_by", rootKeyIds))
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return;
  }
}

/** Deletes root keys without sessions. */
export const rootKeyRetention = deletedRows("root_keys", {
  references:
    "select 1 from sessions where root_key_id = root_keys.id " +
    "union all select 1 from sign_in_links where root_key_id = root_keys.id " +
    "union all select 1 from portal_sessions where root_key_id = root_keys.id",
  beforeDelete: passOnMadeRootKeys,
});
