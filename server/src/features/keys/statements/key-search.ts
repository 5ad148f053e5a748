import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { Place } from "../../../platform/store/cursor.ts";
import { fold, folded } from "../../../platform/store/search.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { planIdOf } from "../../plans/statements/plans.ts";

/** The state of a key for its owner: what a verification would answer first. */
export const keyStates = ["active", "disabled", "expired"] as const;
export type KeyState = (typeof keyStates)[number];

/** Which keys of an API to select. Members that are absent select all keys. */
export interface KeyFilter {
  /** Only keys with this text in their name, id, start or in the external id of their identity, ignoring case. */
  search?: string | undefined;
  /** Only keys of the identity with this external id. */
  externalId?: string | undefined;
  /** Only keys that have this budget themselves. */
  budgetId?: string | undefined;
  /** Only keys that have the plan of this name or id themselves. */
  plan?: string | undefined;
  state?: KeyState | undefined;
  /** Only keys that expire before this time, in epoch milliseconds. */
  expiresBefore?: number | undefined;
  /** Only keys whose string begins with this prefix and an underscore. */
  prefix?: string | undefined;
  /** Only keys with the role of this name. */
  role?: string | undefined;
}

/** The keys of one API, as far as a filter selects them: those that are not deleted, or those that are. */
export interface KeySelection {
  workspaceId: string;
  apiId: string;
  filter: KeyFilter;
  deleted?: boolean;
  /** Decides which keys have expired. */
  now: Instant;
}

export interface KeyPlace {
  order: "asc" | "desc";
  /** The first place of the page; undefined: the first page. */
  from: Place | undefined;
  limit: number;
}

/** The index by which the deleted keys of an API are listed. */
export const deletedKeysIndex = {
  name: "keys_deleted_of_api",
  on: "keys (api_id, created_at, id) where deleted_at is not null",
};

/** The most keys that one call examines: some tens of milliseconds. */
export const KEYS_EXAMINED_MAX = 100_000;

/**
 * The places of up to `limit` selected keys in order, and where the next page begins. A page ends early once
 * `KEYS_EXAMINED_MAX` keys were examined. `next` is undefined at the end of the list.
 */
export async function findPlaces(
  sql: Sql,
  selection: KeySelection,
  { order, from, limit }: KeyPlace,
): Promise<{ places: Place[]; next: Place | undefined }> {
  const isFiltered = Object.values(selection.filter).some((value) => value !== undefined && value !== "");
  const by = await shortestWay(sql, selection);
  const end = isFiltered && by === "api" ? await placeAfter(sql, selection, order, from) : undefined;
  let query = (await selected(sql, selection, by)).select(["keys.id", "keys.created_at"]);
  if (from) query = query.where(atOrAfter(order, from));
  if (end) query = query.where(before(order, end));
  const rows = await query
    .orderBy("keys.created_at", order)
    .orderBy("keys.id", order)
    .limit(limit + 1)
    .execute();
  const places = rows.map(({ created_at, id }) => ({ at: created_at, id }));
  return { places: places.slice(0, limit), next: places[limit] ?? end };
}

/**
 * What keys can be in order by besides their creation. Keys without a name come first, as do keys that were never used; those
 * that never expire come last.
 */
const sortKeys = {
  name: raw<string | number>`coalesce(keys.name_folded, '')`,
  expires: raw<string | number>`coalesce(keys.expires_at, 999999999999999)`,
  lastUsedAt: raw<string | number>`coalesce(key_usage.last_used_at, 0)`,
} as const;
export type SortedBy = keyof typeof sortKeys;

/**
 * The same in an order that has no index, so that each page examines all selected keys; undefined if these may be more than
 * `KEYS_EXAMINED_MAX`.
 */
export async function findSortedKeyIds(
  sql: Sql,
  selection: KeySelection,
  sortedBy: SortedBy,
  { order, from, limit }: KeyPlace,
): Promise<{ ids: string[]; next: Place | undefined } | undefined> {
  const by = await shortestWay(sql, selection);
  if (by === "api" && (await placeAfter(sql, selection, "asc", undefined))) return undefined;
  const sortKey = sortKeys[sortedBy];
  let query = (await selected(sql, selection, by))
    .leftJoin("key_usage", "key_usage.key_id", "keys.id")
    .select("keys.id")
    .select(sortKey.as("sort_key"));
  if (from) {
    const start = sortedBy === "name" ? (from.sorted?.text ?? "") : from.at;
    const comparison = raw.raw(order === "asc" ? ">=" : "<=");
    query = query.where(raw<boolean>`(${sortKey}, keys.id) ${comparison} (${start}, ${from.id})`);
  }
  const rows = await query
    .orderBy(sortKey, order)
    .orderBy("keys.id", order)
    .limit(limit + 1)
    .execute();
  const extra = rows[limit];
  return { ids: rows.slice(0, limit).map(({ id }) => id), next: extra && placeOf(extra.id, sortedBy, extra.sort_key) };
}

function placeOf(id: string, by: SortedBy, sortKey: string | number): Place {
  return typeof sortKey === "string"
    ? { at: 0, id, sorted: { by, text: sortKey } }
    : { at: sortKey, id, sorted: { by, text: "" } };
}

/** The number of selected keys among the first `KEYS_EXAMINED_MAX`, and whether these are all. */
export async function countKeys(sql: Sql, selection: KeySelection): Promise<{ count: number; isComplete: boolean }> {
  const by = await shortestWay(sql, selection);
  const end = by === "api" ? await placeAfter(sql, selection, "asc", undefined) : undefined;
  let query = (await selected(sql, selection, by)).select(({ fn }) => fn.countAll<number>().as("count"));
  if (end) query = query.where(before("asc", end));
  const { count } = await query.executeTakeFirstOrThrow();
  return { count: Number(count), isComplete: end === undefined };
}

/** The newest selected key of each pool of these keys, of those that existed at a time. Reads every key of these pools. */
export async function findNewestOfPools(
  sql: Sql,
  selection: KeySelection,
  keyIds: readonly string[],
  at: Instant,
): Promise<string[]> {
  const newestFirst = raw<number>`row_number() over (partition by keys.pool_id order by keys.created_at desc, keys.id desc)`;
  const ranked = (await selected(sql, selection, "pool"))
    .select("keys.id")
    .select(newestFirst.as("rank"))
    .where(({ eb, selectFrom }) =>
      eb(
        "keys.pool_id",
        "in",
        selectFrom("keys as given").select("given.pool_id").where(sql.dialect.values.isOneOf("given.id", keyIds)),
      ),
    )
    .where("keys.created_at", "<=", at);
  const rows = await sql.db.selectFrom(ranked.as("ranked")).select("id").where("rank", "=", 1).execute();
  return rows.map(({ id }) => id);
}

/** What leads to keys: their API, their owner, their budget, their plan, or pools that the caller names. */
type Way = "api" | "owner" | "budget" | "plan" | "pool";

/** The owner, the budget or the plan of a filter whose keys, those of other APIs included, one call can examine; else the API. */
async function shortestWay(sql: Sql, { workspaceId, filter }: KeySelection): Promise<Exclude<Way, "pool">> {
  const { externalId, budgetId, plan } = filter;
  const keys = sql.db.selectFrom("keys").offset(KEYS_EXAMINED_MAX).limit(1);
  if (externalId !== undefined) {
    const owner = identities(sql, workspaceId).where("external_id", "=", externalId);
    const more = keys.select("keys.identity_id").where("keys.identity_id", "=", owner);
    if ((await more.executeTakeFirst()) === undefined) return "owner";
  }
  if (budgetId !== undefined) {
    const more = keys.select("keys.budget_id").where("keys.budget_id", "=", budgets(sql, workspaceId, budgetId));
    if ((await more.executeTakeFirst()) === undefined) return "budget";
  }
  if (plan !== undefined) {
    const more = poolsWithPlan(sql, workspaceId, plan)
      .innerJoin("keys", "keys.pool_id", "plan_assignments.owner_id")
      .offset(KEYS_EXAMINED_MAX)
      .limit(1);
    if ((await more.executeTakeFirst()) === undefined) return "plan";
  }
  return "api";
}

function budgets(sql: Sql, workspaceId: string, budgetId: string) {
  return sql.db.selectFrom("budgets").select("id").where("workspace_id", "=", workspaceId).where("id", "=", budgetId);
}

function poolsWithPlan(sql: Sql, workspaceId: string, plan: string) {
  return sql.db
    .selectFrom("plan_assignments")
    .select("plan_assignments.owner_id")
    .where("plan_assignments.plan_id", "=", planIdOf(sql, workspaceId, plan))
    .where("plan_assignments.owner", "=", "key");
}

/**
 * Whether a search can examine all identities of the workspace once. That costs a fifth of looking up the identity of each
 * key, but a workspace can have more identities than a call examines keys.
 */
async function hasFewIdentities(sql: Sql, workspaceId: string): Promise<boolean> {
  const more = await identities(sql, workspaceId).offset(KEYS_EXAMINED_MAX).limit(1).executeTakeFirst();
  return more === undefined;
}

function identities(sql: Sql, workspaceId: string) {
  return sql.db
    .selectFrom("identities")
    .select("id")
    .where("workspace_id", "=", workspaceId)
    .where("deleted_at", "is", null);
}

/** The place after the keys that one call examines; undefined if the list ends before it. */
async function placeAfter(
  sql: Sql,
  { apiId, deleted }: KeySelection,
  order: "asc" | "desc",
  from: Place | undefined,
): Promise<Place | undefined> {
  let query = sql.db
    .selectFrom("keys")
    .select(["keys.created_at", "keys.id"])
    .where("keys.api_id", "=", apiId)
    .where("keys.deleted_at", deleted ? "is not" : "is", null);
  if (from) query = query.where(atOrAfter(order, from));
  const row = await query
    .orderBy("keys.created_at", order)
    .orderBy("keys.id", order)
    .offset(KEYS_EXAMINED_MAX)
    .limit(1)
    .executeTakeFirst();
  return row && { at: row.created_at, id: row.id };
}

const place = raw`(keys.created_at, keys.id)`;

function atOrAfter(order: "asc" | "desc", { at, id }: Place) {
  return order === "asc" ? raw<boolean>`${place} >= (${at}, ${id})` : raw<boolean>`${place} <= (${at}, ${id})`;
}

function before(order: "asc" | "desc", { at, id }: Place) {
  return order === "asc" ? raw<boolean>`${place} < (${at}, ${id})` : raw<boolean>`${place} > (${at}, ${id})`;
}

/**
 * The selected keys, by the index of what leads to them. Of keys that are not deleted it reads only columns of the index
 * `keys_search`, except for identities, budgets, plans and roles.
 */
async function selected(sql: Sql, { workspaceId, apiId, filter, deleted, now }: KeySelection, by: Way) {
  const { search = "", externalId, budgetId, plan, state, expiresBefore, prefix, role } = filter;
  let query = sql.db.selectFrom("keys").where("keys.deleted_at", deleted ? "is not" : "is", null);
  // An expression, so that the index of `by` leads to the keys, not the longer one on APIs.
  query =
    by === "api" ? query.where("keys.api_id", "=", apiId) : query.where(raw<boolean>`keys.api_id || '' = ${apiId}`);
  if (state === "disabled") query = query.where("keys.enabled", "=", 0);
  else if (state !== undefined) {
    const isExpired = raw<boolean>`coalesce(keys.expires_at <= ${now}, ${sql.dialect.never})`;
    query = query.where("keys.enabled", "=", 1).where(state === "expired" ? isExpired : raw<boolean>`not ${isExpired}`);
  }
  if (expiresBefore !== undefined) query = query.where("keys.expires_at", "<", expiresBefore);
  if (prefix !== undefined) {
    query = query.where(raw<boolean>`substr(keys.start, 1, ${prefix.length + 1}) = ${`${prefix}_`}`);
  }
  if (externalId !== undefined) {
    // An expression for the same reason.
    const identityId = by === "owner" ? raw.ref<string>("keys.identity_id") : raw<string>`keys.identity_id || ''`;
    query = query.where(identityId, "=", identities(sql, workspaceId).where("external_id", "=", externalId));
  }
  if (budgetId !== undefined) {
    const keyBudget = by === "budget" ? raw.ref<string>("keys.budget_id") : raw<string>`keys.budget_id || ''`;
    query = query.where(keyBudget, "=", budgets(sql, workspaceId, budgetId));
  }
  if (plan !== undefined) {
    const pools = poolsWithPlan(sql, workspaceId, plan);
    query =
      by === "plan"
        ? query.where("keys.pool_id", "in", pools)
        : query.where(({ exists }) =>
            exists(pools.whereRef("plan_assignments.owner_id", "=", raw.ref("keys.pool_id"))),
          );
  }
  if (role !== undefined) {
    const roleId = await sql.db
      .selectFrom("roles")
      .select("id")
      .where("workspace_id", "=", workspaceId)
      .where("name_folded", "=", fold(role))
      .executeTakeFirst();
    query = query.where(({ exists, selectFrom }) =>
      exists(
        selectFrom("keys_roles")
          .select("keys_roles.key_id")
          .whereRef("keys_roles.key_id", "=", "keys.id")
          .where("keys_roles.role_id", "=", roleId?.id ?? ""),
      ),
    );
  }
  if (search !== "") {
    const part = fold(search);
    const isNamed = sql.dialect.contains(folded(raw.ref("identities.external_id")), part);
    const areFew = await hasFewIdentities(sql, workspaceId);
    query = query.where((expressions) =>
      expressions.or([
        sql.dialect.contains(raw.ref("keys.name_folded"), part),
        sql.dialect.contains(folded(raw.ref("keys.id")), part),
        sql.dialect.contains(folded(raw.ref("keys.start")), part),
        areFew
          ? expressions("keys.identity_id", "in", identities(sql, workspaceId).where(isNamed))
          : expressions.exists(
              expressions
                .selectFrom("identities")
                .select("identities.id")
                .whereRef("identities.id", "=", "keys.identity_id")
                .where("identities.deleted_at", "is", null)
                .where(isNamed),
            ),
      ]),
    );
  }
  return query;
}
