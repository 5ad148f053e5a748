import { UsageError } from "../../output.ts";
import { dumpRows } from "./dump.ts";
import { type DumpedKey, joinedRows } from "./rows.ts";

/** Maximum number of APIs that an error lists. */
const APIS_SHOWN_MAX = 20;

const keys = { name: "keys", columns: ["id", "hash"], isRequired: true } as const;
/** What keys refer to. Each table may be absent. */
const joinedTables = [
  "apis",
  "identities",
  "roles",
  "permissions",
  "roles_permissions",
  "keys_roles",
  "keys_permissions",
  "ratelimits",
  "key_migrations",
].map((name) => ({ name, columns: [] }));

type Values = ReadonlyMap<string, string | null>;

/**
 * The keys of one API in a dump of Unkey's MySQL database. The file is read twice: first the tables that keys refer to,
 * which are kept in memory, then the table `keys`.
 *
 * @param apiId the API at Unkey; undefined if the dump has only one.
 * @throws {CommandError} when the dump cannot be read, {UsageError} when it has several APIs and none was chosen.
 */
export async function* unkeyDumpRows(file: string, apiId: string | undefined): AsyncGenerator<DumpedKey> {
  const joined = await readJoined(file);
  const keyAuthId = chooseApi(joined, apiId);
  for await (const { values, progress } of dumpRows(file, [keys])) {
    if (keyAuthId !== undefined && values.get("key_auth_id") !== keyAuthId) continue;
    yield { fields: fieldsOf(values, joined), progress };
  }
}

/** What keys refer to. Lists are by the id of the key, of the identity or of the role. */
interface Joined {
  apis: { id: string; name: string; keyAuthId: string }[];
  identities: Map<string, { externalId: string | null; meta: string | null }>;
  roles: Map<string, string>;
  slugs: Map<string, string>;
  permissionsOfRole: Map<string, string[]>;
  rolesOfKey: Map<string, string[]>;
  permissionsOfKey: Map<string, string[]>;
  limitsOf: Map<string, object[]>;
  algorithms: Map<string, string>;
}

async function readJoined(file: string): Promise<Joined> {
  const joined: Joined = {
    apis: [],
    identities: new Map(),
    roles: new Map(),
    slugs: new Map(),
    permissionsOfRole: new Map(),
    rolesOfKey: new Map(),
    permissionsOfKey: new Map(),
    limitsOf: new Map(),
    algorithms: new Map(),
  };
  for await (const { table, values } of joinedRows(file, joinedTables)) add(table, values, joined);
  return joined;
}

function add(table: string, values: Values, joined: Joined): void {
  const id = values.get("id") ?? "";
  const of = (column: string) => values.get(column) ?? "";
  if (table === "apis") {
    const keyAuthId = values.get("key_auth_id");
    if (keyAuthId && !values.get("deleted_at_m")) joined.apis.push({ id, name: of("name"), keyAuthId });
  } else if (table === "identities") {
    if (values.get("deleted") !== "1") {
      joined.identities.set(id, { externalId: values.get("external_id") ?? null, meta: values.get("meta") ?? null });
    }
  } else if (table === "roles") joined.roles.set(id, of("name"));
  else if (table === "permissions") joined.slugs.set(id, values.get("slug") ?? of("name"));
  else if (table === "roles_permissions") append(joined.permissionsOfRole, of("role_id"), of("permission_id"));
  else if (table === "keys_roles") append(joined.rolesOfKey, of("key_id"), of("role_id"));
  else if (table === "keys_permissions") append(joined.permissionsOfKey, of("key_id"), of("permission_id"));
  else if (table === "key_migrations") joined.algorithms.set(id, of("algorithm"));
  else if (table === "ratelimits") {
    append(joined.limitsOf, values.get("key_id") ?? of("identity_id"), {
      name: of("name"),
      limit: Number(of("limit")),
      duration: Number(of("duration")),
      autoApply: of("auto_apply") === "1",
    });
  }
}

function append<T>(lists: Map<string, T[]>, id: string, item: T): void {
  const list = lists.get(id);
  if (list) list.push(item);
  else lists.set(id, [item]);
}

/** The `key_auth_id` of the keys to import; undefined if the dump has no table `apis`. */
function chooseApi({ apis }: Joined, apiId: string | undefined): string | undefined {
  if (apiId !== undefined) {
    const chosen = apis.find(({ id }) => id === apiId);
    if (chosen) return chosen.keyAuthId;
    throw new UsageError(`--source-api ${apiId}: the dump has no such API. ${listOf(apis)}`);
  }
  if (apis.length <= 1) return apis[0]?.keyAuthId;
  throw new UsageError(`The dump has keys of several APIs: choose one with --source-api. ${listOf(apis)}`);
}

function listOf(apis: Joined["apis"]): string {
  const shown = apis.slice(0, APIS_SHOWN_MAX).map(({ id, name }) => `${id} (${name})`);
  const more = apis.length - shown.length;
  return apis.length === 0 ? "It has none." : `It has ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}.`;
}

/** The columns of a key, with members as `apis.listKeys` of Unkey names them. */
function fieldsOf(values: Values, joined: Joined): Record<string, unknown> {
  const id = values.get("id") ?? "";
  const identityId = values.get("identity_id") ?? "";
  const identity = joined.identities.get(identityId);
  const roleIds = (joined.rolesOfKey.get(id) ?? []).filter((role) => joined.roles.has(role));
  const slugsOf = (ids: readonly string[]) =>
    ids.map((one) => joined.slugs.get(one)).filter((slug) => slug !== undefined);
  const permissions = slugsOf(joined.permissionsOfKey.get(id) ?? []);
  const limits = joined.limitsOf.get(id);
  return {
    ...Object.fromEntries(values),
    ...(identity && {
      identity: {
        externalId: identity.externalId,
        meta: parsed(identity.meta),
        ratelimits: joined.limitsOf.get(identityId),
      },
    }),
    ...(roleIds.length > 0 && {
      roles: roleIds.map((role) => joined.roles.get(role)),
      rolePermissions: roleIds.flatMap((role) =>
        notesOf(joined.roles.get(role)!, slugsOf(joined.permissionsOfRole.get(role) ?? [])),
      ),
    }),
    ...(permissions.length > 0 && { permissions }),
    ...(limits && { ratelimits: limits }),
    migration_algorithm: joined.algorithms.get(values.get("pending_migration_id") ?? ""),
  };
}

function parsed(text: string | null): unknown {
  try {
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Maximum number of permissions that a note names. */
const PERMISSIONS_SHOWN_MAX = 20;

function notesOf(role: string, permissions: readonly string[]): string[] {
  if (permissions.length === 0) return [];
  const shown = permissions.slice(0, PERMISSIONS_SHOWN_MAX).join(", ");
  const more = permissions.length - PERMISSIONS_SHOWN_MAX;
  return [
    `the role ${role} is created without permissions if it does not exist yet. At Unkey it has ${shown}${more > 0 ? ` and ${more} more` : ""}: give them to it`,
  ];
}
