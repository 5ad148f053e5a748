import { sql as raw } from "kysely";
import type { Instant } from "../../../../../engine/src/clock/clock.ts";
import type { Place } from "../../../platform/store/cursor.ts";
import { fold, folded } from "../../../platform/store/search.ts";
import type { Sql } from "../../../platform/store/store.ts";

/** The state of a key for its owner: what a verification would answer first. */
export const keyStates = ["active", "disabled", "expired"] as const;
export type KeyState = (typeof keyStates)[number];

/** Which keys of an API to select. Members that are absent select all keys. */
export interface KeyFilter {
  /** Only keys with this text in their name, id, start or in the external id of their identity, ignoring case. */
  search?: string | undefined;
  /** Only keys of the identity with this external id. */
  externalId?: string | undefined;
  state?: KeyState | undefined;
  /** Only keys that expire before this time, in epoch milliseconds. */
  expiresBefore?: number | undefined;
  /** Only keys whose string begins with this prefix and an underscore. */
  prefix?: string | undefined;
  /** Only keys with the role of this name. */
  role?: string | undefined;
}

/** The keys of one API that are not deleted, as far as a filter selects them. */
export interface KeySelection {
  workspaceId: string;
  apiId: string;
  filter: KeyFilter;
  /** Decides which keys have expired. */
  now: Instant;
}

export interface KeyPlace {
  order: "asc" | "desc";
  /** The first place of the page; undefined: the first page. */
  from: Place | undefined;
  limit: number;
}

/** The most keys that one call examines: some tens of milliseconds. */
export const KEYS_EXAMINED_MAX = 100_000;

/**
 * The ids of up to `limit` selected keys in order, and where the next page begins. A page ends early once
 * `KEYS_EXAMINED_MAX` keys were examined. `next` is undefined at the end of the list.
 */
export async function findKeyIds(
  sql: Sql,
  selection: KeySelection,
  { order, from, limit }: KeyPlace,
): Promise<{ ids: string[]; next: Place | undefined }> {
  const isFiltered = Object.values(selection.filter).some((value) => value !== undefined && value !== "");
  const byOwner = await hasFewKeysOfOwner(sql, selection);
  const end = isFiltered && !byOwner ? await placeAfter(sql, selection, order, from) : undefined;
  let query = (await selected(sql, selection, byOwner)).select(["keys.id", "keys.created_at"]);
  if (from) query = query.where(atOrAfter(order, from));
  if (end) query = query.where(before(order, end));
  const rows = await query
    .orderBy("keys.created_at", order)
    .orderBy("keys.id", order)
    .limit(limit + 1)
    .execute();
  const extra = rows[limit];
  return {
    ids: rows.slice(0, limit).map(({ id }) => id),
    next: extra ? { at: extra.created_at, id: extra.id } : end,
  };
}

/** The number of selected keys among the first `KEYS_EXAMINED_MAX`, and whether these are all. */
export async function countKeys(sql: Sql, selection: KeySelection): Promise<{ count: number; isComplete: boolean }> {
  const byOwner = await hasFewKeysOfOwner(sql, selection);
  const end = byOwner ? undefined : await placeAfter(sql, selection, "asc", undefined);
  let query = (await selected(sql, selection, byOwner)).select(({ fn }) => fn.countAll<number>().as("count"));
  if (end) query = query.where(before("asc", end));
  const { count } = await query.executeTakeFirstOrThrow();
  return { count: Number(count), isComplete: end === undefined };
}

/** Whether the filter names an owner whose keys, those of other APIs included, are no more than one call examines. */
async function hasFewKeysOfOwner(sql: Sql, { workspaceId, filter: { externalId } }: KeySelection): Promise<boolean> {
  if (externalId === undefined) return false;
  const more = await sql.db
    .selectFrom("keys")
    .select("keys.identity_id")
    .where("keys.identity_id", "=", identities(sql, workspaceId).where("external_id", "=", externalId))
    .offset(KEYS_EXAMINED_MAX)
    .limit(1)
    .executeTakeFirst();
  return more === undefined;
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
  { apiId }: KeySelection,
  order: "asc" | "desc",
  from: Place | undefined,
): Promise<Place | undefined> {
  let query = sql.db
    .selectFrom("keys")
    .select(["keys.created_at", "keys.id"])
    .where("keys.api_id", "=", apiId)
    .where("keys.deleted_at", "is", null);
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

/** The selected keys. Reads only columns of the index `keys_search`, except for identities and roles. */
async function selected(sql: Sql, { workspaceId, apiId, filter, now }: KeySelection, byOwner: boolean) {
  const { search = "", externalId, state, expiresBefore, prefix, role } = filter;
  let query = sql.db.selectFrom("keys").where("keys.deleted_at", "is", null);
  // An expression, so that the index on identities leads to the keys of an owner, not the longer one on APIs.
  query = byOwner ? query.where(raw<boolean>`keys.api_id || '' = ${apiId}`) : query.where("keys.api_id", "=", apiId);
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
    const identityId = byOwner ? raw.ref<string>("keys.identity_id") : raw<string>`keys.identity_id || ''`;
    query = query.where(identityId, "=", identities(sql, workspaceId).where("external_id", "=", externalId));
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
