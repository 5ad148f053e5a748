/**
 * Whether a root key may do something, by the rules of `engine/src/rules/grants.ts`. The service decides each call; this
 * decides what the dashboard shows as disabled.
 */

/** Permissions as their segments: resource, id, action. Each may be `*`. */
export type Grants = readonly (readonly [resource: string, id: string, action: string])[];

const otherNames: Record<string, string> = {
  api: "apis",
  ratelimit: "ratelimits",
  identity: "identities",
  rbac: "permissions",
};

/** Compiles the permissions of a root key for `meets`. */
export function compileGrants(permissions: readonly string[]): Grants {
  return permissions.map((permission) => (permission === "*" ? ["*", "*", "*"] : segments(permission)));
}

/** Whether the grants allow `resource.id.action`. An id of `*` asks for all resources, `some` for at least one. */
export function meets(grants: Grants, permission: string): boolean {
  const [resource, id, action] = segments(permission);
  return grants.some(
    ([grantedResource, grantedId, grantedAction]) =>
      (grantedResource === "*" || grantedResource === resource) &&
      (grantedId === "*" || grantedId === id || id === "some") &&
      (grantedAction === "*" || grantedAction === action),
  );
}

function segments(permission: string): [string, string, string] {
  const first = permission.indexOf(".");
  const last = permission.lastIndexOf(".");
  const resource = permission.slice(0, first);
  return [otherNames[resource] ?? resource, permission.slice(first + 1, last), permission.slice(last + 1)];
}
