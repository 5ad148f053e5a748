import { sql as raw } from "kysely";
import type { KeyLocation } from "../../../../../engine/src/directory/stored.ts";
import { hashVersions } from "../../../../../engine/src/rules/imported-keys.ts";
import type { CompletedQuery, Dialect } from "../../../platform/store/dialect.ts";
import { listsOf } from "../../../platform/store/lists.ts";
import type { SqlBoolean } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { findBudgetChains } from "../../budgets/statements.ts";
import { planOf } from "../../plans/statements/plans.ts";
import { type DirectoryKeyRow, ownBudgets, type PackedKey } from "../packed-key.ts";
import { limitsOf, permissionsOf, rolesOf } from "./stored-key.ts";

/**
 * All keys at these locations, deleted ones too; the directory loads its records with this.
 *
 * A location is looked up in an index that has hash and workspace, so invented keys take the same time as those of other
 * workspaces.
 */
export function findKeysAt(connection: Sql, locations: readonly KeyLocation[]): Promise<PackedKey[]> {
  const pairs = locations.map(({ hash, workspace_id }) => [hash, workspace_id] as const);
  return packed(connection, queriesOf(connection).at, pairs);
}

/** The keys of these ids that are not deleted. */
export function findKeysByIds(connection: Sql, ids: readonly string[]): Promise<PackedKey[]> {
  return packed(connection, queriesOf(connection).byIds, ids);
}

/** The same, without those that are not found by the SHA-256 of their string alone. */
export function findUsualKeys(connection: Sql, ids: readonly string[]): Promise<PackedKey[]> {
  return packed(connection, queriesOf(connection).usual, ids);
}

/**
 * Runs a query, and adds the budgets of keys and of their identities, with their ancestors. No second query if none has one: to
 * plan a recursion takes PostgreSQL a fifth of a look-up. What changes between the two queries invalidates the record.
 */
async function packed<Value>(
  connection: Sql,
  query: CompletedQuery<Value>,
  values: readonly Value[],
): Promise<PackedKey[]> {
  const rows = await listsOf<PackedKey, Value>(connection, query, values);
  const own = [...new Set(rows.flatMap(ownBudgets))];
  if (own.length === 0) return rows;
  const chains = await findBudgetChains(connection, own);
  return rows.map((row) => {
    const all = ownBudgets(row).flatMap((id) => chains.get(id) ?? []);
    const distinct = new Map(all.map((budget) => [budget.id, budget]));
    return all.length === 0 ? row : ([...row, [...distinct.values()]] as unknown as PackedKey);
  });
}

interface KeyQueries {
  readonly at: CompletedQuery<readonly [string, string]>;
  readonly byIds: CompletedQuery<string>;
  readonly usual: CompletedQuery<string>;
}

const queries = new WeakMap<Dialect, KeyQueries>();

/** The queries of keys, with `selectDirectoryKeys`. They are made once: to build one takes longer than to run it. */
function queriesOf(connection: Sql): KeyQueries {
  let made = queries.get(connection.dialect);
  if (made === undefined) {
    const { values } = connection.dialect;
    const text = selectDirectoryKeys(connection).compile().sql;
    const live = "keys.deleted_at is null and apis.deleted_at is null";
    const usual = `keys.migration_id is null and keys.hash_version = ${hashVersions.sha256}`;
    made = {
      at: values.completedByPairs(`${text} where`, ["keys.hash", "keys.workspace_id"]),
      byIds: values.completedByOneOf(`${text} where ${live} and keys.id`),
      usual: values.completedByOneOf(`${text} where ${live} and ${usual} and keys.id`),
    };
    queries.set(connection.dialect, made);
  }
  return made;
}

/**
 * Every key with what the directory reads of it, its columns in the order of `packedColumns`: no other ones, and no JSON of what
 * most keys do not have. `selectKeys` takes twice as long.
 */
export function selectDirectoryKeys(connection: Sql) {
  const { db, dialect } = connection;
  const { array, object } = dialect.json;
  return db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .innerJoin("workspaces", "workspaces.id", "keys.workspace_id")
    .select(["keys.id", "keys.workspace_id", "keys.api_id", "keys.pool_id", "keys.identity_id", "keys.budget_id"])
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
