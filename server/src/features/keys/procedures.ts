import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { BloomFilter } from "../../../../engine/src/crypto/bloom-filter.ts";
import { HASH_VERSION } from "../../../../engine/src/crypto/hash.ts";
import { keyLocation } from "../../../../engine/src/directory/directories.ts";
import type {
  DirectoryKeyMigration,
  KeyLocation,
  KeyMigrationReference,
} from "../../../../engine/src/directory/stored.ts";
import type { ImportedKeyUse, KeyOriginsQuestion } from "../../../../engine/src/verification/stored.ts";
import { insertChange } from "../../platform/store/changes.ts";
import type { PoolsOf, Sql } from "../../platform/store/store.ts";
import { deriveForHolder, type OwnDerivation, type OwnDerivationDependencies } from "./own-derivation.ts";
import { findDerivedKeysAt } from "./statements/derived-keys.ts";
import { keyLocationsAfter, RECORD_KEY_LOCATION } from "./statements/key-locations.ts";
import { findKeyMigrations, recordFirstUses } from "./statements/key-migrations.ts";
import { findKeyOrigins } from "./statements/key-origins.ts";
import { type KeyUse, recordKeyUses } from "./statements/key-usage.ts";
import { findKeysAt, findKeysByIds, findUsualKeys } from "./statements/lookup.ts";
import { type LastUsesPage, lastUseAges, type RecentKeysPage, recentKeyIds } from "./statements/recent-keys.ts";

/** Locations that one call adds to the filter: it occupies the reading thread for about two milliseconds. */
const KEY_LOCATIONS_PER_CHUNK = 500;

export interface KeyProceduresOptions extends OwnDerivationDependencies {
  /** Opens the pepper of a key migration. */
  openPepper(sql: Sql, workspaceId: string, migrationId: string, sealed: string): Promise<Uint8Array>;
  /** Gets the locations of keys; SQLite only. */
  keyFilter: BloomFilter | undefined;
}

/** The procedures of keys. */
export function keyProcedures({ openPepper, keyFilter, ...dependencies }: KeyProceduresOptions) {
  const { random } = dependencies;
  const procedures = {
    reading: {
      keysAt: (sql: Sql, locations: readonly KeyLocation[]) => findKeysAt(sql, locations),
      keysByIds: (sql: Sql, ids: readonly string[]) => findKeysByIds(sql, ids),
      derivedKeysAt: (sql: Sql, locations: readonly KeyLocation[]) => findDerivedKeysAt(sql, locations),
      keyMigrationsByReferences: async (sql: Sql, references: readonly KeyMigrationReference[]) => {
        const opened: DirectoryKeyMigration[] = [];
        for (const migration of await findKeyMigrations(sql, references)) {
          const { id, workspace_id, pepper } = migration;
          const bytes = pepper === null ? null : await openPepper(sql, workspace_id, id, pepper);
          opened.push({ ...migration, pepper: bytes });
        }
        return opened;
      },
      keyOrigins: (sql: Sql, question: KeyOriginsQuestion) => findKeyOrigins(sql, question),
      lastUseAges: (sql: Sql, page: LastUsesPage & { now: Instant }) => lastUseAges(sql, page),
      recentKeyIds: (sql: Sql, page: RecentKeysPage) => recentKeyIds(sql, page),
      usualKeysByIds: (sql: Sql, ids: readonly string[]) => findUsualKeys(sql, ids),
      /** Adds the locations of some keys to the filter. Returns the last one, with which to go on; null at the end. */
      recordKeyLocations: async (sql: Sql, after: KeyLocation) => {
        const locations = await keyLocationsAfter(sql, after, KEY_LOCATIONS_PER_CHUNK);
        for (const { hash, workspace_id } of locations) keyFilter!.add(keyLocation(hash, workspace_id));
        return locations.length < KEY_LOCATIONS_PER_CHUNK ? null : locations.at(-1)!;
      },
    },
    writing: {
      /** Records the first verifications of imported keys. Returns the change. */
      recordFirstUses: async (sql: Sql, { uses, now }: { uses: readonly ImportedKeyUse[]; now: Instant }) => {
        await recordFirstUses(sql, uses, HASH_VERSION);
        // No cached record contains the start of a key.
        const tags = uses.flatMap(({ keyId, hash }) => (hash === null ? [] : [keyId, hash]));
        // The uses of one moment are of several workspaces.
        return { tags, sequence: tags.length === 0 ? undefined : await insertChange(sql, tags, now, null) };
      },
      deriveForHolder: (sql: Sql, derivation: OwnDerivation) => deriveForHolder(sql, derivation, dependencies),
      recordKeyUses: (sql: Sql, uses: readonly KeyUse[]) => recordKeyUses(sql, uses, random),
    },
    functions: {
      [RECORD_KEY_LOCATION](hash: string, workspaceId: string) {
        keyFilter?.add(keyLocation(hash, workspaceId));
        return null;
      },
    },
  };
  const pools: PoolsOf<typeof procedures> = {
    keysAt: "lookup",
    keysByIds: "lookup",
    derivedKeysAt: "lookup",
    keyMigrationsByReferences: "lookup",
    lastUseAges: "maintenance",
    recentKeyIds: "maintenance",
    usualKeysByIds: "maintenance",
    recordFirstUses: "metered",
    deriveForHolder: "metered",
    recordKeyUses: "maintenance",
  };
  return { ...procedures, pools };
}
