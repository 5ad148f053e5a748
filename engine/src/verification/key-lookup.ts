import { hashPeppered, hashSecret, hashSecret512 } from "../crypto/hash.ts";
import type { DerivedKeyRecord } from "../directory/derived-key.ts";
import {
  type CallDirectories,
  keyIdName,
  keyLocation,
  keyMigrationLookupKey,
  lookupKey,
} from "../directory/directories.ts";
import { PlannedKey } from "../directory/planned-key.ts";
import type { KeyMigrationRecord, KeyRecord, WorkspaceRecord } from "../directory/records.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import { addressNetwork } from "../rules/address.ts";
import { longTokenOf } from "../rules/imported-keys.ts";
import { hasDerivedChecksum, hasValidChecksum } from "../rules/key-string.ts";
import type { KeyPlace, SoughtHash, VerificationMistake, VerificationRequest } from "./request.ts";

/** The result of a look-up in the database: a key or null, or an error in the request. */
export type LookedUp = KeyRecord | null | VerificationMistake;

const TOKEN_FORM = "A key of this migration has three parts, joined by underscores: prefix, short token, long token.";

/** What identifies a key besides its string. */
export interface SoughtKey {
  /** Its id. A key with another one counts as not found. */
  readonly keyId?: string | undefined;
  /** Where it is stored: its string is not known, and the one in the request is not looked up. */
  readonly place?: KeyPlace | undefined;
}

/** How often a derived key and the key at the top are read, if one of them changes meanwhile. */
const ATTEMPTS_MAX = 20;

/** Finds keys by their strings. */
export class KeyLookup {
  readonly #directories: CallDirectories;

  constructor(directories: CallDirectories) {
    this.#directories = directories;
  }

  /** @throws {StoreUnavailable} or rejects with it on a node that has not read changes for too long. */
  async requireCurrent({ now, startedAt }: Pick<VerificationRequest, "now" | "startedAt">): Promise<void> {
    if (!(await this.#directories.changes.mayServe(now, startedAt))) throw tooStale();
  }

  /** The key, or null, from the cache; undefined if it or one of its plans must be looked up. */
  findCached(request: VerificationRequest): KeyRecord | null | undefined {
    const location = keyLocation(hashSecret(request.key), request.workspaceId);
    const derived = this.#directories.derivedKeys.peek(location);
    if (derived) return this.#narrowed(derived);
    const record = this.#issuedCached(location, request);
    return record && this.#plannedCached(record);
  }

  /** A key that was issued, or null, without what its plans give it; undefined if it must be looked up. */
  #issuedCached(location: string, request: VerificationRequest): KeyRecord | null | undefined {
    const record = this.#directories.keys.get(location);
    if (record && !record.isDeleted) return record;
    // Only imported keys can be at other locations.
    const workspace = this.#directories.workspaces.get(request.workspaceId);
    if (!workspace || request.migrationId !== undefined) return undefined;
    const found = workspace.hasSha512Keys
      ? this.#directories.keys.get(lookupKey([location, sha512Location(request)]))
      : record;
    // That no issued key has this string says nothing about derived keys.
    return found === null && hasDerivedChecksum(request.key) ? undefined : found;
  }

  /**
   * The key, from the database if it is not cached, and from the further locations of imported keys. `onRead` is called
   * before the database is read.
   */
  async find(request: VerificationRequest, onRead?: () => void): Promise<LookedUp> {
    const location = keyLocation(hashSecret(request.key), request.workspaceId);
    if (hasDerivedChecksum(request.key)) {
      const derived = await this.#findDerived(location, request, onRead);
      if (derived) return derived;
    }
    const known = this.workspace(request.workspaceId);
    // Without a wait, the cache remembers that it has just been asked for this name.
    const workspace = known instanceof Promise ? await known : known;
    // A key with a wrong checksum cannot exist, except an imported one.
    if (!workspace?.hasImportedKeys && !hasValidChecksum(request.key)) return null;
    const locations = [location];
    if (workspace?.hasSha512Keys) locations.push(sha512Location(request));
    const migration = request.migrationId === undefined ? null : await this.#migration(request.migrationId, request);
    const hash = migration && hashInMigration(migration, request.key);
    if (typeof hash === "string") locations.push(keyLocation(hash, request.workspaceId, migration!.id));
    const { keys, keyLookups } = this.#directories;
    const name = lookupKey(locations);
    let record = keys.get(name);
    if (record === undefined) {
      onRead?.();
      // A key that existed at the last read is not a guess, so its look-up is free.
      record = keys.has(name)
        ? await keys.load(name)
        : await keyLookups.spend(sourceOf(request), () => keys.load(name));
    }
    if (record) return this.#withPlans(record);
    return hash === INVALID_TOKEN ? { kind: "token_unreadable", message: TOKEN_FORM } : null;
  }

  /**
   * A key with what its plans give it. Each plan is read once, so a call sees a change of a plan whole or not at all.
   */
  async #withPlans(key: KeyRecord): Promise<KeyRecord> {
    const cached = this.#plannedCached(key);
    if (cached) return cached;
    const { plans } = this.#directories;
    const find = async (id: string | null) => {
      if (id === null) return null;
      const plan = plans.get(id);
      return plan === undefined ? plans.load(id) : plan;
    };
    const { planId, identity } = key;
    const idOfIdentity = identity?.planId ?? null;
    const plan = await find(planId);
    return new PlannedKey(key, plan, idOfIdentity === planId ? plan : await find(idOfIdentity));
  }

  /** The same without a look-up; undefined if it needs one. */
  #plannedCached(key: KeyRecord): KeyRecord | undefined {
    if (!hasPlan(key)) return key;
    const { plans } = this.#directories;
    const { planId, identity } = key;
    const idOfIdentity = identity?.planId ?? null;
    const plan = planId === null ? null : plans.get(planId);
    const ofIdentity = idOfIdentity === null ? null : idOfIdentity === planId ? plan : plans.get(idOfIdentity);
    return plan === undefined || ofIdentity === undefined ? undefined : new PlannedKey(key, plan, ofIdentity);
  }

  /**
   * A derived key with what the key at the top has now, with its plans; null if there is none; undefined if that key or one
   * of its plans must be looked up.
   */
  #narrowed(derived: DerivedKeyRecord): KeyRecord | null | undefined {
    const top = this.#directories.keys.get(keyIdName(derived.topId));
    const planned = top && this.#plannedCached(top);
    return planned && derived.narrow(planned);
  }

  /** Looks up what `#narrowed` has not found in the caches. */
  async #loadTop(topId: string): Promise<void> {
    const { keys } = this.#directories;
    const name = keyIdName(topId);
    const cached = keys.get(name);
    const top = cached === undefined ? await keys.load(name) : cached;
    if (top) await this.#withPlans(top);
  }

  /**
   * A derived key, from the database if it, the key at the top or one of the plans is not cached. What changed during these reads
   * is read again: a key that ended while the other one was read must not be valid.
   */
  async #findDerived(location: string, request: VerificationRequest, onRead?: () => void): Promise<KeyRecord | null> {
    const { derivedKeys, keyLookups } = this.#directories;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      let derived = derivedKeys.get(location);
      if (derived === undefined) {
        onRead?.();
        const isKnown = derivedKeys.has(location);
        const load = () => derivedKeys.load(location);
        derived = isKnown ? await load() : await keyLookups.spend(sourceOf(request), load);
      }
      if (derived === null) return null;
      const found = this.#narrowed(derived);
      if (found !== undefined) return found;
      onRead?.();
      await this.#loadTop(derived.topId);
    }
    throw new StoreUnavailable("A derived key changed faster than it could be read");
  }

  /**
   * The key at a place that a query gave, so that its look-up is free; null if it has left. `onRead` is called before the
   * database is read.
   */
  async findAt(
    { hash, migrationId, isDerived = false }: KeyPlace,
    request: VerificationRequest,
    onRead?: () => void,
  ): Promise<KeyRecord | null> {
    const location = keyLocation(hash, request.workspaceId, migrationId);
    if (isDerived) return this.#findDerived(location, request, onRead);
    const { keys } = this.#directories;
    const cached = keys.get(location);
    if (cached === undefined) onRead?.();
    const found = cached === undefined ? await keys.load(location) : cached;
    return found && this.#withPlans(found);
  }

  /** A key by its hash alone; null if there is none. Derived keys, and those of migrations, are found by their strings. */
  async findSought({ hash, lookUp }: SoughtHash, workspaceId: string): Promise<KeyRecord | null> {
    const { keys } = this.#directories;
    const location = keyLocation(hash, workspaceId);
    const cached = keys.get(location);
    if (cached !== undefined) return cached && this.#withPlans(cached);
    const load = () => keys.load(location);
    const found = await (keys.has(location) ? load() : lookUp(load));
    return found && this.#withPlans(found);
  }

  #migration(name: string, request: VerificationRequest) {
    const { keyMigrations, keyLookups } = this.#directories;
    const migrationKey = keyMigrationLookupKey(name, request.workspaceId);
    const migration = keyMigrations.get(migrationKey);
    return migration === undefined
      ? keyLookups.spend(sourceOf(request), () => keyMigrations.load(migrationKey))
      : migration;
  }

  /** The workspace; null if there is none. */
  workspace(id: string): WorkspaceRecord | null | Promise<WorkspaceRecord | null> {
    const workspace = this.#directories.workspaces.get(id);
    return workspace === undefined ? this.#directories.workspaces.load(id) : workspace;
  }
}

/** The source of a look-up for the rate limit: the workspace, or the address of a caller without a root key. */
export function sourceOf({ principal, workspaceId, address }: VerificationRequest): string {
  return principal ? workspaceId : addressNetwork(address);
}

/** Whether a key or its identity has a plan. */
function hasPlan({ planId, identity }: KeyRecord): boolean {
  return planId !== null || (identity !== null && identity.planId !== null);
}

/** The error on a node that has not read changes for too long. */
export function tooStale(): StoreUnavailable {
  return new StoreUnavailable("The database has been unreachable for longer than cached records may be served");
}

function sha512Location({ key, workspaceId }: VerificationRequest): string {
  return keyLocation(hashSecret512(key), workspaceId);
}

const INVALID_TOKEN = Symbol("invalid token");

/** The hash by which a key of the migration is stored; null if it is stored like other keys. */
function hashInMigration({ algorithm, pepper }: KeyMigrationRecord, key: string): string | null | typeof INVALID_TOKEN {
  switch (algorithm) {
    case "hmac-sha256":
      return hashPeppered(pepper!, key);
    case "prefixed-api-key": {
      const token = longTokenOf(key);
      return token === undefined ? INVALID_TOKEN : hashSecret(token);
    }
    default:
      return null;
  }
}
