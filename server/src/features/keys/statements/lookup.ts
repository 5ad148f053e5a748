import type { DeletedKey, DirectoryBudget, KeyLocation } from "../../../../../engine/src/directory/stored.ts";
import type { Dialect } from "../../../platform/store/dialect.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { findBudgetChains } from "../../budgets/statements.ts";
import { asStoredKey, type SelectedKey, type StoredKey, selectKeys } from "./stored-key.ts";

/**
 * All keys at these locations; the directory loads its records with this.
 *
 * A cheap query first checks which hashes exist. Invented keys end there, and so do keys of other workspaces, which must
 * take the same time. The text of each query is made once, because building it would cost more than running it.
 */
export async function findKeysAt(
  connection: Sql,
  locations: readonly KeyLocation[],
): Promise<(FoundKey | DeletedKey)[]> {
  const { db, dialect } = connection;
  const wanted = new Set(locations.map(({ hash, workspace_id }) => `${hash} ${workspace_id}`));
  const candidates = [...new Set(locations.map(({ hash }) => hash))];
  const existing = await db.executeQuery<KeyLocation>(
    dialect.values.completedByOneOf("select hash, workspace_id from keys where hash", candidates),
  );
  const hashes = new Set(
    existing.rows.filter(({ hash, workspace_id }) => wanted.has(`${hash} ${workspace_id}`)).map(({ hash }) => hash),
  );
  if (hashes.size === 0) return [];

  const { rows } = await db.executeQuery<SelectedKey>(
    dialect.values.completedByOneOf(`${queryOf(connection)} and keys.hash`, [...hashes]),
  );
  const active = await withBudgets(connection, rows.map(asStoredKey));
  if (active.length === existing.rows.filter(({ hash }) => hashes.has(hash)).length) return active;
  const deleted = await db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .select(["keys.id", "keys.workspace_id", "keys.api_id", "keys.identity_id", "keys.hash", "keys.migration_id"])
    .where(connection.dialect.values.isOneOf("keys.hash", [...hashes]))
    .where(({ or, eb }) => or([eb("keys.deleted_at", "is not", null), eb("apis.deleted_at", "is not", null)]))
    .execute();
  return [...active, ...deleted.map((key) => ({ ...key, deleted: true as const }))];
}

/** The keys of these ids that are not deleted. */
export async function findKeysByIds(connection: Sql, ids: readonly string[]): Promise<FoundKey[]> {
  const { rows } = await connection.db.executeQuery<SelectedKey>(
    connection.dialect.values.completedByOneOf(`${queryOf(connection)} and keys.id`, [...ids]),
  );
  return withBudgets(connection, rows.map(asStoredKey));
}

/** A key with the budgets that it spends from. */
type FoundKey = StoredKey & { budgets: readonly DirectoryBudget[] };

const NO_BUDGETS: readonly DirectoryBudget[] = [];

/**
 * Adds the budgets of keys and of their identities, with their ancestors. No query if none has one: to plan a recursion takes
 * PostgreSQL a fifth of a look-up. What changes between the two queries invalidates the record.
 */
async function withBudgets(connection: Sql, keys: readonly StoredKey[]): Promise<FoundKey[]> {
  const idsOf = ({ budget_id, identity }: StoredKey) =>
    [budget_id, identity?.budget_id ?? null].filter((id) => id !== null);
  const chains = await findBudgetChains(connection, [...new Set(keys.flatMap(idsOf))]);
  return keys.map((key) => {
    const all = idsOf(key).flatMap((id) => chains.get(id) ?? []);
    const distinct = new Map(all.map((budget) => [budget.id, budget]));
    return Object.assign(key, { budgets: all.length === 0 ? NO_BUDGETS : [...distinct.values()] });
  });
}

const queries = new WeakMap<Dialect, string>();

/** The text of `selectKeys`, which ends in its conditions and has no parameters. */
function queryOf(connection: Sql): string {
  let text = queries.get(connection.dialect);
  if (text === undefined) {
    text = selectKeys(connection).compile().sql;
    queries.set(connection.dialect, text);
  }
  return text;
}
