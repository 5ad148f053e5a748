/** The actions that a root key can be granted, by resource type. */
export const grantActions = {
  apis: [
    "create_api",
    "read_api",
    "update_api",
    "delete_api",
    "create_key",
    "read_key",
    "update_key",
    "delete_key",
    "restore_key",
    "verify_key",
    "encrypt_key",
    "decrypt_key",
    "read_analytics",
    "create_portal_session",
    "read_portal_session",
    "delete_portal_session",
  ],
  ratelimits: [
    "limit",
    "create_namespace",
    "read_namespace",
    "update_namespace",
    "delete_namespace",
    "set_override",
    "read_override",
    "delete_override",
    "read_analytics",
  ],
  identities: ["create_identity", "read_identity", "update_identity", "delete_identity"],
  plans: ["create_plan", "read_plan", "update_plan", "delete_plan", "assign_plan"],
  budgets: ["create_budget", "read_budget", "update_budget", "delete_budget", "assign_budget"],
  replicas: ["open"],
  permissions: [
    "create_permission",
    "read_permission",
    "update_permission",
    "delete_permission",
    "create_role",
    "read_role",
    "update_role",
    "delete_role",
    "add_permission_to_key",
    "remove_permission_from_key",
    "add_role_to_key",
    "remove_role_from_key",
    "add_permission_to_role",
    "remove_permission_from_role",
  ],
  rootKeys: ["create_root_key", "read_root_key", "update_root_key", "delete_root_key"],
  workspaces: ["create_workspace", "read_workspace", "update_workspace"],
  audit: ["read_event"],
  events: ["read_event"],
  webhooks: ["create_webhook", "read_webhook", "update_webhook", "delete_webhook"],
  system: ["read_status"],
} as const satisfies Record<string, readonly string[]>;

const actionsByResource: ReadonlyMap<string, readonly string[]> = new Map(Object.entries(grantActions));

/** Other names of resource types, for compatible clients. */
const otherNames: ReadonlyMap<string, string> = new Map([
  ["api", "apis"],
  ["ratelimit", "ratelimits"],
  ["identity", "identities"],
  ["rbac", "permissions"],
]);

/** The grant that allows everything. */
export const ADMINISTRATOR = "*";
const shape = /^([a-zA-Z]+|\*)\.([a-zA-Z0-9_]+|\*)\.([a-z_]+|\*)$/;

/** Matches exactly the valid grants. For JSON Schema. */
export const grantPattern = (() => {
  const [id, any] = ["(?:[a-zA-Z0-9_]+|\\*)", "\\*"];
  const other = (name: string) => [...otherNames].filter(([, ours]) => ours === name).map(([theirs]) => theirs);
  const ofResources = [...actionsByResource].map(
    ([name, actions]) => `(?:${[name, ...other(name)].join("|")})\\.${id}\\.(?:${[...actions, any].join("|")})`,
  );
  const actions = new Set([...actionsByResource.values()].flat());
  return `^(?:${[any, ...ofResources, `${any}\\.${id}\\.(?:${[...actions, any].join("|")})`].join("|")})$`;
})();

/**
 * The canonical spelling of a grant, or null if it is malformed or names an unknown resource or action. Equal grants have
 * equal spellings: `api` becomes `apis`, and `*.*.*` becomes `*`, the administrator.
 */
export function parseGrant(text: string): string | null {
  const segments = parseSegments(text);
  if (!segments) return null;
  const spelling = segments.join(".");
  return spelling === "*.*.*" ? ADMINISTRATOR : spelling;
}

/** Compiled grants: the granted ids by resource, then by action. Each of the three may be `*`. */
export type Grants = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/** Compiles grants for `meets`. An invalid grant grants nothing. */
export function compileGrants(list: readonly string[]): Grants {
  const grants = new Map<string, Map<string, Set<string>>>();
  for (const text of list) {
    const segments = parseSegments(text);
    if (!segments) continue;
    const [resource, id, action] = segments;
    const idsByAction = grants.get(resource) ?? new Map<string, Set<string>>();
    grants.set(resource, idsByAction.set(action, (idsByAction.get(action) ?? new Set()).add(id)));
  }
  return grants;
}

/**
 * Whether the grants allow `resource.id.action`. A segment `*` requires all, and only a granted `*` meets it; `*` alone
 * requires everything.
 *
 * The id is everything between the first and the last dot. So an id from a request cannot change the resource or the
 * action of the requirement.
 */
export function meets(grants: Grants, requirement: string): boolean {
  if (requirement === ADMINISTRATOR) return allows(grants.get("*"), "*", "*");
  const first = requirement.indexOf(".");
  const last = requirement.lastIndexOf(".");
  if (first === last) return false;
  const resource = canonicalResource(requirement.slice(0, first));
  const id = requirement.slice(first + 1, last);
  const action = requirement.slice(last + 1);
  return allows(grants.get(resource), id, action) || allows(grants.get("*"), id, action);
}

/**
 * Whether the grants allow the action of the requirement on at least one resource. For checks before the resource of a
 * call is found.
 */
export function meetsForSome(grants: Grants, requirement: string): boolean {
  const resource = canonicalResource(requirement.slice(0, requirement.indexOf(".")));
  const action = requirement.slice(requirement.lastIndexOf(".") + 1);
  return [resource, "*"].some((name) => {
    const idsByAction = grants.get(name);
    return idsByAction !== undefined && (idsByAction.has(action) || idsByAction.has("*"));
  });
}

/** The ids of a resource type for which an action is granted; undefined: all of them. */
export function grantedIds(grants: Grants, resource: string, action: string): string[] | undefined {
  const ids = new Set<string>();
  for (const idsByAction of [grants.get(resource), grants.get("*")]) {
    for (const granted of [idsByAction?.get(action), idsByAction?.get("*")])
      for (const id of granted ?? []) ids.add(id);
  }
  return ids.has("*") ? undefined : [...ids];
}

/** Whether the grants include all others. A caller can only hand out grants that it has. */
export function covers(grants: Grants, others: readonly string[]): boolean {
  return others.every((other) => meets(grants, other));
}

function allows(
  idsByAction: ReadonlyMap<string, ReadonlySet<string>> | undefined,
  id: string,
  action: string,
): boolean {
  return includes(idsByAction?.get(action), id) || includes(idsByAction?.get("*"), id);
}

function includes(ids: ReadonlySet<string> | undefined, id: string): boolean {
  return ids !== undefined && (ids.has("*") || ids.has(id));
}

function canonicalResource(name: string): string {
  return otherNames.get(name) ?? name;
}

function parseSegments(text: string): [resource: string, id: string, action: string] | null {
  if (text === ADMINISTRATOR) return ["*", "*", "*"];
  const match = shape.exec(text);
  if (!match) return null;
  const resource = canonicalResource(match[1]!);
  const action = match[3]!;
  return actionExists(resource, action) ? [resource, match[2]!, action] : null;
}

function actionExists(resource: string, action: string): boolean {
  const candidates = resource === "*" ? [...actionsByResource.values()].flat() : actionsByResource.get(resource);
  return candidates !== undefined && (action === "*" || candidates.includes(action));
}
