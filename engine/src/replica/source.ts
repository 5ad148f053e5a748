import type { Clock, Milliseconds, Timer } from "../clock/clock.ts";
import { HASH_VERSION } from "../crypto/hash.ts";
import { type DirectorySource, namespaceLookupKey } from "../directory/directories.ts";
import type { Generations } from "../directory/generations.ts";
import type {
  DeletedKey,
  DirectoryIdentity,
  DirectoryKey,
  DirectoryNamespace,
  DirectoryRootKey,
  DirectoryWorkspace,
} from "../directory/stored.ts";
import { decideByCall, decideByCharge } from "../errors/decided-elsewhere.ts";
import { compileOverrides } from "../rules/override-patterns.ts";
import {
  type DeletedReplicaKey,
  type Elsewhere,
  type Home,
  OperationUnknown,
  type RecordsAnswer,
  type ReplicaKey,
  type ReplicaRootKey,
  type ReplicaWorkspace,
} from "./home.ts";

/** What this release knows to be needed to judge a key, and leaves to home. Keys with other needs are judged by home alone. */
const KNOWN_NEEDS = new Set(["limits", "balance", "budgets", "concurrency", "plan"]);

/** The workspace of root keys that home judges, and the id of namespaces in which it counts. None has this id. */
export const ELSEWHERE = "";
const ELSEWHERE_FOUND: Elsewhere = { isElsewhere: true };

/** Home applies the overrides of namespaces. */
const noOverrides = compileOverrides([]);

/** For how long records of what only home can judge are kept. Home may let this process judge it after that. */
const ELSEWHERE_TIME: Milliseconds = 5_000;

export interface ReplicaSourceOptions {
  clock: Clock;
  home: Pick<Home, "resolveKeys">;
  generations: Pick<Generations, "bump">;
  workspaceId(): string;
  position(): string | undefined;
}

/** Reads records from home. */
export class ReplicaSource implements Omit<DirectorySource, "changes"> {
  readonly #options: ReplicaSourceOptions;
  /** Hashes of secrets whose records say that home judges them, until these records are outdated. */
  #elsewhere = new Set<string>();
  #timer: Timer | undefined;

  constructor(options: ReplicaSourceOptions) {
    this.#options = options;
  }

  close(): void {
    this.#timer?.cancel();
  }

  readonly keysAt: DirectorySource["keysAt"] = async (locations) => {
    const { home, workspaceId, position } = this.#options;
    const own = workspaceId();
    const hashes = [...new Set(locations.map(({ hash }) => hash))];
    const { keys } = await home.resolveKeys({ keys: hashes, ...positionMember(position()) });
    return hashes.flatMap((hash, i): (DirectoryKey | DeletedKey)[] => {
      const found = keys[i] ?? null;
      if (found === null) return [];
      if ("isDeleted" in found) return [deletedKey(found, hash, own)];
      const isJudged = !isElsewhere(found) && found.needs.every((need) => KNOWN_NEEDS.has(need));
      if (!isJudged) this.#forgetSoon(hash);
      return [isJudged ? storedKey(found, hash, own) : keyOfHome(hash, own)];
    });
  };

  readonly rootKeysByHashes: DirectorySource["rootKeysByHashes"] = async (hashes) => {
    const { home, workspaceId, position } = this.#options;
    const own = workspaceId();
    const { rootKeys } = await home.resolveKeys({ rootKeys: hashes, ...positionMember(position()) });
    return hashes.flatMap((hash, i) => {
      const found = rootKeys[i] ?? null;
      if (found === null) return [];
      if (!isElsewhere(found)) return [storedRootKey(found, hash, own)];
      this.#forgetSoon(hash);
      return [storedRootKey(rootKeyOfHome, hash, ELSEWHERE)];
    });
  };

  readonly workspaces: DirectorySource["workspaces"] = async (ids) => {
    const { home, position } = this.#options;
    const { workspace } = await home.resolveKeys({ workspace: true, ...positionMember(position()) });
    return workspace !== undefined && ids.includes(workspace.id) ? [storedWorkspace(workspace)] : [];
  };

  /** Home joins a key with its plans when it charges it. Keys that only home can judge seem to have a plan too. */
  readonly plans: DirectorySource["plans"] = async (ids) =>
    ids.includes(PLAN_OF_HOME) ? decideByCall() : decideByCharge();
  readonly keysByIds = async () => decideByCall();
  readonly derivedKeysAt = async () => decideByCall();
  /** Peppers never leave home. */
  readonly keyMigrations = async () => decideByCall();

  readonly namespaces: DirectorySource["namespaces"] = async (references) => {
    const namespaces = await this.#findNamespaces(references.map(({ name_or_id }) => name_or_id));
    const overrides = await noOverrides;
    return references.flatMap((reference, i): DirectoryNamespace[] => {
      const found = namespaces[i] === undefined ? ELSEWHERE_FOUND : namespaces[i];
      if (found === null) return [];
      const isHomes = isElsewhere(found);
      if (isHomes) this.#forgetSoon(namespaceLookupKey(reference.name_or_id, reference.workspace_id));
      const id = isHomes ? ELSEWHERE : found.namespaceId;
      return [{ ...reference, id, overrides, descriptors: null }];
    });
  };

  readonly sessions = async () => decideByCall();
  readonly portalSessions = async () => decideByCall();

  /** Empty: home is of a release that does not know the question, and counts there whole calls. */
  async #findNamespaces(namespaces: readonly string[]): Promise<NonNullable<RecordsAnswer["namespaces"]>> {
    const { home, position } = this.#options;
    try {
      return (await home.resolveKeys({ namespaces, ...positionMember(position()) })).namespaces ?? [];
    } catch (error) {
      if (error instanceof OperationUnknown) return [];
      throw error;
    }
  }

  #forgetSoon(hash: string): void {
    this.#elsewhere.add(hash);
    this.#timer ??= this.#options.clock.schedule(ELSEWHERE_TIME, () => {
      this.#timer = undefined;
      this.#options.generations.bump([...this.#elsewhere]);
      this.#elsewhere = new Set();
    });
  }
}

function positionMember(position: string | undefined) {
  return position === undefined ? {} : { position };
}

function isElsewhere(found: object): found is Elsewhere {
  return "isElsewhere" in found;
}

function deletedKey(key: DeletedReplicaKey, hash: string, workspaceId: string): DeletedKey {
  const { keyId, apiId, identityId } = key;
  return {
    id: keyId,
    api_id: apiId,
    hash,
    workspace_id: workspaceId,
    migration_id: null,
    identity_id: identityId,
    deleted: true,
  };
}

/** The plan of keys that have one, and of keys that only home can judge. Looking it up leads to home. */
const [PLAN, PLAN_OF_HOME] = ["plan", "home"];

/** A key as the directory makes records of it. What home charges leads `Verification` to a part that is at home. */
function storedKey(key: ReplicaKey, hash: string, workspaceId: string): DirectoryKey {
  const needs = new Set(key.needs);
  const { identity } = key;
  return {
    id: key.keyId,
    api_id: key.apiId,
    hash,
    workspace_id: workspaceId,
    migration_id: null,
    pool_id: key.poolId,
    hash_version: HASH_VERSION,
    // First uses are recorded at home.
    is_unused: 0,
    name: key.name,
    meta: key.meta,
    enabled: stored(key.enabled),
    expires_at: key.expiresAt,
    allowed_ips: key.allowedIps,
    api_allowed_ips: key.apiAllowedIps,
    // Holders read and derive their keys at home.
    api_own_key_access: 0,
    api_own_key_derivation: 0,
    workspace_enabled: stored(key.workspaceEnabled),
    balance: needs.has("balance") || needs.has("budgets") || needs.has("concurrency") ? { plan_id: null } : null,
    budgets: [],
    identity: identity && storedIdentity(identity),
    plan: needs.has("plan") ? planNamed(PLAN) : null,
    concurrency: null,
    ratelimits: key.ratelimits,
    roles: key.roles,
    permissions: key.permissions,
  };
}

/** A key of which nothing may be used but that home judges it. */
function keyOfHome(hash: string, workspaceId: string): DirectoryKey {
  const unknown = { name: null, meta: null, expiresAt: null, allowedIps: null, apiAllowedIps: null, identity: null };
  const flags = { enabled: true, workspaceEnabled: true, ratelimits: [], roles: [], permissions: [], needs: [] };
  const key = storedKey({ keyId: "", apiId: "", poolId: "", ...unknown, ...flags }, hash, workspaceId);
  return { ...key, plan: planNamed(PLAN_OF_HOME) };
}

function planNamed(id: string): DirectoryKey["plan"] {
  return { id, name: "", credits: null, budget: null };
}

function storedIdentity({ id, externalId, meta, ratelimits }: NonNullable<ReplicaKey["identity"]>): DirectoryIdentity {
  return { id, external_id: externalId, meta, concurrency: null, ratelimits, plan: null, budget_id: null };
}

function storedRootKey(found: ReplicaRootKey, hash: string, workspaceId: string): DirectoryRootKey {
  return {
    id: found.rootKeyId,
    workspace_id: workspaceId,
    hash,
    name: "",
    grants: JSON.stringify(found.grants),
    enabled: stored(found.enabled),
    expires_at: found.expiresAt,
    workspace_enabled: stored(found.workspaceEnabled),
    workspace_requests_per_minute: found.requestsPerMinute,
  };
}

function storedWorkspace(found: ReplicaWorkspace): DirectoryWorkspace {
  return {
    id: found.id,
    enabled: stored(found.enabled),
    has_imported_keys: stored(found.hasImportedKeys),
    sha512_migrations: found.hasSha512Keys ? 1 : 0,
    upstream_apis: found.hasUpstreams ? [""] : [],
  };
}

/** A root key of which nothing may be used but that home judges it. */
const rootKeyOfHome: ReplicaRootKey = {
  rootKeyId: "",
  grants: [],
  enabled: true,
  expiresAt: null,
  workspaceEnabled: true,
  requestsPerMinute: null,
};

function stored(value: boolean): 0 | 1 {
  return value ? 1 : 0;
}
