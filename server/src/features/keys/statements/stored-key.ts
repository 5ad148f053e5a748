import { sql as raw } from "kysely";
import type { DirectoryPlanUse } from "../../../../../engine/src/directory/stored.ts";
import type { StoredBalance } from "../../../../../engine/src/rules/refill.ts";
import { parsed } from "../../../platform/store/json.ts";
import type { IdentityRow, KeyRow, RatelimitRow, SqlBoolean } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { storedBalance } from "../../credits/statements/balances.ts";
import { planOf } from "../../plans/statements/plans.ts";

export type StoredRatelimit = Pick<
  RatelimitRow,
  "id" | "name" | "limit" | "duration" | "mode" | "auto_apply" | "shadow"
>;
export type StoredIdentity = Pick<IdentityRow, "id" | "external_id" | "meta" | "budget_id" | "concurrency">;

/** A key with all related rows, as one statement reads it. */
export interface StoredKey extends KeyRow {
  last_used_at: number | null;
  api_prefix: string | null;
  api_byte_length: number | null;
  /** JSON, or null. */
  api_policy: string | null;
  /** JSON array of CIDRs, or null. */
  api_allowed_ips: string | null;
  api_own_key_access: SqlBoolean;
  api_own_key_derivation: SqlBoolean;
  workspace_enabled: SqlBoolean;
  balance: (StoredBalance & { plan_id: string | null; plan_version: number | null }) | null;
  /** That of its pool. */
  plan: DirectoryPlanUse | null;
  identity: (StoredIdentity & { ratelimits: StoredRatelimit[]; plan: DirectoryPlanUse | null }) | null;
  ratelimits: StoredRatelimit[];
  /** Role names in order. */
  roles: string[];
  /** Slugs of effective permissions, direct and through roles, distinct and in order. */
  permissions: string[];
}

/** Every key that is not deleted and whose API is not deleted, with its related rows. */
export function selectKeys(connection: Sql) {
  return selectAnyKeys(connection).where("keys.deleted_at", "is", null);
}

/** Every key whose API is not deleted, with its related rows. */
export function selectAnyKeys(connection: Sql) {
  return connection.db
    .selectFrom("keys")
    .innerJoin("apis", "apis.id", "keys.api_id")
    .innerJoin("workspaces", "workspaces.id", "keys.workspace_id")
    .leftJoin("key_usage", "key_usage.key_id", "keys.id")
    .where("apis.deleted_at", "is", null)
    .selectAll("keys")
    .select([
      "key_usage.last_used_at",
      "apis.prefix as api_prefix",
      "apis.byte_length as api_byte_length",
      "apis.policy as api_policy",
      "apis.allowed_ips as api_allowed_ips",
      "apis.own_key_access as api_own_key_access",
      raw<SqlBoolean>`coalesce(apis.own_key_derivation, 0)`.as("api_own_key_derivation"),
      "workspaces.enabled as workspace_enabled",
    ])
    .select((query) => [
      connection.dialect.json
        .object(query.selectFrom("balances").select(storedBalance).whereRef("balances.pool_id", "=", "keys.pool_id"))
        .as("balance"),
      connection.dialect.json
        .object(
          query
            .selectFrom("identities")
            .select(["identities.id", "identities.external_id", "identities.meta"])
            .select(["identities.budget_id", "identities.concurrency"])
            .select(
              connection.dialect.json.array(limitsOf(connection, "identity_id", "identities.id")).as("ratelimits"),
            )
            .select(planOf(connection, "identities.id").as("plan"))
            .whereRef("identities.id", "=", "keys.identity_id")
            .where("identities.deleted_at", "is", null),
        )
        .as("identity"),
      planOf(connection, "keys.pool_id").as("plan"),
      connection.dialect.json.array(limitsOf(connection, "key_id", "keys.id")).as("ratelimits"),
      connection.dialect.json.array(rolesOf(connection)).as("roles"),
      connection.dialect.json.array(permissionsOf(connection)).as("permissions"),
    ]);
}

/** The limits of a key or of an identity, in the order of their names. */
export function limitsOf({ db }: Sql, column: "key_id" | "identity_id", of: "keys.id" | "identities.id") {
  return db
    .selectFrom("ratelimits")
    .select(["ratelimits.id", "ratelimits.name", "ratelimits.limit", "ratelimits.duration"])
    .select(["ratelimits.mode", "ratelimits.auto_apply", "ratelimits.shadow"])
    .whereRef(`ratelimits.${column}`, "=", of as never)
    .orderBy("ratelimits.name");
}

/** The names of the roles of a key, in order. */
export function rolesOf({ db }: Sql) {
  return db
    .selectFrom("keys_roles")
    .innerJoin("roles", "roles.id", "keys_roles.role_id")
    .select("roles.name")
    .where("keys_roles.key_id", "=", OF_KEY)
    .orderBy("roles.name");
}

/** The slugs of the permissions of a key, direct and through roles, distinct and in order. */
export function permissionsOf({ db }: Sql) {
  return db
    .selectFrom("permissions")
    .select("permissions.slug")
    .where("permissions.id", "in", (inner) =>
      inner
        .selectFrom("keys_permissions")
        .select("keys_permissions.permission_id")
        .where("keys_permissions.key_id", "=", OF_KEY)
        .union(
          inner
            .selectFrom("keys_roles")
            .innerJoin("roles_permissions", "roles_permissions.role_id", "keys_roles.role_id")
            .select("roles_permissions.permission_id")
            .where("keys_roles.key_id", "=", OF_KEY),
        ),
    )
    .orderBy("permissions.slug");
}

/** The id of the key of the row that a subquery is for. */
const OF_KEY = raw.ref<string>("keys.id");

/** A row of `selectKeys`. */
export type SelectedKey = Awaited<ReturnType<ReturnType<typeof selectKeys>["execute"]>>[number];

/** Changes the row: a copy of its many columns would take half as long as the query. */
export function asStoredKey(row: SelectedKey): StoredKey {
  const identity = parsed(row.identity);
  return Object.assign(row, {
    balance: parsed(row.balance),
    plan: parsed(row.plan),
    identity: identity && { ...identity, ratelimits: parsed(identity.ratelimits), plan: parsed(identity.plan) },
    ratelimits: parsed(row.ratelimits),
    roles: parsed(row.roles).map(({ name }) => name),
    permissions: parsed(row.permissions).map(({ slug }) => slug),
  });
}
