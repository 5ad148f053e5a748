import type { Clock } from "../../../engine/src/clock/clock.ts";
import type { DirectorySource } from "../../../engine/src/directory/directories.ts";
import { unpackAnyKey, unpackKey } from "../features/keys/packed-key.ts";
import type { Store } from "../platform/store/store.ts";
import type { AppProcedures } from "./procedures.ts";

/** The reads by which record caches load what they lack. */
export function directorySource(
  store: Pick<Store<AppProcedures>, "read" | "isEmbedded">,
  clock: Pick<Clock, "now">,
): DirectorySource {
  return {
    // The embedded database reads in one thread.
    loadsAtOnce: store.isEmbedded ? 1 : undefined,
    keysAt: async (locations) => (await store.read("keysAt", locations)).map(unpackAnyKey),
    keysByIds: async (ids) => (await store.read("keysByIds", ids)).map(unpackKey),
    derivedKeysAt: (locations) => store.read("derivedKeysAt", locations),
    rootKeysByHashes: (hashes) => store.read("rootKeysByHashes", hashes),
    plans: (ids) => store.read("plansByIds", ids),
    workspaces: (ids) => store.read("workspacesByIds", ids),
    keyMigrations: (references) => store.read("keyMigrationsByReferences", references),
    namespaces: (references) => store.read("namespacesByReferences", references),
    sessions: (hashes) => store.read("sessionsByHashes", { hashes, now: clock.now() }),
    portalSessions: (hashes) => store.read("portalSessionsByHashes", { hashes, now: clock.now() }),
    changes: (cursor) => store.read("readChanges", cursor),
  };
}
