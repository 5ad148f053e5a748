import type { Clock, Milliseconds } from "../clock/clock.ts";
import type { BloomFilter } from "../crypto/bloom-filter.ts";
import { systemSecrets } from "../crypto/secret.ts";
import { KeyRecords } from "./cached-key.ts";
import type { Changes, ChangesCursor } from "./changes.ts";
import { ChangesFeed } from "./changes-feed.ts";
import { ChangesFollower } from "./changes-follower.ts";
import { type DerivedKeyRecord, derivedKeyRecord } from "./derived-key.ts";
import { Generations, newGenerationsBuffer } from "./generations.ts";
import { LookupRateLimiter } from "./lookup-rate-limiter.ts";
import { type PlanRecord, planRecord } from "./plan-record.ts";
import {
  type LoadedRecord,
  missingRecord,
  newRecordCacheCounts,
  RecordCache,
  type RecordCacheCounts,
  type RecordCacheOptions,
} from "./record-cache.ts";
import {
  type KeyMigrationRecord,
  type KeyRecord,
  keyMigrationRecord,
  type NamespaceRecord,
  namespaceRecord,
  type PortalSessionRecord,
  portalSessionRecord,
  type RootKeyRecord,
  rootKeyRecord,
  type SessionRecord,
  sessionRecord,
  type WorkspaceRecord,
  workspaceRecord,
} from "./records.ts";
import type {
  DeletedKey,
  DirectoryDerivedKey,
  DirectoryKey,
  DirectoryKeyMigration,
  DirectoryNamespace,
  DirectoryPlan,
  DirectoryPortalSession,
  DirectoryRootKey,
  DirectorySession,
  DirectoryWorkspace,
  KeyLocation,
  KeyMigrationReference,
  NamespaceReference,
} from "./stored.ts";

/** The queries of the record caches. */
export interface DirectorySource {
  /** Queries of one cache at the same time: see `RecordCacheOptions`. */
  loadsAtOnce?: number | undefined;
  keysAt(locations: readonly KeyLocation[]): Promise<(DirectoryKey | DeletedKey)[]>;
  /** Those that are not deleted. */
  keysByIds(ids: readonly string[]): Promise<DirectoryKey[]>;
  derivedKeysAt(locations: readonly KeyLocation[]): Promise<DirectoryDerivedKey[]>;
  rootKeysByHashes(hashes: readonly string[]): Promise<DirectoryRootKey[]>;
  plans(ids: readonly string[]): Promise<DirectoryPlan[]>;
  workspaces(ids: readonly string[]): Promise<DirectoryWorkspace[]>;
  keyMigrations(references: readonly KeyMigrationReference[]): Promise<DirectoryKeyMigration[]>;
  namespaces(references: readonly NamespaceReference[]): Promise<DirectoryNamespace[]>;
  sessions(hashes: readonly string[]): Promise<DirectorySession[]>;
  portalSessions(hashes: readonly string[]): Promise<DirectoryPortalSession[]>;
  changes(cursor: ChangesCursor | undefined): Promise<Changes>;
}

export interface RecordCachesOptions {
  clock: Clock;
  source: Omit<DirectorySource, "changes">;
  generations: Generations;
  /** Memory of the cache of keys, in bytes. The others may use parts of it: see `share`. */
  bytesMax: number;
}

export interface DirectoriesOptions extends Omit<RecordCachesOptions, "generations"> {
  source: DirectorySource;
  staleMax: Milliseconds;
  /** Unsuccessful look-ups per second, of each kind. */
  lookupsPerSecond: number;
  onReachability(reachable: boolean, cause?: unknown): void;
  /** Called after everything was invalidated because the database was replaced. */
  onLost?(): void;
}

/** Fewer bytes than any cached key takes. */
const RECORD_BYTES_MIN = 400;

/** The memory of the generations for record caches of this many bytes. */
export function generationsFor(bytesMax: number): SharedArrayBuffer {
  return newGenerationsBuffer(bytesMax / RECORD_BYTES_MIN);
}

export type DirectoryKind =
  | "keys"
  | "derivedKeys"
  | "rootKeys"
  | "plans"
  | "workspaces"
  | "keyMigrations"
  | "namespaces"
  | "sessions"
  | "portalSessions";

/** How one kind of record is cached. `S` is the type of a row in the store, `R` the type of its record. */
interface DirectoryOptions<S, R> {
  kind: DirectoryKind;
  /** Memory of the cache, as a part of `bytesMax`. */
  share: number;
  /** Reads the rows of these names. */
  load(names: readonly string[]): Promise<readonly S[]>;
  /** The name of a row in the cache. */
  nameOf(row: S): string;
  /** @param readAt the monotonic time before its query. */
  toRecord(row: S, readAt: Milliseconds): LoadedRecord<R>;
}

/** The record caches of one thread. */
export class RecordCaches {
  readonly generations: Generations;
  readonly counts: Readonly<Record<DirectoryKind, RecordCacheCounts>> = {
    keys: newRecordCacheCounts(),
    derivedKeys: newRecordCacheCounts(),
    rootKeys: newRecordCacheCounts(),
    plans: newRecordCacheCounts(),
    workspaces: newRecordCacheCounts(),
    keyMigrations: newRecordCacheCounts(),
    namespaces: newRecordCacheCounts(),
    sessions: newRecordCacheCounts(),
    portalSessions: newRecordCacheCounts(),
  };
  /** By `lookupKey`, and those of which keys were derived by `keyIdName`. */
  readonly keys: RecordCache<KeyRecord>;
  /** By `keyLocation`. */
  readonly derivedKeys: RecordCache<DerivedKeyRecord>;
  /** By hash. */
  readonly rootKeys: RecordCache<RootKeyRecord>;
  /** By id. */
  readonly plans: RecordCache<PlanRecord>;
  /** By id. */
  readonly workspaces: RecordCache<WorkspaceRecord>;
  /** By `keyMigrationLookupKey`. */
  readonly keyMigrations: RecordCache<KeyMigrationRecord>;
  /** By `namespaceLookupKey`. */
  readonly namespaces: RecordCache<NamespaceRecord>;
  /** By hash of the token. Only the main thread uses it, like the next one. */
  readonly sessions: RecordCache<SessionRecord>;
  /** By hash of the token. */
  readonly portalSessions: RecordCache<PortalSessionRecord>;
  /**
   * Contains the `keyLocation` of all keys, existing and deleted; undefined while it is incomplete. Only used when this
   * process is the only writer of the database: it would miss new keys of other nodes.
   */
  keyFilter: BloomFilter | undefined;
  readonly #keyRecords: KeyRecords;

  constructor({ clock, source, generations, bytesMax }: RecordCachesOptions) {
    this.generations = generations;
    const { counts } = this;
    const openCache = <R>(
      kind: DirectoryKind,
      share: number,
      options: Pick<RecordCacheOptions<R>, "load" | "tagOf" | "mayExist">,
    ) => {
      const shared = { clock, generations, counts: counts[kind], loadsAtOnce: source.loadsAtOnce };
      return new RecordCache<R>({ ...shared, bytesMax: bytesMax * share, ...options });
    };
    // Except for keys, a name is its own tag.
    const openDirectory = <S, R>({ kind, share, load, nameOf, toRecord }: DirectoryOptions<S, R>) =>
      openCache<R>(kind, share, {
        load: async (names) => {
          const readAt = clock.monotonic();
          return new Map((await load(names)).map((row) => [nameOf(row), toRecord(row, readAt)]));
        },
        tagOf: (name) => name,
      });

    const keyRecords = new KeyRecords(generations);
    this.#keyRecords = keyRecords;
    this.keys = openCache<KeyRecord>("keys", 1, {
      tagOf: (name) => keyIdOf(name) ?? hashOf(name),
      mayExist: (name) =>
        this.keyFilter === undefined ||
        keyIdOf(name) !== undefined ||
        // Most names are a location that the filter has.
        this.keyFilter.mayHave(name) ||
        locationsOf(name).some((location) => {
          const { hash, workspace_id } = parseKeyLocation(location);
          return this.keyFilter!.mayHave(keyLocation(hash, workspace_id));
        }),
      load: async (names) => {
        const ids = names.flatMap((name) => keyIdOf(name) ?? []);
        const located = names.filter((name) => keyIdOf(name) === undefined);
        const [byIds, keys] = await Promise.all([
          ids.length === 0 ? [] : source.keysByIds(ids),
          located.length === 0 ? [] : source.keysAt(located.flatMap(locationsOf).map(parseKeyLocation)),
        ]);
        const byLocation = new Map(keys.map((key) => [keyLocation(key.hash, key.workspace_id, key.migration_id), key]));
        return new Map([
          ...located.map((name) => [name, keyRecordOf(name, byLocation, keyRecords)] as const),
          ...byIds.map((key) => [keyIdName(key.id), keyRecords.of(key)] as const),
        ]);
      },
    });
    this.derivedKeys = openCache<DerivedKeyRecord>("derivedKeys", 1 / 4, {
      tagOf: (name) => hashOf(name),
      load: async (names) => {
        const keys = await source.derivedKeysAt(names.map(parseKeyLocation));
        return new Map(keys.map((key) => [keyLocation(key.hash, key.workspace_id), derivedKeyRecord(key)]));
      },
    });
    this.rootKeys = openDirectory({
      kind: "rootKeys",
      share: 1 / 16,
      load: source.rootKeysByHashes,
      nameOf: (key: DirectoryRootKey) => key.hash,
      toRecord: rootKeyRecord,
    });
    this.plans = openDirectory({
      kind: "plans",
      share: 1 / 8,
      load: source.plans,
      nameOf: (plan: DirectoryPlan) => plan.id,
      toRecord: planRecord,
    });
    this.workspaces = openDirectory({
      kind: "workspaces",
      share: 1 / 16,
      load: source.workspaces,
      nameOf: (workspace: DirectoryWorkspace) => workspace.id,
      toRecord: workspaceRecord,
    });
    this.keyMigrations = openDirectory({
      kind: "keyMigrations",
      share: 1 / 16,
      load: (names) => source.keyMigrations(names.map(parseKeyMigration)),
      nameOf: ({ name, workspace_id }: DirectoryKeyMigration) => keyMigrationLookupKey(name, workspace_id),
      toRecord: keyMigrationRecord,
    });
    this.namespaces = openDirectory({
      kind: "namespaces",
      share: 1 / 4,
      load: (names) => source.namespaces(names.map(parseNamespace)),
      nameOf: ({ name_or_id, workspace_id }: DirectoryNamespace) => namespaceLookupKey(name_or_id, workspace_id),
      toRecord: namespaceRecord,
    });
    this.sessions = openDirectory({
      kind: "sessions",
      share: 1 / 64,
      load: source.sessions,
      nameOf: ({ session }: DirectorySession) => session.hash,
      toRecord: sessionRecord,
    });
    this.portalSessions = openDirectory({
      kind: "portalSessions",
      share: 1 / 32,
      load: source.portalSessions,
      nameOf: ({ session }: DirectoryPortalSession) => session.hash,
      toRecord: portalSessionRecord,
    });
  }
  /** Caches keys that are found by the SHA-256 of their string, before calls ask for them. They are read in one query. */
  fillKeys(read: () => Promise<readonly DirectoryKey[]>): Promise<void> {
    return this.keys.fill(read, {
      nameOf: ({ hash, workspace_id }) => keyLocation(hash, workspace_id),
      toRecord: (key) => this.#keyRecords.of(key),
    });
  }
}

/** What a limiter of look-ups is for. */
export type LookupKind = "keys" | "rootKeys" | "sessions" | "signInLinks" | "leakReports";

/** Uses of links that sign in, per second. A link is used once, by a person at this machine. */
const SIGN_IN_LINKS_PER_SECOND = 5;

/** The record caches as calls use them: with what says whether they are current, and how many look-ups may fail. */
export interface CallDirectories extends RecordCaches {
  readonly changes: Pick<ChangesFollower, "mayServe" | "reachable" | "recordOwn" | "readAt">;
  readonly keyLookups: Pick<LookupRateLimiter, "spend">;
  readonly rootKeyLookups: Pick<LookupRateLimiter, "spend">;
  readonly sessionLookups: Pick<LookupRateLimiter, "spend">;
  readonly linkLookups: Pick<LookupRateLimiter, "spend">;
}

/** All record caches, and their invalidation. */
export class Directories extends RecordCaches implements CallDirectories {
  readonly changes: ChangesFollower;
  /** What changed, for those who follow from outside of the process. */
  readonly feed: ChangesFeed;
  /** For look-ups of keys and migrations, by workspace, or by address if the caller has no root key. */
  readonly keyLookups: LookupRateLimiter;
  /** For look-ups of root keys, by address. */
  readonly rootKeyLookups: LookupRateLimiter;
  /** For look-ups of sessions by tokens that this service has not signed, by address. */
  readonly sessionLookups: LookupRateLimiter;
  /** For links that sign in, by address. */
  readonly linkLookups: LookupRateLimiter;
  /** For reports of leaked keys, like `keyLookups`. Apart from it, because a report of an existing key is charged too. */
  readonly reportLookups: LookupRateLimiter;

  /** @param cachesBytesMax memory of the caches of this thread, if other threads have caches too. */
  constructor(options: DirectoriesOptions, cachesBytesMax = options.bytesMax) {
    const { clock, source, staleMax, bytesMax, lookupsPerSecond, onReachability, onLost } = options;
    const generations = new Generations(generationsFor(bytesMax));
    super({ clock, source, generations, bytesMax: cachesBytesMax });
    this.keyLookups = new LookupRateLimiter(clock, lookupsPerSecond);
    this.rootKeyLookups = new LookupRateLimiter(clock, lookupsPerSecond);
    this.sessionLookups = new LookupRateLimiter(clock, lookupsPerSecond);
    this.linkLookups = new LookupRateLimiter(clock, SIGN_IN_LINKS_PER_SECOND);
    this.reportLookups = new LookupRateLimiter(clock, lookupsPerSecond);
    // Not from the seed of a test: two processes must never have the same name.
    this.feed = new ChangesFeed(clock, Buffer.from(systemSecrets(12)).toString("base64url"));
    this.changes = new ChangesFollower({
      clock,
      generations,
      feed: this.feed,
      staleMax,
      onReachability,
      read: source.changes,
      ...(onLost && { onLost }),
    });
  }

  /** Look-ups that were rejected, by kind. */
  get refusedLookups(): Readonly<Record<LookupKind, number>> {
    return {
      keys: this.keyLookups.rejected,
      rootKeys: this.rootKeyLookups.rejected,
      sessions: this.sessionLookups.rejected,
      signInLinks: this.linkLookups.rejected,
      leakReports: this.reportLookups.rejected,
    };
  }
}

/**
 * Invalidates the records that a change of this node affects, before its answer: the caller's next call must see the change.
 * The follower then skips the change's row. Without a sequence there is no row.
 */
export function applyOwnChange(
  { generations, changes }: Pick<CallDirectories, "generations" | "changes">,
  { tags, sequence }: { readonly tags: readonly string[]; readonly sequence?: number | undefined },
): void {
  if (tags.length > 0) generations.bump(tags);
  if (sequence !== undefined) changes.recordOwn(sequence);
}

/** The location of a key: its hash and its workspace, and its migration if the hash alone does not identify it. */
export function keyLocation(hash: string, workspaceId: string, migrationId: string | null = null): string {
  return migrationId === null ? `${hash}:${workspaceId}` : `${hash}:${workspaceId}:${migrationId}`;
}

/**
 * The name under which a key is cached by its id. It begins with the end of the id, because all ids begin alike; the mark
 * after it is in no location of a key.
 */
export function keyIdName(keyId: string): string {
  return `${keyId.slice(-ID_END)}#${keyId}`;
}

const ID_END = 3;

/** The id in a name of `keyIdName`; undefined if it is another one. */
function keyIdOf(name: string): string | undefined {
  return name[ID_END] === "#" ? name.slice(ID_END + 1) : undefined;
}

/** The name under which a key is cached: its possible locations. The first location that has a key applies. */
export function lookupKey(locations: readonly string[]): string {
  return locations.join(" ");
}

function locationsOf(name: string): string[] {
  return name.split(" ");
}

/** Drops the migration: a query returns the keys of all migrations, and the caller selects by location. */
function parseKeyLocation(location: string): KeyLocation {
  const [hash, workspace_id] = location.split(":") as [string, string];
  return { hash, workspace_id };
}

function hashOf(location: string): string {
  return location.slice(0, location.indexOf(":"));
}

/**
 * The tag of all imports into a workspace. Only names that an import can change have it: missing ones, and keys that
 * were not found at their first location. A tag for each imported key would also outdate other records, because tags
 * share slots.
 */
export function importTag(workspaceId: string): string {
  return `import ${workspaceId}`;
}

function keyRecordOf(
  name: string,
  keys: ReadonlyMap<string, DirectoryKey | DeletedKey>,
  records: KeyRecords,
): LoadedRecord<KeyRecord> {
  const locations = locationsOf(name);
  const isLive = (location: string) => keys.has(location) && !("deleted" in keys.get(location)!);
  const liveAt = locations.findIndex(isLive);
  // A live key has precedence over a deleted one.
  const at = liveAt === -1 ? locations.findIndex((location) => keys.has(location)) : liveAt;
  const workspaceTag = importTag(locations[0]!.split(":")[1]!);
  if (at === -1) return missingRecord([workspaceTag]);
  const key = keys.get(locations[at]!)!;
  const loaded = "deleted" in key ? records.ofDeleted(key) : records.of(key);
  // An import into an earlier location would take precedence over this record.
  return liveAt === 0 ? loaded : { ...loaded, tags: [...loaded.tags, workspaceTag] };
}

/** The name of a migration in the cache, and the tag that is invalidated when the migration is created. */
export function keyMigrationLookupKey(name: string, workspaceId: string): string {
  return `${workspaceId}:${name}`;
}

function parseKeyMigration(lookupKey: string): KeyMigrationReference {
  const colon = lookupKey.indexOf(":");
  return { workspace_id: lookupKey.slice(0, colon), name: lookupKey.slice(colon + 1) };
}

/**
 * The name under which a namespace is cached: the name or the id that a caller sent. Also the tag that is invalidated
 * when the namespace is created.
 */
export function namespaceLookupKey(nameOrId: string, workspaceId: string): string {
  return `${workspaceId}:${nameOrId}`;
}

function parseNamespace(lookupKey: string): NamespaceReference {
  const colon = lookupKey.indexOf(":");
  return { workspace_id: lookupKey.slice(0, colon), name_or_id: lookupKey.slice(colon + 1) };
}
