import type { Clock, Milliseconds } from "../clock/clock.ts";
import type { BloomFilter } from "../crypto/bloom-filter.ts";
import type { StoredRootKey } from "../store/administration/root-keys.ts";
import type { StoredWorkspace } from "../store/administration/workspaces.ts";
import type { Changes, ChangesCursor } from "../store/changes.ts";
import type { KeyMigrationReference } from "../store/keys/key-migrations.ts";
import type { DeletedKey, KeyLocation } from "../store/keys/lookup.ts";
import type { StoredKey } from "../store/keys/stored-key.ts";
import type { NamespaceReference, StoredNamespace } from "../store/ratelimits/namespaces.ts";
import { LookupBudget } from "./budget.ts";
import { ChangesFollower } from "./changes-follower.ts";
import { Generations, newGenerationsBuffer } from "./generations.ts";
import {
  type LoadedRecord,
  missingRecord,
  newRecordCacheCounts,
  RecordCache,
  type RecordCacheCounts,
} from "./record-cache.ts";
import {
  deletedKeyRecord,
  type KeyMigrationRecord,
  type KeyRecord,
  keyMigrationRecord,
  keyRecord,
  type NamespaceRecord,
  namespaceRecord,
  type OpenedKeyMigration,
  type RootKeyRecord,
  rootKeyRecord,
  type WorkspaceRecord,
  workspaceRecord,
} from "./records.ts";

/** What the directory asks of the store. */
export interface DirectorySource {
  keysAt(places: readonly KeyLocation[]): Promise<(StoredKey | DeletedKey)[]>;
  rootKeysByHashes(hashes: readonly string[]): Promise<StoredRootKey[]>;
  workspaces(ids: readonly string[]): Promise<StoredWorkspace[]>;
  keyMigrations(references: readonly KeyMigrationReference[]): Promise<OpenedKeyMigration[]>;
  namespaces(references: readonly NamespaceReference[]): Promise<StoredNamespace[]>;
  changes(cursor: ChangesCursor | undefined): Promise<Changes>;
}

export interface DirectoriesOptions {
  clock: Clock;
  source: DirectorySource;
  staleMax: Milliseconds;
  /** Bound on remembered keys, in bytes; namespaces have a quarter of it, root keys, workspaces and migrations a sixteenth each. */
  bytesMax: number;
  /** Look-ups that may find nothing, a second: of unknown keys, and of unknown root keys. */
  lookupsPerSecond: number;
  onReachability(reachable: boolean, cause?: unknown): void;
  /** Called when everything was invalidated because the database is not the one that was read before. */
  onLost?(): void;
}

/** Fewer bytes than any key in the directory takes. */
const RECORD_BYTES_MIN = 1_000;

type DirectoryKind = "keys" | "rootKeys" | "workspaces" | "keyMigrations" | "namespaces";

/** Everything that is known without asking, and how fresh it is. */
export class Directories {
  readonly generations: Generations;
  readonly counts: Readonly<Record<DirectoryKind, RecordCacheCounts>> = {
    keys: newRecordCacheCounts(),
    rootKeys: newRecordCacheCounts(),
    workspaces: newRecordCacheCounts(),
    keyMigrations: newRecordCacheCounts(),
    namespaces: newRecordCacheCounts(),
  };
  /** By `lookupKey`. */
  readonly keys: RecordCache<KeyRecord>;
  /** By hash. */
  readonly rootKeys: RecordCache<RootKeyRecord>;
  /** By id. */
  readonly workspaces: RecordCache<WorkspaceRecord>;
  /** By `keyMigrationLookupKey`. */
  readonly keyMigrations: RecordCache<KeyMigrationRecord>;
  /** By `namespaceLookupKey`. */
  readonly namespaces: RecordCache<NamespaceRecord>;
  readonly changes: ChangesFollower;
  /** For look-ups of keys and migrations, by workspace, or by address where the caller has no root key. */
  readonly keyBudget: LookupBudget;
  /** For look-ups of root keys, by address. */
  readonly rootKeyBudget: LookupBudget;
  /**
   * Has every `keyLocation` where there is a key, or was one; undefined while that is not so. Only where this process alone
   * writes to the database, or it would not hear of others' keys before it is asked for them.
   */
  keyFilter: BloomFilter | undefined;

  constructor({ clock, source, staleMax, bytesMax, lookupsPerSecond, onReachability, onLost }: DirectoriesOptions) {
    this.generations = new Generations(newGenerationsBuffer(bytesMax / RECORD_BYTES_MIN));
    const { generations, counts } = this;
    const directory = <S, R>(
      kind: keyof Directories["counts"],
      share: number,
      load: (names: readonly string[]) => Promise<readonly S[]>,
      nameOf: (stored: S) => string,
      record: (stored: S) => LoadedRecord<R>,
      tagOf: (name: string) => string,
    ) =>
      new RecordCache<R>({
        clock,
        generations,
        counts: counts[kind],
        bytesMax: bytesMax * share,
        load: async (names) => new Map((await load(names)).map((stored) => [nameOf(stored), record(stored)])),
        tagOf,
      });

    this.keys = new RecordCache<KeyRecord>({
      ...{ clock, generations, counts: counts.keys, bytesMax },
      tagOf: (name) => hashOf(name),
      mayExist: (name) =>
        this.keyFilter === undefined ||
        locationsOf(name).some((place) => {
          const { hash, workspace_id } = keyLocationOf(place);
          return this.keyFilter!.mayHave(keyLocation(hash, workspace_id));
        }),
      load: async (names) => {
        const keys = await source.keysAt(names.flatMap(locationsOf).map(keyLocationOf));
        const byLocation = new Map(keys.map((key) => [keyLocation(key.hash, key.workspace_id, key.migration_id), key]));
        return new Map(names.map((name) => [name, foundUnder(name, byLocation)]));
      },
    });
    this.rootKeys = directory(
      "rootKeys",
      1 / 16,
      source.rootKeysByHashes,
      (key: StoredRootKey) => key.hash,
      rootKeyRecord,
      (hash) => hash,
    );
    this.workspaces = directory(
      "workspaces",
      1 / 16,
      source.workspaces,
      (workspace: StoredWorkspace) => workspace.id,
      workspaceRecord,
      (id) => id,
    );
    this.keyMigrations = directory(
      "keyMigrations",
      1 / 16,
      (names) => source.keyMigrations(names.map(keyMigrationReference)),
      ({ name, workspace_id }: OpenedKeyMigration) => keyMigrationLookupKey(name, workspace_id),
      keyMigrationRecord,
      (name) => name,
    );
    this.namespaces = directory(
      "namespaces",
      1 / 4,
      (names) => source.namespaces(names.map(namespaceReference)),
      ({ name_or_id, workspace_id }: StoredNamespace) => namespaceLookupKey(name_or_id, workspace_id),
      namespaceRecord,
      (name) => name,
    );
    this.keyBudget = new LookupBudget(clock, lookupsPerSecond);
    this.rootKeyBudget = new LookupBudget(clock, lookupsPerSecond);
    this.changes = new ChangesFollower({
      ...{ clock, generations, staleMax, onReachability },
      read: source.changes,
      ...(onLost && { onLost }),
    });
  }
}

/**
 * Where a key is: under a hash in a workspace, which knows nothing of others, and, where it takes that to find it, in a
 * migration.
 */
export function keyLocation(hash: string, workspaceId: string, migrationId: string | null = null): string {
  return migrationId === null ? `${hash}:${workspaceId}` : `${hash}:${workspaceId}:${migrationId}`;
}

/** What a key is called in the directory: the places where it may be, of which the first that holds one decides. */
export function lookupKey(places: readonly string[]): string {
  return places.join(" ");
}

function locationsOf(name: string): string[] {
  return name.split(" ");
}

/** Without the migration: who asks tells apart by it what is there. */
function keyLocationOf(place: string): KeyLocation {
  const [hash, workspace_id] = place.split(":") as [string, string];
  return { hash, workspace_id };
}

function hashOf(place: string): string {
  return place.slice(0, place.indexOf(":"));
}

/**
 * The tag of what was imported into a workspace: one for all. A tag for each key would be so many that they outdated
 * most of what is known, and only what is known not to be there has to be looked for again.
 */
export function importTag(workspaceId: string): string {
  return `import ${workspaceId}`;
}

function foundUnder(name: string, keys: ReadonlyMap<string, StoredKey | DeletedKey>): LoadedRecord<KeyRecord> {
  const places = locationsOf(name);
  const isLiving = (place: string) => keys.has(place) && !("deleted" in keys.get(place)!);
  const livingAt = places.findIndex(isLiving);
  // A deleted one is found only where no other is.
  const at = livingAt === -1 ? places.findIndex((place) => keys.has(place)) : livingAt;
  const workspaceTag = importTag(places[0]!.split(":")[1]!);
  if (at === -1) return missingRecord([workspaceTag]);
  const key = keys.get(places[at]!)!;
  const found = "deleted" in key ? deletedKeyRecord(key) : keyRecord(key);
  // One that is imported into a place before this one would be found instead.
  return livingAt === 0 ? found : { ...found, tags: [...found.tags, workspaceTag] };
}

/** What a migration is called in the directory, and the tag under which it is announced when it comes into being. */
export function keyMigrationLookupKey(name: string, workspaceId: string): string {
  return `${workspaceId}:${name}`;
}

function keyMigrationReference(name: string): KeyMigrationReference {
  const colon = name.indexOf(":");
  return { workspace_id: name.slice(0, colon), name: name.slice(colon + 1) };
}

/**
 * What a namespace is called in the directory: its name or its id, as callers give it. Also the tag under which it is
 * announced when it comes into being.
 */
export function namespaceLookupKey(nameOrId: string, workspaceId: string): string {
  return `${workspaceId}:${nameOrId}`;
}

function namespaceReference(name: string): NamespaceReference {
  const colon = name.indexOf(":");
  return { workspace_id: name.slice(0, colon), name_or_id: name.slice(colon + 1) };
}
