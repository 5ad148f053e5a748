import type { KeyOrigins, KeyOriginsQuestion } from "../../../../../engine/src/verification/stored.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { storedBalance } from "../../credits/statements/balances.ts";
import { commonTime } from "../../credits/statements/common-time.ts";
import { currentBalances } from "../../plans/statements/plans.ts";

/** Where the permissions of a key come from, and its balances as stored. */
export async function findKeyOrigins(
  sql: Sql,
  { workspaceId, keyId, poolId, budgetIds, slotIds, slugs, now }: KeyOriginsQuestion,
): Promise<KeyOrigins> {
  // Readers of a balance alone name no permission.
  const grants = slugs.length === 0 ? [] : await findGrants(sql, { workspaceId, keyId, slugs });
  const stored = await sql.db
    .selectFrom("balances")
    .select([...storedBalance, "pool_id", "watched", "held", "next_expiry_at", "slots_of"])
    .where(sql.dialect.values.isOneOf("pool_id", [poolId, ...budgetIds, ...slotIds]))
    .where("workspace_id", "=", workspaceId)
    .execute();
  const balances = await currentBalances(sql, stored, now);
  const slots = balances.filter(({ slots_of }) => slots_of !== null);
  const at = slots.length === 0 ? now : await commonTime(sql, now);
  return {
    grants,
    balance: balances.find(({ pool_id }) => pool_id === poolId) ?? null,
    budgets: balances.filter(({ pool_id, slots_of }) => pool_id !== poolId && slots_of === null),
    slots: slots.map(({ pool_id, held, next_expiry_at }) => ({
      pool_id,
      held,
      expiresIn: (next_expiry_at ?? at) - at,
    })),
  };
}

async function findGrants(
  sql: Sql,
  { workspaceId, keyId, slugs }: Omit<KeyOriginsQuestion, "poolId" | "budgetIds" | "slotIds" | "now">,
): Promise<KeyOrigins["grants"]> {
  const direct = await sql.db
    .selectFrom("keys_permissions")
    .innerJoin("permissions", "permissions.id", "keys_permissions.permission_id")
    .select("permissions.slug")
    .where("keys_permissions.key_id", "=", keyId)
    .where("permissions.workspace_id", "=", workspaceId)
    .where(sql.dialect.values.isOneOf("permissions.slug", slugs))
    .execute();
  const ofRoles = await sql.db
    .selectFrom("keys_roles")
    .innerJoin("roles", "roles.id", "keys_roles.role_id")
    .innerJoin("roles_permissions", "roles_permissions.role_id", "roles.id")
    .innerJoin("permissions", "permissions.id", "roles_permissions.permission_id")
    .select(["permissions.slug", "roles.name as role"])
    .where("keys_roles.key_id", "=", keyId)
    .where("roles.workspace_id", "=", workspaceId)
    .where(sql.dialect.values.isOneOf("permissions.slug", slugs))
    .orderBy("roles.name")
    .execute();
  return [...direct.map(({ slug }) => ({ slug, role: null })), ...ofRoles];
}
