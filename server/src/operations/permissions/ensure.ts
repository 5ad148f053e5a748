import type { MutationContext } from "../../rpc/operation.ts";
import type { StoredPermission } from "../../store/permissions/permissions.ts";

/**
 * The permissions of these slugs, created where they are missing. Only a root key that may create permissions makes any:
 * with another one the call ends, and what it wrote is undone.
 */
export async function ensurePermissions(
  slugs: readonly string[],
  { store, principal, random, now }: Pick<MutationContext<never>, "store" | "principal" | "random" | "now">,
): Promise<StoredPermission[]> {
  const { permissions, created } = await store.permissions.ensure(slugs, random, now);
  if (created.length > 0) principal.authorize("permissions.*.create_permission");
  return permissions;
}

/** What is in one list and not in the other, by id. */
export function without<Item extends { id: string }>(list: readonly Item[], other: readonly { id: string }[]): Item[] {
  const ids = new Set(other.map(({ id }) => id));
  return list.filter(({ id }) => !ids.has(id));
}

export const idsOf = (list: readonly { id: string }[]): string[] => list.map(({ id }) => id);
export const slugsOf = (list: readonly { slug: string }[]): string[] => list.map(({ slug }) => slug);
