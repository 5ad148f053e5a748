import type { Clock, Milliseconds } from "../clock/clock.ts";
import type { Changes, ChangesCursor } from "../store/changes.ts";
import type { StoredKey } from "../store/keys.ts";
import type { NamespaceReference, StoredNamespace } from "../store/namespaces.ts";
import type { StoredRootKey } from "../store/root-keys.ts";
import type { WorkspaceRow } from "../store/schema.ts";
import { LookupBudget } from "./budget.ts";
import { ChangesFollower } from "./changes-follower.ts";
import { Directory, type DirectoryCounts, type Found, newDirectoryCounts } from "./directory.ts";
import { Generations } from "./generations.ts";
import {
  type KeyRecord,
  keyRecord,
  type NamespaceRecord,
  namespaceRecord,
  type RootKeyRecord,
  rootKeyRecord,
  type WorkspaceRecord,
  workspaceRecord,
} from "./records.ts";

/** What the directory asks of the store. */
export interface KnownSource {
  keysByHashes(hashes: readonly string[]): Promise<StoredKey[]>;
  rootKeysByHashes(hashes: readonly string[]): Promise<StoredRootKey[]>;
  workspaces(ids: readonly string[]): Promise<WorkspaceRow[]>;
  namespaces(references: readonly NamespaceReference[]): Promise<StoredNamespace[]>;
  changes(cursor: ChangesCursor | undefined): Promise<Changes>;
}

export interface KnownOptions {
  clock: Clock;
  source: KnownSource;
  staleMax: Milliseconds;
  /** Bound on remembered keys, in bytes; namespaces have a quarter of it, root keys and workspaces a sixteenth each. */
  bytesMax: number;
  /** Look-ups of unknown keys and root keys that may find nothing, a second. */
  lookupsPerSecond: number;
  onReachability(reachable: boolean, cause?: unknown): void;
}

/** Everything that is known without asking, and how fresh it is. */
export class Known {
  readonly generations = new Generations();
  readonly counts: Readonly<Record<"keys" | "rootKeys" | "workspaces" | "namespaces", DirectoryCounts>> = {
    keys: newDirectoryCounts(),
    rootKeys: newDirectoryCounts(),
    workspaces: newDirectoryCounts(),
    namespaces: newDirectoryCounts(),
  };
  /** By `keyName`. */
  readonly keys: Directory<KeyRecord>;
  /** By hash. */
  readonly rootKeys: Directory<RootKeyRecord>;
  /** By id. */
  readonly workspaces: Directory<WorkspaceRecord>;
  /** By `namespaceName`. */
  readonly namespaces: Directory<NamespaceRecord>;
  readonly changes: ChangesFollower;
  readonly budget: LookupBudget;

  constructor({ clock, source, staleMax, bytesMax, lookupsPerSecond, onReachability }: KnownOptions) {
    const { generations, counts } = this;
    const directory = <S, R>(
      kind: keyof Known["counts"],
      share: number,
      load: (names: readonly string[]) => Promise<readonly S[]>,
      nameOf: (stored: S) => string,
      record: (stored: S) => Found<R>,
      tagOf: (name: string) => string,
    ) =>
      new Directory<R>({
        clock,
        generations,
        counts: counts[kind],
        bytesMax: bytesMax * share,
        load: async (names) => new Map((await load(names)).map((stored) => [nameOf(stored), record(stored)])),
        tagOf,
      });

    this.keys = directory(
      "keys",
      1,
      (names) => source.keysByHashes([...new Set(names.map(hashOf))]),
      (key: StoredKey) => keyName(key.hash, key.workspace_id),
      keyRecord,
      hashOf,
    );
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
      (workspace: WorkspaceRow) => workspace.id,
      workspaceRecord,
      (id) => id,
    );
    this.namespaces = directory(
      "namespaces",
      1 / 4,
      (names) => source.namespaces(names.map(namespaceReference)),
      ({ name_or_id, workspace_id }: StoredNamespace) => namespaceName(name_or_id, workspace_id),
      namespaceRecord,
      (name) => name,
    );
    this.budget = new LookupBudget(clock, lookupsPerSecond);
    this.changes = new ChangesFollower({ clock, generations, read: source.changes, staleMax, onReachability });
  }
}

const HASH_LENGTH = 43;

/** The name of a key in the directory. A hash may occur in several workspaces, which know nothing of each other. */
export function keyName(hash: string, workspaceId: string): string {
  return hash + workspaceId;
}

function hashOf(name: string): string {
  return name.slice(0, HASH_LENGTH);
}

/**
 * What a namespace is called in the directory: its name or its id, as callers give it. Also the tag under which it is
 * announced when it comes into being.
 */
export function namespaceName(nameOrId: string, workspaceId: string): string {
  return `${workspaceId}:${nameOrId}`;
}

function namespaceReference(name: string): NamespaceReference {
  const colon = name.indexOf(":");
  return { workspace_id: name.slice(0, colon), name_or_id: name.slice(colon + 1) };
}
