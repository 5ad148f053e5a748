/** What the operations that change the permissions and the roles of a key share. */
import { z } from "zod";
import type { MutationContext } from "../../platform/rpc/operation.ts";
import type { RoleRow } from "../../platform/store/schema.ts";
import { fold } from "../../platform/store/search.ts";
import type { StoreWriter } from "../../platform/store/workspace-store.ts";
import { boundedValue } from "../../platform/vocabulary/changed-values.ts";
import { exampleKey } from "../../platform/vocabulary/examples.ts";
import { KeyId, PERMISSIONS_PER_KEY_MAX, ROLES_PER_KEY_MAX } from "../../platform/vocabulary/schema.ts";
import { idsOf } from "../permissions/ensure.ts";
import { RoleName, Slug } from "../permissions/fields.ts";
import { RoleWriter } from "../permissions/statements/roles.ts";
import { keyInEvents } from "./lock-key.ts";
import { KeyGrantWriter } from "./statements/key-grants.ts";
import { KeyWriter } from "./statements/keys.ts";
import type { StoredKey } from "./statements/stored-key.ts";

export const KeyPermissions = z.array(Slug).max(PERMISSIONS_PER_KEY_MAX);
export const KeyRoles = z.array(RoleName).max(ROLES_PER_KEY_MAX);

/** The input of an operation that changes the permissions of a key. */
export const permissionsInput = (permissions = KeyPermissions) => z.strictObject({ keyId: KeyId, permissions });

/** The input of an operation that changes the roles of a key. */
export const rolesInput = (roles = KeyRoles) => z.strictObject({ keyId: KeyId, roles });

/** The example of a key that does not exist. */
export const missingKey = <List extends object>(list: List) => ({
  summary: "A key that does not exist",
  input: { keyId: "key_IXIyFsB89IXl4uYc", ...list },
  problem: "key_not_found" as const,
});

/** The example of a role that does not exist. */
export const missingRole = (...roles: string[]) => ({
  summary: "A role that does not exist",
  input: { keyId: exampleKey.keyId, roles: [...roles, "reader"] },
  problem: "role_not_found" as const,
  detail: "Role 'reader' was not found.",
});

/** Which permissions or roles a call added to a key and removed from it, by slug or by name. */
export interface KeyChange {
  readonly added?: readonly string[];
  readonly removed?: readonly string[];
}

/** Records a change of a key's permissions or roles: on the key, for the caches and in the audit log. */
export async function recordKeyChange(
  key: StoredKey,
  member: "permissions" | "roles",
  change: KeyChange,
  { store, now, invalidate, audit }: Pick<MutationContext<never>, "store" | "now" | "invalidate" | "audit">,
): Promise<void> {
  await store.of(KeyWriter).update(key.id, { updated_at: now });
  invalidate.key(key.id);
  const recorded = Object.fromEntries(Object.entries(change).map(([name, list]) => [name, boundedValue(list)]));
  audit([key.id, key.api_id], recorded, [
    { type: "key.updated", objectId: key.id, data: { ...keyInEvents(key), changed: [member] } },
  ]);
}

type Fail = (code: "role_not_found", detail: string) => never;

/** Locks the roles with these names. The call fails with `role_not_found` if one of them does not exist. */
export async function lockRolesByNames(
  store: StoreWriter,
  names: readonly string[],
  fail: Fail,
): Promise<Pick<RoleRow, "id" | "name">[]> {
  const roles = await store.of(RoleWriter).lockByNames(names);
  const found = new Set(roles.map((role) => role.name_folded));
  const missing = names.find((name) => !found.has(fold(name)));
  return missing === undefined ? roles : fail("role_not_found", `Role '${missing}' was not found.`);
}

/** Replaces the roles of a key. The call fails with `role_not_found` if one of them does not exist. */
export async function setRolesByNames(
  store: StoreWriter,
  keyId: string,
  names: readonly string[],
  fail: Fail,
): Promise<void> {
  await store.of(KeyGrantWriter).roles.set(keyId, idsOf(await lockRolesByNames(store, names, fail)));
}
