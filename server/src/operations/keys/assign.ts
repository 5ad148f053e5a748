import type { RoleRow } from "../../store/schema.ts";
import { fold } from "../../store/search.ts";
import type { StoreWriter } from "../../store/workspace-store.ts";
import { idsOf } from "../permissions/ensure.ts";

type Fail = (code: "role_not_found", detail: string) => never;

/** The roles of these names, held; ends the call with `role_not_found` when one does not exist. */
export async function rolesNamed(
  store: StoreWriter,
  names: readonly string[],
  fail: Fail,
): Promise<Pick<RoleRow, "id" | "name">[]> {
  const roles = await store.roles.lockByNames(names);
  const found = new Set(roles.map((role) => role.name_folded));
  const missing = names.find((name) => !found.has(fold(name)));
  return missing === undefined ? roles : fail("role_not_found", `Role '${missing}' was not found.`);
}

/** Makes these the key's roles, by name; ends the call with `role_not_found` when one does not exist. */
export async function assignRoles(
  store: StoreWriter,
  keyId: string,
  names: readonly string[],
  fail: Fail,
): Promise<void> {
  await store.keyGrants.setRoles(keyId, idsOf(await rolesNamed(store, names, fail)));
}
