import { sql as raw, type Updateable } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { StoredBalance } from "../../../../../engine/src/rules/refill.ts";
import type { Place } from "../../../platform/store/cursor.ts";
import { eraseOutcomesOfKey } from "../../../platform/store/idempotency.ts";
import { insertAll } from "../../../platform/store/insert-rows.ts";
import type { StoreRules } from "../../../platform/store/inspection.ts";
import { demandStep } from "../../../platform/store/migrate.ts";
import type { KeyRow, SqlBoolean } from "../../../platform/store/schema.ts";
import { fold } from "../../../platform/store/search.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { currentBalances, deleteAssignmentsOf } from "../../plans/statements/plans.ts";
import { DerivedKeyWriter } from "./derived-keys.ts";
import {
  countKeys,
  findNewestOfPools,
  findPlaces,
  findSortedKeyIds,
  type KeyPlace,
  type KeySelection,
  type SortedBy,
} from "./key-search.ts";
import { asStoredKey, type StoredKey, selectAnyKeys, selectKeys } from "./stored-key.ts";

/** A page of keys, and the place of the next one. */
interface KeyPage {
  keys: StoredKey[];
  next: Place | undefined;
}

/** The keys of one workspace that are not deleted and whose API is not deleted. */
export class KeyReader extends WorkspaceRows {
  async find(keyId: string): Promise<StoredKey | undefined> {
    const row = await this.#select().where("keys.id", "=", keyId).executeTakeFirst();
    return row && asStoredKey(row);
  }

  /** A key that may be deleted. */
  async findAny(keyId: string): Promise<StoredKey | undefined> {
    const row = await selectAnyKeys(this.sql)
      .where("keys.workspace_id", "=", this.workspaceId)
      .where("keys.id", "=", keyId)
      .executeTakeFirst();
    return row && asStoredKey(row);
  }

  /**
   * The credits that keys have now, by the id of the key: with due refills, and with what changed in the plans that gave them. A key
   * without an entry is unlimited; what a plan gave limits no call while the plan gives none.
   */
  async creditsOf(keys: readonly StoredKey[], now: Instant): Promise<ReadonlyMap<string, StoredBalance>> {
    const balances = keys.flatMap(({ id, balance, plan }) =>
      balance !== null && (balance.plan_id === null || plan?.credits != null) ? [{ ...balance, keyId: id }] : [],
    );
    const current = await currentBalances(this.sql, balances, now);
    return new Map(current.map(({ keyId, ...balance }) => [keyId, balance]));
  }

  /** The API of a key, deleted or not; for data that outlives the key. */
  findOwner(keyId: string): Promise<Pick<KeyRow, "id" | "api_id"> | undefined> {
    return this.sql.db
      .selectFrom("keys")
      .select(["id", "api_id"])
      .where("id", "=", keyId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
  }

  /** The same for several keys. */
  findOwners(keyIds: readonly string[]): Promise<Pick<KeyRow, "id" | "api_id">[]> {
    return this.sql.db
      .selectFrom("keys")
      .select(["id", "api_id"])
      .where("workspace_id", "=", this.workspaceId)
      .where(this.sql.dialect.values.isOneOf("id", keyIds))
      .execute();
  }

  /** What a person recognizes each of these keys by. */
  names(keyIds: readonly string[]) {
    return this.sql.db
      .selectFrom("keys")
      .innerJoin("apis", "apis.id", "keys.api_id")
      .leftJoin("identities", "identities.id", "keys.identity_id")
      .select(["keys.id", "keys.api_id", "keys.start", "keys.name", "identities.external_id"])
      .where("keys.workspace_id", "=", this.workspaceId)
      .where("keys.deleted_at", "is", null)
      .where("apis.deleted_at", "is", null)
      .where(this.sql.dialect.values.isOneOf("keys.id", keyIds))
      .execute();
  }

  /** The key with the first of these hashes that exists, except keys that are found only through their migration. */
  async findByHashes(hashes: readonly string[]): Promise<StoredKey | undefined> {
    const rows = await this.#select()
      .where(this.sql.dialect.values.isOneOf("keys.hash", hashes))
      .where("keys.migration_id", "is", null)
      .execute();
    const [first] = rows.sort((a, b) => hashes.indexOf(a.hash) - hashes.indexOf(b.hash));
    return first && asStoredKey(first);
  }

  /** The places of a page of the selected keys of an API, and the place of the next page. */
  places(
    selection: Omit<KeySelection, "workspaceId">,
    place: KeyPlace,
  ): Promise<{ places: Place[]; next: Place | undefined }> {
    return findPlaces(this.sql, { ...selection, workspaceId: this.workspaceId }, place);
  }

  /** A page of the selected keys of an API, and the place of the next page. */
  async page(selection: Omit<KeySelection, "workspaceId">, place: KeyPlace): Promise<KeyPage> {
    const { places, next } = await this.places(selection, place);
    return this.#found(selection, { ids: places.map(({ id }) => id), next });
  }

  /** The same in another order than that of creation; undefined if the keys are too many for it. */
  async sortedPage(
    selection: Omit<KeySelection, "workspaceId">,
    sortedBy: SortedBy,
    place: KeyPlace,
  ): Promise<KeyPage | undefined> {
    const all = { ...selection, workspaceId: this.workspaceId };
    const found = await findSortedKeyIds(this.sql, all, sortedBy, place);
    return found && this.#found(selection, found);
  }

  async #found(
    { deleted }: Pick<KeySelection, "deleted">,
    { ids, next }: { ids: readonly string[]; next: Place | undefined },
  ): Promise<KeyPage> {
    const rows = await selectAnyKeys(this.sql)
      .where("keys.workspace_id", "=", this.workspaceId)
      .where("keys.deleted_at", deleted ? "is not" : "is", null)
      .where(this.sql.dialect.values.isOneOf("keys.id", ids))
      .execute();
    const keys = new Map(rows.map((row) => [row.id, asStoredKey(row)]));
    return { keys: ids.flatMap((id) => keys.get(id) ?? []), next };
  }

  /** The newest selected key of each pool of these keys, of those that existed at a time. */
  newestOfPools(
    selection: Omit<KeySelection, "workspaceId">,
    keyIds: readonly string[],
    at: Instant,
  ): Promise<string[]> {
    return findNewestOfPools(this.sql, { ...selection, workspaceId: this.workspaceId }, keyIds, at);
  }

  /** The number of selected keys of an API, and whether all its keys were examined. */
  count(selection: Omit<KeySelection, "workspaceId">): Promise<{ count: number; isComplete: boolean }> {
    return countKeys(this.sql, { ...selection, workspaceId: this.workspaceId });
  }

  #select() {
    return selectKeys(this.sql).where("keys.workspace_id", "=", this.workspaceId);
  }
}

/** What decides whether a key can be restored. */
export type DeletableKey = Pick<
  KeyRow,
  "id" | "api_id" | "pool_id" | "budget_id" | "hash" | "enabled" | "leaked_at" | "deleted_at"
> & {
  api_deleted_at: number | null;
  external_id: string | null;
};

/** A key of another system, to be inserted. */
export type ImportedKey = Omit<
  KeyRow,
  "workspace_id" | "name_folded" | "recoverable" | "updated_at" | "deleted_at" | "leaked_at" | "deleted_once_expired"
> & {
  recoverable: 0;
};

const importedTypes = {
  id: "text",
  workspace_id: "text",
  api_id: "text",
  identity_id: "text",
  budget_id: "text",
  concurrency: "text",
  allowed_ips: "text",
  pool_id: "text",
  hash: "text",
  hash_version: "bigint",
  start: "text",
  name: "text",
  name_folded: "text",
  meta: "text",
  enabled: "bigint",
  recoverable: "bigint",
  expires_at: "bigint",
  created_at: "bigint",
  migration_id: "text",
} as const satisfies Record<keyof ImportedKey | "name_folded" | "workspace_id", "text" | "bigint">;

/** One is enough, unless a limit was lowered or several keys expired by themselves. */
const ENDED_PER_CALL_MAX = 20;

function foldedName(name: string | null): string | null {
  return name === null ? null : fold(name);
}

export class KeyWriter extends KeyReader {
  static readonly writes = true;

  /** Whether these addresses can be stored: programs of earlier releases let every address use a key. */
  async accepts(allowedIps: readonly string[] | null | undefined): Promise<boolean> {
    return !allowedIps || allowedIps.length === 0 || demandStep(this.sql, "040-key-attributes");
  }

  async insert(
    key: Omit<
      KeyRow,
      | "workspace_id"
      | "name_folded"
      | "updated_at"
      | "deleted_at"
      | "migration_id"
      | "leaked_at"
      | "deleted_once_expired"
    >,
  ): Promise<void> {
    this.#count(key.meta);
    this.#count(key.allowed_ips);
    await this.sql.db
      .insertInto("keys")
      .values({ ...key, name_folded: foldedName(key.name), workspace_id: this.workspaceId, deleted_once_expired: 0 })
      .execute();
  }

  /** Those of these hashes that a key of the workspace has or had: deleted and purged keys included. */
  async findExistingHashes(hashes: readonly string[]): Promise<Set<string>> {
    const of = (table: "keys" | "purged_keys") =>
      this.sql.db
        .selectFrom(table)
        .select("hash")
        .where("workspace_id", "=", this.workspaceId)
        .where(this.sql.dialect.values.isOneOf("hash", hashes))
        .execute();
    return new Set([...(await of("keys")), ...(await of("purged_keys"))].map(({ hash }) => hash));
  }

  /** Inserts keys, except those whose hash exists; returns the inserted ids. */
  async insertImported(keys: readonly ImportedKey[]): Promise<Set<string>> {
    for (const { meta, allowed_ips } of keys) {
      this.#count(meta);
      this.#count(allowed_ips);
    }
    const ids = keys.map(({ id }) => id);
    const common = { workspace_id: this.workspaceId };
    const rows = keys.map((key) => ({ ...key, ...common, name_folded: foldedName(key.name) }));
    const count = await insertAll(this.sql, "keys", importedTypes, rows, ["hash", "workspace_id"]);
    if (count === keys.length) return new Set(ids);
    const { db, dialect } = this.sql;
    const inserted = await db.selectFrom("keys").select("id").where(dialect.values.isOneOf("id", ids)).execute();
    return new Set(inserted.map(({ id }) => id));
  }

  /** Finds a key and locks it until the transaction ends. */
  async findForUpdate(keyId: string): Promise<StoredKey | undefined> {
    await this.lockRow("keys", keyId);
    return this.find(keyId);
  }

  /**
   * Finds a key that may be deleted, or whose API may be, and locks it until the transaction ends; undefined if retention is
   * about to forget it.
   */
  async findAnyForUpdate(keyId: string): Promise<DeletableKey | undefined> {
    await this.lockRow("keys", keyId);
    return this.sql.db
      .selectFrom("keys")
      .innerJoin("apis", "apis.id", "keys.api_id")
      .leftJoin("identities", (join) =>
        join.onRef("identities.id", "=", "keys.identity_id").on("identities.deleted_at", "is", null),
      )
      .leftJoin("purged_keys", (join) =>
        join.onRef("purged_keys.hash", "=", "keys.hash").onRef("purged_keys.workspace_id", "=", "keys.workspace_id"),
      )
      .select([
        "keys.id",
        "keys.api_id",
        "keys.pool_id",
        "keys.budget_id",
        "keys.hash",
        "keys.enabled",
        "keys.leaked_at",
      ])
      .select(["keys.deleted_at", "apis.deleted_at as api_deleted_at", "identities.external_id"])
      .where("keys.id", "=", keyId)
      .where("keys.workspace_id", "=", this.workspaceId)
      .where("purged_keys.hash", "is", null)
      .executeTakeFirst();
  }

  /** It stays until it is deleted again, although it may have been one that is deleted once it expired. */
  async restore(keyId: string, enabled: SqlBoolean, at: Instant): Promise<void> {
    await this.update(keyId, { deleted_at: null, deleted_once_expired: 0, enabled, updated_at: at });
    this.restoredRows.set("keys", (this.restoredRows.get("keys") ?? 0) + 1);
  }

  async update(keyId: string, values: Omit<Updateable<KeyRow>, "name_folded">): Promise<void> {
    if (values.meta !== undefined) this.#count(values.meta, await this.metadataLength("keys", keyId));
    if (values.allowed_ips !== undefined) this.#count(values.allowed_ips);
    await this.sql.db
      .updateTable("keys")
      .set({ ...values, ...(values.name !== undefined && { name_folded: foldedName(values.name) }) })
      .where("id", "=", keyId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }

  #count(written: string | null, former = 0): void {
    this.metadataBytes += Math.max(0, (written === null ? 0 : Buffer.byteLength(written)) - former);
  }

  async markDeleted(keyId: string, at: Instant): Promise<void> {
    await this.update(keyId, { deleted_at: at });
    await eraseOutcomesOfKey(this.sql, keyId);
  }

  /**
   * Deletes those keys of an owner that expired and that retention would delete later, except for the `kept` that expired
   * last. Returns their ids, at most `ENDED_PER_CALL_MAX`. The owner must be locked.
   */
  async deleteEnded(
    { apiId, identityId }: { apiId: string; identityId: string },
    kept: number,
    now: Instant,
  ): Promise<string[]> {
    const ended = await this.sql.db
      .selectFrom("keys")
      .select("id")
      .where("identity_id", "=", identityId)
      // An expression, so that the index on identities leads to the keys of the owner, not the longer one on APIs.
      .where(raw<boolean>`api_id || '' = ${apiId}`)
      .where("workspace_id", "=", this.workspaceId)
      .where("deleted_at", "is", null)
      .where("deleted_once_expired", "=", 1)
      .where("expires_at", "<=", now)
      .orderBy("expires_at", "desc")
      .orderBy("id")
      .limit(ENDED_PER_CALL_MAX)
      .offset(kept)
      .execute();
    for (const { id } of ended) await this.markDeleted(id, now);
    return ended.map(({ id }) => id);
  }

  /**
   * Deletes the key with its own rows, and the balances of its pool if no other key uses it. Its hash stays if the workspace
   * has an upstream verifier, which would create the key again.
   */
  async erase(keyId: string, poolId: string, at: Instant): Promise<void> {
    await eraseOutcomesOfKey(this.sql, keyId);
    await this.sql.db
      .insertInto("purged_keys")
      .columns(["hash", "workspace_id", "purged_at"])
      .expression((query) =>
        query
          .selectFrom("keys")
          .select(["keys.hash", "keys.workspace_id"])
          .select(({ val }) => raw<number>`cast(${val(at)} as bigint)`.as("purged_at"))
          .where("keys.id", "=", keyId)
          .where("keys.workspace_id", "=", this.workspaceId)
          .where(({ exists, selectFrom }) =>
            exists(
              selectFrom("apis")
                .select("apis.id")
                .where("apis.workspace_id", "=", this.workspaceId)
                .where("apis.upstream", "is not", null),
            ),
          ),
      )
      .onConflict((conflict) => conflict.columns(["hash", "workspace_id"]).doNothing())
      .execute();
    await this.sql.db.deleteFrom("keys").where("id", "=", keyId).where("workspace_id", "=", this.workspaceId).execute();
    await deleteAssignmentsOf(this.sql, [poolId]);
    await new DerivedKeyWriter(this.sql, this.workspaceId).erase(keyId);
    await this.sql.db
      .deleteFrom("balances")
      .where(({ or, eb }) => or([eb("pool_id", "=", poolId), eb("slots_of", "=", poolId)]))
      .where("workspace_id", "=", this.workspaceId)
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom("keys").select("keys.id").where("keys.pool_id", "=", poolId))),
      )
      .execute();
  }
}

/** What holds for all keys. */
export const keyRules: StoreRules = {
  "every key belongs to the workspace of its API": `select count(*) as count from keys join apis on apis.id = keys.api_id
    where apis.workspace_id <> keys.workspace_id`,
  "every recoverable key has its encrypted string": `select count(*) as count from keys where recoverable = 1
    and deleted_at is null and not exists (select 1 from vault_secrets where key_id = keys.id)`,
};
