import type { Updateable } from "kysely";
import type { Instant } from "../../clock/clock.ts";
import { HASH_VERSION, hashSecret } from "../../crypto/hash.ts";
import type { SecretSource } from "../../crypto/secret.ts";
import { newId, type Random } from "../../random/random.ts";
import { ADMINISTRATOR } from "../../rules/grants.ts";
import { formatKey, ROOT_KEY_PREFIX } from "../../rules/key-string.ts";
import { eraseOutcomesOfKey } from "../idempotency.ts";
import { isOneOf } from "../json.ts";
import { type PageOptions, searchPage } from "../page.ts";
import type { RootKeyRow, SqlBoolean } from "../schema.ts";
import { fold } from "../search.ts";
import type { Sql } from "../store.ts";
import { WorkspaceRows } from "../workspace-rows.ts";
import { lockAccess } from "./access-lock.ts";

const BYTES = 24;

/** A root key with the settings of its workspace that apply to its calls. */
export interface StoredRootKey extends RootKeyRow {
  workspace_enabled: SqlBoolean;
  workspace_requests_per_minute: number | null;
}

/** A root key with the time of its last use, in epoch milliseconds. */
export interface ListedRootKey extends RootKeyRow {
  last_used_at: number | null;
}

/** Root keys of any workspace that are not deleted; the directory loads its records with this. */
export function findRootKeysByHashes(sql: Sql, hashes: readonly string[]): Promise<StoredRootKey[]> {
  return selectStored(sql)
    .where(isOneOf(sql, "root_keys.hash", hashes))
    .execute();
}

/** A root key that is not deleted, as this transaction sees it. */
export function findRootKey(sql: Sql, rootKeyId: string): Promise<StoredRootKey | undefined> {
  return selectStored(sql).where("root_keys.id", "=", rootKeyId).executeTakeFirst();
}

function selectStored(sql: Sql) {
  return sql.db
    .selectFrom("root_keys")
    .innerJoin("workspaces", "workspaces.id", "root_keys.workspace_id")
    .selectAll("root_keys")
    .select("workspaces.enabled as workspace_enabled")
    .select("workspaces.requests_per_minute as workspace_requests_per_minute")
    .where("root_keys.deleted_at", "is", null);
}

/** Whether the root key has every permission and no expiry. */
export function isAdministrator({
  grants,
  enabled,
  expires_at,
}: Pick<RootKeyRow, "grants" | "enabled" | "expires_at">): boolean {
  return enabled === 1 && expires_at === null && grantsOf({ grants }).includes(ADMINISTRATOR);
}

/** The grants of a root key, in canonical form. */
export function grantsOf({ grants }: Pick<RootKeyRow, "grants">): string[] {
  return JSON.parse(grants);
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
}

export class RootKeyWriter extends RootKeyReader {
  /** Creates a root key. Only this result contains its string. */
  async issue(
    { name, grants, expiresAt, enabled = 1 }: NewRootKey,
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
      created_at: at,
    });
    return { rootKeyId, key, hash };
  }

  async insert(rootKey: Omit<RootKeyRow, "workspace_id" | "name_folded" | "updated_at" | "deleted_at">): Promise<void> {
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

  /** Whether `rootKey` is the only administrator of the workspace. Call this while the root keys are locked. */
  async isLastAdministrator(rootKey: RootKeyRow): Promise<boolean> {
    if (!isAdministrator(rootKey)) return false;
    return (await this.list()).every((other) => other.id === rootKey.id || !isAdministrator(other));
  }

  async update(
    rootKeyId: string,
    values: Pick<Updateable<RootKeyRow>, "name" | "grants" | "source" | "enabled" | "expires_at">,
    at: Instant,
  ): Promise<void> {
    await this.#set(rootKeyId, {
      ...values,
      ...(values.name !== undefined && { name_folded: fold(values.name) }),
      updated_at: at,
    });
  }

  /** Also erases stored outcomes that may contain its string. */
  async markDeleted(rootKeyId: string, at: Instant): Promise<void> {
    await this.#set(rootKeyId, { deleted_at: at });
    await eraseOutcomesOfKey(this.sql, rootKeyId);
  }

  async #set(rootKeyId: string, values: Updateable<RootKeyRow>): Promise<void> {
    await lockAccess(this.sql, this.workspaceId, "exclusive");
    await this.sql.db
      .updateTable("root_keys")
      .set(values)
      .where("id", "=", rootKeyId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }
}
