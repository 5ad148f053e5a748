import { fold } from "../../store/permissions.ts";
import type { StoreWriter } from "../../store/workspace.ts";

/** Makes these the key's roles, by name; ends the call with `role_not_found` when one does not exist. */
export async function assignRoles(
  store: StoreWriter,
  keyId: string,
  names: readonly string[],
  fail: (code: "role_not_found", detail: string) => never,
): Promise<void> {
  const roles = await store.permissions.findRolesByNames(names);
  const found = new Set(roles.map((role) => role.name_folded));
  const missing = names.find((name) => !found.has(fold(name)));
  if (missing !== undefined) return fail("role_not_found", `Role '${missing}' was not found.`);
  await store.keys.setRoles(
    keyId,
    roles.map((role) => role.id),
  );
}
