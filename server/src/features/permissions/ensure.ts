import type { MutationContext } from "../../platform/rpc/operation.ts";
import { PermissionWriter, type StoredPermission } from "./statements/permissions.ts";

/**
 * The permissions with these slugs. Missing ones are created. If a permission is missing and the root key may not create
 * permissions, the call fails and its transaction is rolled back.
 */
export async function ensurePermissions(
  slugs: readonly string[],
  { store, principal, random, now }: Pick<MutationContext<never>, "store" | "principal" | "random" | "now">,
): Promise<StoredPermission[]> {
  const { permissions, created } = await store.of(PermissionWriter).ensure(slugs, random, now);
  if (created.length > 0) principal.authorize("permissions.*.create_permission");
  return permissions;
}

/** The items of `list` whose ids are not in `other`. */
export function without<Item extends { id: string }>(list: readonly Item[], other: readonly { id: string }[]): Item[] {
  const ids = new Set(other.map(({ id }) => id));
  return list.filter(({ id }) => !ids.has(id));
}

export const idsOf = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id);
export const slugsOf = (list: readonly { slug: string }[]): string[] => list.map(({ slug }) => slug);
