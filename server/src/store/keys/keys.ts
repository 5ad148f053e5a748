import { CompiledQuery, type Updateable } from "kysely";
import type { Instant } from "../../clock/clock.ts";
import type { Place } from "../../rules/cursor.ts";
import { always, inputList, inputRows, isOneOf, jsonArray, jsonObject, parsed } from "../json.ts";
import type { BalanceRow, Flag, IdentityRow, KeyRow, RatelimitRow } from "../schema.ts";
import { isFrom } from "../search.ts";
import type { Sql } from "../store.ts";

export type StoredRatelimit = Pick<RatelimitRow, "id" | "name" | "limit" | "duration" | "auto_apply">;
export type StoredIdentity = Pick<IdentityRow, "id" | "external_id" | "meta">;
export type StoredBalance = Omit<BalanceRow, "pool_id" | "workspace_id">;

/** A key with everything that hangs on it, as one statement reads it. */
export interface StoredKey extends KeyRow {
  last_used_at: number | null;
  api_prefix: string | null;
  api_byte_length: number | null;
  /** JSON array of CIDRs, or null. */
  api_allowed_ips: string | null;
  workspace_enabled: Flag;
  balance: StoredBalance | null;
  identity: (StoredIdentity & { ratelimits: StoredRatelimit[] }) | null;
  ratelimits: StoredRatelimit[];
  /** Role names in order. */
  roles: string[];
  /** Effective permissions, direct and through roles, each slug once, in order. */
  permissions: string[];
}

/** Every living key of a living API, with all that belongs to it. The one place that says what "living" means. */
function selectKeys(connection: Sql) {
  const limits = (column: "key_id" | "identity_id", of: "keys.id" | "identities.id") =>
    connection.db
      .selectFrom("ratelimits")
      .select(["ratelimits.id", "ratelimits.name", "ratelimits.limit", "ratelimits.duration", "ratelimits.auto_apply"])
      .whereRef(`ratelimits.${column}`, "=", of as never)
      .orderBy("ratelimits.name");
  return connection.db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .innerJoin("workspaces", "workspaces.id", "keys.workspace_id")
    .leftJoin("key_usage", "key_usage.key_id", "keys.id")
    .where("keys.deleted_at", "is", null)
    .where("apis.deleted_at", "is", null)
    .selectAll("keys")
    .select([
      "key_usage.last_used_at",
      "apis.prefix as api_prefix",
      "apis.byte_length as api_byte_length",
      "apis.allowed_ips as api_allowed_ips",
      "workspaces.enabled as workspace_enabled",
    ])
    .select((query) => [
      jsonObject(
        connection,
        query
          .selectFrom("balances")
          .select(["remaining", "refill_interval", "refill_amount", "refill_day", "refill_due_at"])
          .whereRef("balances.pool_id", "=", "keys.pool_id"),
      ).as("balance"),
      jsonObject(
        connection,
        query
          .selectFrom("identities")
          .select(["identities.id", "identities.external_id", "identities.meta"])
          .select(jsonArray(connection, limits("identity_id", "identities.id")).as("ratelimits"))
          .whereRef("identities.id", "=", "keys.identity_id")
          .where("identities.deleted_at", "is", null),
      ).as("identity"),
      jsonArray(connection, limits("key_id", "keys.id")).as("ratelimits"),
      jsonArray(
        connection,
        query
          .selectFrom("keys_roles")
          .innerJoin("roles", "roles.id", "keys_roles.role_id")
          .select("roles.name")
          .whereRef("keys_roles.key_id", "=", "keys.id")
          .orderBy("roles.name"),
      ).as("roles"),
      jsonArray(
        connection,
        query
          .selectFrom("permissions")
          .select("permissions.slug")
          .where("permissions.id", "in", (inner) =>
            inner
              .selectFrom("keys_permissions")
              .select("keys_permissions.permission_id")
              .whereRef("keys_permissions.key_id", "=", "keys.id")
              .union(
                inner
                  .selectFrom("keys_roles")
                  .innerJoin("roles_permissions", "roles_permissions.role_id", "keys_roles.role_id")
                  .select("roles_permissions.permission_id")
                  .whereRef("keys_roles.key_id", "=", "keys.id"),
              ),
          )
          .orderBy("permissions.slug"),
      ).as("permissions"),
    ]);
}

type SelectedKey = Awaited<ReturnType<ReturnType<typeof selectKeys>["execute"]>>[number];

function asStoredKey(row: SelectedKey): StoredKey {
  const identity = parsed(row.identity);
  return {
    ...row,
    balance: parsed(row.balance),
    identity: identity && { ...identity, ratelimits: parsed(identity.ratelimits) },
    ratelimits: parsed(row.ratelimits),
    roles: parsed(row.roles).map(({ name }) => name),
    permissions: parsed(row.permissions).map(({ slug }) => slug),
  };
}

/** What is still known of a key that is deleted, or whose API is: whom its verifications are counted for. */
export interface DeletedKey
  extends Pick<KeyRow, "id" | "workspace_id" | "api_id" | "identity_id" | "hash" | "migration_id"> {
  deleted: true;
}

/** Where a key is looked for. */
export type KeyLocation = Pick<KeyRow, "hash" | "workspace_id">;

/**
 * All keys at one of these places: what the directory fills itself from.
 *
 * Whether there is any is asked first, by a query that costs a fraction of the one that reads a key, and is written out
 * because building it would cost more than running it: invented keys end there, and so do those of other workspaces,
 * which must take as much work as keys that never were.
 */
export async function findKeysAt(connection: Sql, places: readonly KeyLocation[]): Promise<(StoredKey | DeletedKey)[]> {
  const { db, dialect } = connection;
  const wanted = new Set(places.map(({ hash, workspace_id }) => `${hash} ${workspace_id}`));
  const asked = [...new Set(places.map(({ hash }) => hash))];
  const present = await db.executeQuery<KeyLocation>(
    dialect === "postgres"
      ? CompiledQuery.raw("select hash, workspace_id from keys where hash = any($1::text[])", [asked])
      : CompiledQuery.raw("select hash, workspace_id from keys where hash in (select value from json_each(?))", [
          JSON.stringify(asked),
        ]),
  );
  const hashes = new Set(
    present.rows.filter(({ hash, workspace_id }) => wanted.has(`${hash} ${workspace_id}`)).map(({ hash }) => hash),
  );
  if (hashes.size === 0) return [];

  const rows = await selectKeys(connection)
    .where(isOneOf(connection, "keys.hash", [...hashes]))
    .execute();
  const living = rows.map(asStoredKey);
  if (living.length === present.rows.filter(({ hash }) => hashes.has(hash)).length) return living;
  const deleted = await db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .select(["keys.id", "keys.workspace_id", "keys.api_id", "keys.identity_id", "keys.hash", "keys.migration_id"])
    .where(isOneOf(connection, "keys.hash", [...hashes]))
    .where(({ or, eb }) => or([eb("keys.deleted_at", "is not", null), eb("apis.deleted_at", "is not", null)]))
    .execute();
  return [...living, ...deleted.map((key) => ({ ...key, deleted: true as const }))];
}

/** When keys were last used, as far as they are there. A time that is earlier than the one noted changes nothing. */
export async function recordKeyUses(
  connection: Sql,
  uses: readonly { readonly keyId: string; readonly at: number }[],
): Promise<void> {
  // In one order everywhere: two nodes that note the same keys must not wait for each other.
  const rows = uses
    .map(({ keyId, at }) => ({ key_id: keyId, last_used_at: at }))
    .sort((a, b) => (a.key_id < b.key_id ? -1 : 1));
  const input = inputRows(connection, { key_id: "text", last_used_at: "bigint" }, rows);
  await connection.db
    .insertInto("key_usage")
    .columns(["key_id", "workspace_id", "last_used_at"])
    .expression((query) =>
      query
        .selectFrom(input)
        .innerJoin("keys", "keys.id", "input.key_id")
        .select(["input.key_id", "keys.workspace_id", "input.last_used_at"])
        .where(always),
    )
    .onConflict((conflict) =>
      conflict
        .column("key_id")
        .doUpdateSet(({ ref }) => ({ last_used_at: ref("excluded.last_used_at") }))
        .whereRef("excluded.last_used_at", ">", "key_usage.last_used_at"),
    )
    .execute();
}

export interface KeyPageOptions {
  apiId: string;
  /** Only keys of the living identity with this external id. */
  externalId?: string | undefined;
  /** The first place of the page; undefined: the beginning. */
  from?: Place | undefined;
  limit: number;
}

/** The living keys of one workspace. */
export class KeyReader {
  protected readonly sql: Sql;
  protected readonly workspaceId: string;

  constructor(sql: Sql, workspaceId: string) {
    this.sql = sql;
    this.workspaceId = workspaceId;
  }

  async find(keyId: string): Promise<StoredKey | undefined> {
    const row = await this.#select().where("keys.id", "=", keyId).executeTakeFirst();
    return row && asStoredKey(row);
  }

  /** Whose key it is or was; for what outlives it. */
  findOwner(keyId: string): Promise<Pick<KeyRow, "id" | "api_id"> | undefined> {
    return this.sql.db
      .selectFrom("keys")
      .select(["id", "api_id"])
      .where("id", "=", keyId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
  }

  /** The key with one of these hashes that is found by itself, the first of them before the next. */
  async findByHashes(hashes: readonly string[]): Promise<StoredKey | undefined> {
    const rows = await this.#select()
      .where(isOneOf(this.sql, "keys.hash", hashes))
      .where("keys.migration_id", "is", null)
      .execute();
    const [first] = rows.sort((a, b) => hashes.indexOf(a.hash) - hashes.indexOf(b.hash));
    return first && asStoredKey(first);
  }

  /** Up to `limit` keys in the order of their creation, from a place on. */
  async page({ apiId, externalId, from, limit }: KeyPageOptions): Promise<StoredKey[]> {
    let query = this.#select()
      .where("keys.api_id", "=", apiId)
      .orderBy("keys.created_at")
      .orderBy("keys.id")
      .limit(limit);
    if (from !== undefined) query = query.where(({ ref }) => isFrom(from, ref("keys.created_at"), ref("keys.id")));
    if (externalId !== undefined) {
      query = query.where(
        "keys.identity_id",
        "=",
        this.sql.db
          .selectFrom("identities")
          .select("id")
          .where("workspace_id", "=", this.workspaceId)
          .where("external_id", "=", externalId)
          .where("deleted_at", "is", null),
      );
    }
    return (await query.execute()).map(asStoredKey);
  }

  #select() {
    return selectKeys(this.sql).where("keys.workspace_id", "=", this.workspaceId);
  }
}

/** A key that was made elsewhere, on its way in. */
export type ImportedKey = Omit<KeyRow, "workspace_id" | "recoverable" | "updated_at" | "deleted_at"> & {
  recoverable: 0;
};

const importedTypes = {
  id: "text",
  api_id: "text",
  identity_id: "text",
  pool_id: "text",
  hash: "text",
  hash_version: "bigint",
  start: "text",
  name: "text",
  meta: "text",
  enabled: "bigint",
  recoverable: "bigint",
  expires_at: "bigint",
  created_at: "bigint",
  migration_id: "text",
} as const satisfies Record<keyof ImportedKey, "text" | "bigint">;

const importedColumns = Object.keys(importedTypes) as (keyof ImportedKey)[];

/** Each goes into several indexes in no order. So many take some tenths of a millisecond, after which others may have a turn. */
const IMPORTED_PER_STATEMENT = 16;

export class KeyWriter extends KeyReader {
  async insert(key: Omit<KeyRow, "workspace_id" | "updated_at" | "deleted_at" | "migration_id">): Promise<void> {
    await this.sql.db
      .insertInto("keys")
      .values({ ...key, workspace_id: this.workspaceId })
      .execute();
  }

  /** Those of these hashes that a key of the workspace has, a deleted one too. */
  async takenHashes(hashes: readonly string[]): Promise<Set<string>> {
    const rows = await this.sql.db
      .selectFrom("keys")
      .select("hash")
      .where("workspace_id", "=", this.workspaceId)
      .where(isOneOf(this.sql, "hash", hashes))
      .execute();
    return new Set(rows.map(({ hash }) => hash));
  }

  /** Makes many keys, except where the hash is taken; gives the ids of those that it made. */
  async insertImported(keys: readonly ImportedKey[]): Promise<Set<string>> {
    const made = new Set<string>();
    for (let i = 0; i < keys.length; i += IMPORTED_PER_STATEMENT) {
      for (const id of await this.#insertImported(keys.slice(i, i + IMPORTED_PER_STATEMENT))) made.add(id);
    }
    return made;
  }

  async #insertImported(keys: readonly ImportedKey[]): Promise<string[]> {
    const inserted = await this.sql.db
      .insertInto("keys")
      .columns([...importedColumns, "workspace_id"])
      .expression((query) =>
        query
          .selectFrom(inputRows(this.sql, importedTypes, keys))
          .select(importedColumns)
          .select(({ val }) => val(this.workspaceId).as("workspace_id"))
          .where(always),
      )
      .onConflict((conflict) => conflict.columns(["hash", "workspace_id"]).doNothing())
      .returning("id")
      .execute();
    return inserted.map(({ id }) => id);
  }

  /** Gives keys direct permissions, many at once. */
  async linkPermissions(links: readonly { key_id: string; permission_id: string }[]): Promise<void> {
    if (links.length === 0) return;
    const input = inputRows(this.sql, { key_id: "text", permission_id: "text" }, links);
    await this.sql.db
      .insertInto("keys_permissions")
      .columns(["key_id", "permission_id", "workspace_id"])
      .expression((query) =>
        query
          .selectFrom(input)
          .select(["key_id", "permission_id"])
          .select(({ val }) => val(this.workspaceId).as("workspace_id")),
      )
      .execute();
  }

  /** Gives keys roles, many at once. */
  async linkRoles(links: readonly { key_id: string; role_id: string }[]): Promise<void> {
    if (links.length === 0) return;
    const input = inputRows(this.sql, { key_id: "text", role_id: "text" }, links);
    await this.sql.db
      .insertInto("keys_roles")
      .columns(["key_id", "role_id", "workspace_id"])
      .expression((query) =>
        query
          .selectFrom(input)
          .select(["key_id", "role_id"])
          .select(({ val }) => val(this.workspaceId).as("workspace_id")),
      )
      .execute();
  }

  /**
   * The key, held until the transaction ends: two changes of one key wait for each other from here to their commits.
   * On SQLite every writer waits anyway.
   */
  async findForUpdate(keyId: string): Promise<StoredKey | undefined> {
    if (this.sql.dialect === "postgres") {
      await this.sql.db
        .selectFrom("keys")
        .select("id")
        .where("id", "=", keyId)
        .where("workspace_id", "=", this.workspaceId)
        .forUpdate()
        .execute();
    }
    return this.find(keyId);
  }

  async update(keyId: string, values: Updateable<KeyRow>): Promise<void> {
    await this.sql.db
      .updateTable("keys")
      .set(values)
      .where("id", "=", keyId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }

  async markDeleted(keyId: string, at: Instant): Promise<void> {
    await this.update(keyId, { deleted_at: at });
    await this.#forgetOutcomes(keyId);
  }

  /** Outcomes of calls about the key, which may hold its string. */
  async #forgetOutcomes(keyId: string): Promise<void> {
    await this.sql.db.deleteFrom("idempotency_records").where("key_id", "=", keyId).execute();
  }

  /** Removes the key and what is its own; its pool's balance goes when no other key draws on it. */
  async erase(keyId: string, poolId: string): Promise<void> {
    await this.#forgetOutcomes(keyId);
    await this.sql.db.deleteFrom("keys").where("id", "=", keyId).where("workspace_id", "=", this.workspaceId).execute();
    await this.sql.db
      .deleteFrom("balances")
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.workspaceId)
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom("keys").select("keys.id").where("keys.pool_id", "=", poolId))),
      )
      .execute();
  }

  /** Makes these the key's direct permissions and no others. */
  async setPermissions(keyId: string, permissionIds: readonly string[]): Promise<void> {
    await this.sql.db
      .deleteFrom("keys_permissions")
      .where("key_id", "=", keyId)
      .where("permission_id", "not in", inputList(this.sql, permissionIds))
      .execute();
    await this.addPermissions(keyId, permissionIds);
  }

  /** Gives the key these permissions directly, if it does not have them already. */
  async addPermissions(keyId: string, permissionIds: readonly string[]): Promise<void> {
    if (permissionIds.length === 0) return;
    await this.sql.db
      .insertInto("keys_permissions")
      .columns(["workspace_id", "key_id", "permission_id"])
      .expression((query) =>
        query
          .selectFrom("permissions")
          .select(({ val, ref }) => [
            val(this.workspaceId).as("workspace_id"),
            val(keyId).as("key_id"),
            ref("permissions.id").as("permission_id"),
          ])
          .where("permissions.workspace_id", "=", this.workspaceId)
          .where("permissions.id", "in", inputList(this.sql, permissionIds)),
      )
      .onConflict((conflict) => conflict.columns(["key_id", "permission_id"]).doNothing())
      .execute();
  }

  /** Takes these of its direct permissions from the key. */
  async removePermissions(keyId: string, permissionIds: readonly string[]): Promise<void> {
    await this.sql.db
      .deleteFrom("keys_permissions")
      .where("key_id", "=", keyId)
      .where("permission_id", "in", inputList(this.sql, permissionIds))
      .execute();
  }

  /** Makes these the key's roles and no others. */
  async setRoles(keyId: string, roleIds: readonly string[]): Promise<void> {
    await this.sql.db
      .deleteFrom("keys_roles")
      .where("key_id", "=", keyId)
      .where("role_id", "not in", inputList(this.sql, roleIds))
      .execute();
    await this.addRoles(keyId, roleIds);
  }

  /** Gives the key these roles, if it does not have them already. */
  async addRoles(keyId: string, roleIds: readonly string[]): Promise<void> {
    if (roleIds.length === 0) return;
    await this.sql.db
      .insertInto("keys_roles")
      .columns(["workspace_id", "key_id", "role_id"])
      .expression((query) =>
        query
          .selectFrom("roles")
          .select(({ val, ref }) => [
            val(this.workspaceId).as("workspace_id"),
            val(keyId).as("key_id"),
            ref("roles.id").as("role_id"),
          ])
          .where("roles.workspace_id", "=", this.workspaceId)
          .where("roles.id", "in", inputList(this.sql, roleIds)),
      )
      .onConflict((conflict) => conflict.columns(["key_id", "role_id"]).doNothing())
      .execute();
  }

  /** Takes these roles from the key. */
  async removeRoles(keyId: string, roleIds: readonly string[]): Promise<void> {
    await this.sql.db
      .deleteFrom("keys_roles")
      .where("key_id", "=", keyId)
      .where("role_id", "in", inputList(this.sql, roleIds))
      .execute();
  }

  /** Gives one key the direct permissions and roles of another. */
  async copyGrants(from: string, to: string): Promise<void> {
    await this.sql.db
      .insertInto("keys_permissions")
      .columns(["workspace_id", "key_id", "permission_id"])
      .expression((query) =>
        query
          .selectFrom("keys_permissions")
          .select(({ val, ref }) => [
            ref("workspace_id").as("workspace_id"),
            val(to).as("key_id"),
            ref("permission_id").as("permission_id"),
          ])
          .where("key_id", "=", from)
          .where("workspace_id", "=", this.workspaceId),
      )
      .execute();
    await this.sql.db
      .insertInto("keys_roles")
      .columns(["workspace_id", "key_id", "role_id"])
      .expression((query) =>
        query
          .selectFrom("keys_roles")
          .select(({ val, ref }) => [
            ref("workspace_id").as("workspace_id"),
            val(to).as("key_id"),
            ref("role_id").as("role_id"),
          ])
          .where("key_id", "=", from)
          .where("workspace_id", "=", this.workspaceId),
      )
      .execute();
  }
}
