import { type CompiledQuery, sql as raw } from "kysely";
import type { KeyLocation } from "../../../../../engine/src/directory/stored.ts";
import { hashVersions } from "../../../../../engine/src/rules/imported-keys.ts";
import type { Dialect } from "../../../platform/store/dialect.ts";
import { parsed } from "../../../platform/store/json.ts";
import type { SqlBoolean } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { findBudgetChains } from "../../budgets/statements.ts";
import { planOf } from "../../plans/statements/plans.ts";
import { type DirectoryKeyRow, type PackedKey, packKey } from "../packed-key.ts";
import { limitsOf, permissionsOf, rolesOf } from "./stored-key.ts";

/**
 * All keys at these locations, deleted ones too; the directory loads its records with this.
 *
 * A location is looked up in an index that has hash and workspace, so invented keys take the same time as those of other
 * workspaces.
 */
export function findKeysAt(connection: Sql, locations: readonly KeyLocation[]): Promise<PackedKey[]> {
  const pairs = locations.map(({ hash, workspace_id }) => [hash, workspace_id] as const);
  const { values } = connection.dialect;
  return packed(
    connection,
    values.completedByPairs(`${textOf(connection)} where`, ["keys.hash", "keys.workspace_id"], pairs),
  );
}

/** The keys of these ids that are not deleted. */
export function findKeysByIds(connection: Sql, ids: readonly string[]): Promise<PackedKey[]> {
  const live = `${textOf(connection)} where keys.deleted_at is null and apis.deleted_at is null and keys.id`;
  return packed(connection, connection.dialect.values.completedByOneOf(live, ids));
}

/** The same, without those that are not found by the SHA-256 of their string alone. */
export async function findUsualKeys(connection: Sql, ids: readonly string[]): Promise<PackedKey[]> {
  const usual = `${textOf(connection)} where keys.deleted_at is null and apis.deleted_at is null
    and keys.migration_id is null and keys.hash_version = ${hashVersions.sha256} and keys.id`;
  return packed(connection, connection.dialect.values.completedByOneOf(usual, ids));
}

/** Runs a query that begins with `textOf`. */
async function packed(connection: Sql, query: CompiledQuery): Promise<PackedKey[]> {
  const { rows } = await connection.db.executeQuery<DirectoryKeyRow>(query as CompiledQuery<DirectoryKeyRow>);
  return packKeys(connection, rows);
}

/**
 * Adds the budgets of keys and of their identities, with their ancestors. No query if none has one: to plan a recursion takes
 * PostgreSQL a fifth of a look-up. What changes between the two queries invalidates the record.
 */
export async function packKeys(connection: Sql, rows: readonly DirectoryKeyRow[]): Promise<PackedKey[]> {
  const idsOf = ({ budget_id, identity }: DirectoryKeyRow) =>
    [budget_id, identity === null ? null : parsed(identity).budget_id].filter((id) => id !== null);
  const chains = await findBudgetChains(connection, [...new Set(rows.flatMap(idsOf))]);
  if (chains.size === 0) return rows.map((row) => packKey(row, null));
  return rows.map((row) => {
    const all = idsOf(row).flatMap((id) => chains.get(id) ?? []);
    const distinct = new Map(all.map((budget) => [budget.id, budget]));
    return packKey(row, all.length === 0 ? null : [...distinct.values()]);
  });
}

const texts = new WeakMap<Dialect, string>();

/** The text of `selectDirectoryKeys`, which has no parameters. It is made once: to build it takes longer than to run it. */
function textOf(connection: Sql): string {
  let text = texts.get(connection.dialect);
  if (text === undefined) {
    text = selectDirectoryKeys(connection).compile().sql;
    texts.set(connection.dialect, text);
  }
  return text;
}

/**
 * Every key with what the directory reads of it: no other columns, and no JSON of what most keys do not have. `selectKeys` takes
 * twice as long.
 */
export function selectDirectoryKeys(connection: Sql) {
  const { db, dialect } = connection;
  const { array, object } = dialect.json;
  return db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .innerJoin("workspaces", "workspaces.id", "keys.workspace_id")
    .select(["keys.id", "keys.workspace_id", "keys.api_id", "keys.identity_id", "keys.pool_id", "keys.budget_id"])
    .select(["keys.hash", "keys.hash_version", "keys.migration_id", "keys.name", "keys.meta", "keys.enabled"])
    .select(["keys.expires_at", "keys.deleted_at", "keys.allowed_ips", "keys.concurrency"])
    .select([
      raw<SqlBoolean>`case when keys.start = '' then 1 else 0 end`.as("is_unused"),
      "apis.deleted_at as api_deleted_at",
      "apis.allowed_ips as api_allowed_ips",
      "apis.own_key_access as api_own_key_access",
      raw<SqlBoolean>`coalesce(apis.own_key_derivation, 0)`.as("api_own_key_derivation"),
      "workspaces.enabled as workspace_enabled",
    ])
    .select((query) => [
      object(query.selectFrom("balances").select("plan_id").whereRef("balances.pool_id", "=", "keys.pool_id")).as(
        "balance",
      ),
      object(
        query
          .selectFrom("identities")
          .select(["identities.id", "identities.external_id", "identities.meta"])
          .select(["identities.budget_id", "identities.concurrency"])
          .select(array(limitsOf(connection, "identity_id", "identities.id")).as("ratelimits"))
          .select(planOf(connection, "identities.id").as("plan"))
          .whereRef("identities.id", "=", "keys.identity_id")
          .where("identities.deleted_at", "is", null),
      ).as("identity"),
      planOf(connection, "keys.pool_id").as("plan"),
      raw<DirectoryKeyRow["ratelimits"]>`case when exists (select 1 from ratelimits where ratelimits.key_id = keys.id)
        then ${array(limitsOf(connection, "key_id", "keys.id"))} end`.as("ratelimits"),
      raw<DirectoryKeyRow["roles"]>`case when exists (select 1 from keys_roles where keys_roles.key_id = keys.id)
        then ${array(rolesOf(connection))} end`.as("roles"),
      raw<DirectoryKeyRow["permissions"]>`case
        when exists (select 1 from keys_roles where keys_roles.key_id = keys.id)
          or exists (select 1 from keys_permissions where keys_permissions.key_id = keys.id)
        then ${array(permissionsOf(connection))} end`.as("permissions"),
    ]);
}
