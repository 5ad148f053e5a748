import { CommandError } from "../output.ts";

/**
 * Names of resources whose names can occur several times. The second one of a name is `name#2`, in the order of the list.
 */
export function labels(names: readonly string[]): string[] {
  const used = new Set<string>();
  return names.map((name) => {
    let label = name;
    for (let count = 2; used.has(label); count++) label = `${name}#${count}`;
    used.add(label);
    return label;
  });
}

/** The ids of the resources that a permission can name, by label, for each kind of resource. */
export type Ids = Readonly<Record<"apis" | "ratelimits" | "budgets" | "plans" | "rootKeys", Map<string, string>>>;

/** The name of the resource with this id. */
function labelOf(ids: ReadonlyMap<string, string>, id: unknown): string | undefined {
  return [...ids].find(([, known]) => known === id)?.[0];
}

/** A permission of a root key with the names of resources: `apis.{Documents}.create_key`. Other ids stay. */
export function withNames(grant: string, ids: Ids): string {
  const [, resource, id, action] = /^([^.]+)\.([^.]+)\.([^.]+)$/.exec(grant) ?? [];
  const label = labelOf(ids[resource as keyof Ids] ?? new Map(), id);
  return label === undefined ? grant : `${resource}.{${label}}.${action}`;
}

/** The permission with ids in the place of names. */
export function withIds(grant: string, ids: Ids): string {
  const [, resource, label, action] = /^([^.]+)\.\{(.*)\}\.([^.]+)$/s.exec(grant) ?? [];
  if (label === undefined) return grant;
  const id = ids[resource as keyof Ids]?.get(label);
  if (id === undefined) throw new CommandError(`The permission ${grant} names something that does not exist.`);
  return `${resource}.${id}.${action}`;
}
