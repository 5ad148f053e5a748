import type { Instant } from "../clock/clock.ts";
import { BloomFilter, type BloomFilterState } from "../crypto/bloom-filter.ts";
import { HASH_VERSION } from "../crypto/hash.ts";
import { systemSecrets } from "../crypto/secret.ts";
import { keyLocation } from "../directory/directories.ts";
import type {
  DirectoryKeyMigration,
  KeyMigrationReference,
  KeyPlace,
  NamespaceReference,
} from "../directory/stored.ts";
import { leakProcedures } from "../leaks/procedures.ts";
import { findNames, type Subjects } from "../operations/analytics/subjects.ts";
import { findUpstream } from "../operations/apis/upstream.ts";
import { operations, portalOperations } from "../operations/index.ts";
import { createUpstreamKey, type UpstreamKey } from "../operations/keys/upstream-key.ts";
import { createNamespaces, type FirstUse } from "../operations/ratelimits/namespace-creation.ts";
import { findUrlFault } from "../outbound/url.ts";
import { seededRandom } from "../random/seeded.ts";
import { systemRandom } from "../random/system.ts";
import { operationProcedures } from "../rpc/execute.ts";
import { sessionProcedures } from "../rpc/session-procedures.ts";
import { administrationProcedures } from "../store/administration/procedures.ts";
import { BYTES_MAX, defaultMaxima } from "../store/administration/quotas.ts";
import { findRootKeysByHashes } from "../store/administration/root-key-lookup.ts";
import { type RootKeyUse, recordRootKeyUses } from "../store/administration/root-key-usage.ts";
import { createLink } from "../store/administration/sessions.ts";
import { ensureTokenKey } from "../store/administration/token-key.ts";
import type { QuotaLimits } from "../store/administration/workspace-usage.ts";
import { WorkspaceReader } from "../store/administration/workspaces.ts";
import { insertChange } from "../store/changes.ts";
import { balanceRules } from "../store/credits/balances.ts";
import { creditProcedures } from "../store/credits/procedures.ts";
import { buildRetentionIndexes } from "../store/deleted-rows.ts";
import { type DemoRows, insertDemoRows } from "../store/demo.ts";
import { eventProcedures } from "../store/events/procedures.ts";
import { findIdempotencyRecords, once } from "../store/idempotency.ts";
import {
  countOrphans,
  digestRows,
  type ForeignKey,
  findBrokenRules,
  findForeignKeys,
  findMissingParts,
  findSequences,
  findStoredTables,
  type StoreRules,
  type TableCursor,
} from "../store/inspection.ts";
import { keyLocationsAfter, RECORD_KEY_LOCATION, watchKeyLocations } from "../store/keys/key-locations.ts";
import { findKeyMigrations, type ImportedKeyUse, recordFirstUses } from "../store/keys/key-migrations.ts";
import { findKeyOrigins, type KeyOriginsQuestion } from "../store/keys/key-origins.ts";
import { type KeyUse, recordKeyUses } from "../store/keys/key-usage.ts";
import { keyRules } from "../store/keys/keys.ts";
import { findKeysAt } from "../store/keys/lookup.ts";
import { type Lease, leaseProcedures } from "../store/lease.ts";
import { migrate, schemaState } from "../store/migrate.ts";
import type { MonthlyTable } from "../store/monthly-tables.ts";
import { findMove, insertPreparedCopy, requireCurrent, requireServable } from "../store/move/marks.ts";
import { findNamespaces } from "../store/ratelimits/namespaces.ts";
import {
  findPartitionEpochs,
  findRedisEpoch,
  type PartitionEpoch,
  putPartitionEpochs,
  putRedisEpoch,
  type RedisEpoch,
} from "../store/redis-epochs.ts";
import {
  changeLayout,
  type LayoutStep,
  type RetentionStep,
  retain,
  retentionLag,
  undoDivision,
} from "../store/retention.ts";
import { probeWrites } from "../store/sqlite/probe-writes.ts";
import type { PoolsOf, Sql } from "../store/store.ts";
import { vaultRules } from "../store/vault.ts";
import { KeyRing, type KeyRingSource } from "../vault/key-ring.ts";
import { Vault } from "../vault/vault.ts";
import { webhookProcedures } from "../webhooks/procedures.ts";
import { type RetentionTable, retentionIndexes, retentionTasks } from "./retention-tasks.ts";

/** Options of the procedures. They are copied to each database thread at its start. */
export interface ProcedureOptions {
  /** Makes identifiers repeatable, for tests and simulations. */
  seed?: number | undefined;
  /** The source of the vault's master keys. */
  vault: KeyRingSource;
  /** Prefix of addresses in answers. Omitted: they are relative. */
  publicUrl?: string | undefined;
  /** Whether webhooks may go to private addresses. */
  allowPrivateWebhooks?: boolean | undefined;
  /** Whether upstream verifiers may be at private addresses. */
  allowPrivateUpstreams?: boolean | undefined;
  /** Keys of an owner that expired and are not deleted yet. Omitted: the default of the setting. */
  portalEndedKeysMax?: number | undefined;
  /** What a workspace may have. Omitted: the defaults of the settings. */
  limits?: QuotaLimits | undefined;
  /** Gets the locations of keys: those that `recordKeyLocations` reads and, after `prepare`, each new key. SQLite only. */
  keyFilter?: BloomFilterState | undefined;
}

const DAY = 86_400_000;

const defaultLimits: QuotaLimits = {
  maxima: defaultMaxima,
  bytesMax: BYTES_MAX,
  retention: { audit: 400 * DAY, events: 30 * DAY },
};

/** What `latchkey verify-store` checks besides the constraints of the schema. */
const rules: StoreRules = { ...balanceRules, ...keyRules, ...vaultRules };

/** Locations that one call adds to the filter: it occupies the reading thread for about two milliseconds. */
const KEY_LOCATIONS_PER_CHUNK = 500;

const bulkOperations: ReadonlySet<string> = new Set(
  operations.filter(({ kind }) => kind === "bulk").map(({ name }) => name),
);

/** A chunk of an import inserts a thousand keys with what belongs to them. */
function mayTakeLong(name: string, argument: { operation: string }): boolean {
  return name === "mutation" && bulkOperations.has(argument.operation);
}

/** Every procedure that runs beside the database, in any thread. */
export function openProcedures(options: ProcedureOptions) {
  const { seed, vault: keyRingSource, publicUrl = "", keyFilter: filterState } = options;
  const { allowPrivateWebhooks = false, allowPrivateUpstreams = false } = options;
  const { portalEndedKeysMax = 20, limits = defaultLimits } = options;
  const vault = new Vault(new KeyRing(keyRingSource));
  const random = seed === undefined ? systemRandom : seededRandom(seed);
  const keyFilter = filterState && new BloomFilter(filterState);
  const ofOperations = operationProcedures([...operations, ...portalOperations], {
    ...{ random, secrets: systemSecrets, vault, publicUrl },
    ...{ portal: { endedKeysMax: portalEndedKeysMax }, limits },
    webhooks: { findUrlFault: (url) => findUrlFault(url, allowPrivateWebhooks) },
    upstreams: { findUrlFault: (url) => findUrlFault(url, allowPrivateUpstreams) },
  });
  const ofAdministration = administrationProcedures({ random, secrets: systemSecrets });
  const ofSessions = sessionProcedures({ random, secrets: systemSecrets });
  const ofCredits = creditProcedures(random);
  const ofEvents = eventProcedures({ random });
  const ofLeaks = leakProcedures({ random });
  const ofWebhooks = webhookProcedures({ vault, random });
  const procedures = {
    reading: {
      ...ofOperations.reading,
      ...ofAdministration.reading,
      ...ofSessions.reading,
      ...ofCredits.reading,
      ...ofEvents.reading,
      ...ofLeaks.reading,
      ...ofWebhooks.reading,
      readChanges: async (sql: Sql, cursor: string | undefined) => {
        await requireCurrent(sql);
        return sql.dialect.readChanges(sql, cursor);
      },
      findMove: (sql: Sql, _: null) => findMove(sql),
      requireServable: (sql: Sql, _: null) => requireServable(sql),
      keysAt: (sql: Sql, locations: readonly KeyPlace[]) => findKeysAt(sql, locations),
      rootKeysByHashes: (sql: Sql, hashes: readonly string[]) => findRootKeysByHashes(sql, hashes),
      workspacesByIds: (sql: Sql, ids: readonly string[]) => new WorkspaceReader(sql).findAll(ids),
      keyMigrationsByReferences: async (sql: Sql, references: readonly KeyMigrationReference[]) => {
        const opened: DirectoryKeyMigration[] = [];
        for (const migration of await findKeyMigrations(sql, references)) {
          const { id, workspace_id, pepper } = migration;
          const bytes = pepper === null ? null : await vault.openPepper(sql, workspace_id, id, pepper);
          opened.push({ ...migration, pepper: bytes });
        }
        return opened;
      },
      namespacesByReferences: (sql: Sql, references: readonly NamespaceReference[]) => findNamespaces(sql, references),
      upstreamVerifier: (sql: Sql, api: { apiId: string; workspaceId: string }) => findUpstream(sql, api, vault),
      names: (sql: Sql, subjects: Subjects) => findNames(sql, subjects),
      keyOrigins: (sql: Sql, question: KeyOriginsQuestion) => findKeyOrigins(sql, question),
      idempotencyRecords: (sql: Sql, { scopes, now }: { scopes: readonly string[]; now: Instant }) =>
        findIdempotencyRecords(sql, scopes, now),
      redisEpoch: (sql: Sql, _: null) => findRedisEpoch(sql),
      schemaState: (sql: Sql, _: null) => schemaState(sql),
      partitionEpochs: (sql: Sql, _: null) => findPartitionEpochs(sql),
      missingParts: (sql: Sql, _: null) => findMissingParts(sql, retentionIndexes),
      foreignKeys: (sql: Sql, _: null) => findForeignKeys(sql),
      orphans: (sql: Sql, key: ForeignKey) => countOrphans(sql, key),
      brokenRules: (sql: Sql, _: null) => findBrokenRules(sql, rules),
      sequences: (sql: Sql, _: null) => findSequences(sql),
      storedTables: (sql: Sql, _: null) => findStoredTables(sql),
      digestRows: (sql: Sql, cursor: TableCursor) => digestRows(sql, cursor),
      revealSample: (sql: Sql, _: null) => vault.revealSample(sql),
      retentionLag: (sql: Sql, { table, ...step }: RetentionStep & { table: RetentionTable }) =>
        retentionLag(sql, retentionTasks[table], step),
      /** Not in a transaction, because PostgreSQL builds an index beside writes only outside of one. */
      indexDeletedRows: (sql: Sql, _: null) => buildRetentionIndexes(sql, retentionIndexes),
      /** Not in a transaction, because it reads whole tables. */
      preparePartitions: (sql: Sql, table: MonthlyTable) => sql.dialect.partitions.prepare(sql, table),
      partitionStates: (sql: Sql, _: null) => sql.dialect.partitions.states(sql),
      /** Adds the locations of some keys to the filter. Returns the cursor of the next call, null at the end. */
      recordKeyLocations: async (sql: Sql, cursor: string) => {
        const locations = await keyLocationsAfter(sql, cursor, KEY_LOCATIONS_PER_CHUNK);
        for (const { hash, workspace_id } of locations) keyFilter!.add(keyLocation(hash, workspace_id));
        return locations.length < KEY_LOCATIONS_PER_CHUNK ? null : locations.at(-1)!.id;
      },
    },
    writing: {
      ...ofOperations.writing,
      createNamespaces: (sql: Sql, use: FirstUse) => createNamespaces(sql, use, { random, limits }),
      ...ofAdministration.writing,
      ...ofSessions.writing,
      createSignInLink: (sql: Sql, { rootKeyId, now }: { rootKeyId: string; now: Instant }) =>
        createLink(sql, { rootKeyId, now }, systemSecrets),
      insertDemoRows: (sql: Sql, rows: DemoRows) => insertDemoRows(sql, rows),
      ...ofCredits.writing,
      ...ofEvents.writing,
      ...ofLeaks.writing,
      ...ofWebhooks.writing,
      ...leaseProcedures.writing,
      migrate: (sql: Sql, _: null) => migrate(sql),
      /** Migrates a database to copy to. A new one is an unfinished copy of `source` from the same commit on. */
      prepareCopy: async (sql: Sql, { source, now }: { source: string; now: Instant }) => {
        const isNew = (await schemaState(sql)).database === 0;
        await migrate(sql);
        if (isNew) await insertPreparedCopy(sql, source, now);
      },
      /** Migrates the database and creates what the first call needs, in one transaction. */
      prepare: async (sql: Sql, options: { now: Instant; rootKey: string | undefined }) => {
        await migrate(sql);
        await requireServable(sql);
        await vault.check(sql);
        if (keyFilter) await watchKeyLocations(sql);
        const tokenKey = await ensureTokenKey(sql, systemSecrets);
        return { ...(await ofAdministration.writing.establish(sql, options)), tokenKey };
      },
      /** Records the first verifications of imported keys. Returns the change. */
      recordFirstUses: async (sql: Sql, { uses, now }: { uses: readonly ImportedKeyUse[]; now: Instant }) => {
        await recordFirstUses(sql, uses, HASH_VERSION);
        const tags = uses.flatMap(({ keyId, hash }) => (hash === null ? [keyId] : [keyId, hash]));
        return { tags, sequence: await insertChange(sql, tags, now) };
      },
      createUpstreamKey: (sql: Sql, key: UpstreamKey) => createUpstreamKey(sql, key, random, limits),
      recordKeyUses: (sql: Sql, uses: readonly KeyUse[]) => recordKeyUses(sql, uses, random),
      recordRootKeyUses: (sql: Sql, uses: readonly RootKeyUse[]) => recordRootKeyUses(sql, uses),
      /** One step of a rotation of the vault's master key, to the key with this fingerprint. */
      rotateVault: (sql: Sql, to: string) => vault.rotateStep(sql, to),
      vaultRotation: (sql: Sql, _: null) => vault.rotation(sql),
      checkVault: (sql: Sql, _: null) => vault.check(sql),
      once,
      probeWrites: (sql: Sql, _: null) => probeWrites(sql),
      retain: (sql: Sql, { table, ...step }: RetentionStep & { table: RetentionTable; lease: Lease }) =>
        retain(sql, retentionTasks[table], step),
      changeLayout: (sql: Sql, step: LayoutStep) => changeLayout(sql, step),
      undoDivision: (sql: Sql, step: Omit<LayoutStep, "keep">) => undoDivision(sql, step),
      keepRedisEpoch: (sql: Sql, epoch: RedisEpoch) => putRedisEpoch(sql, epoch),
      keepPartitionEpochs: (sql: Sql, epochs: readonly PartitionEpoch[]) => putPartitionEpochs(sql, epochs),
    },
    mayTakeLong,
    hasMarkers: true,
    functions: {
      [RECORD_KEY_LOCATION](hash: string, workspaceId: string) {
        keyFilter?.add(keyLocation(hash, workspaceId));
        return null;
      },
    },
  };
  // Work that calls of the control plane must not delay; see `PoolName`.
  const pools: PoolsOf<typeof procedures> = {
    readChanges: "feed",
    keysAt: "lookup",
    rootKeysByHashes: "lookup",
    workspacesByIds: "lookup",
    keyMigrationsByReferences: "lookup",
    namespacesByReferences: "lookup",
    sessionsByHashes: "lookup",
    portalSessionsByHashes: "lookup",
    spend: "ledger",
    readBalances: "ledger",
    once: "metered",
    idempotencyRecords: "metered",
    upstreamVerifier: "metered",
    createUpstreamKey: "metered",
    recordFirstUses: "metered",
    createNamespaces: "metered",
    migrate: "maintenance",
    prepareCopy: "maintenance",
    prepare: "maintenance",
    rotateVault: "maintenance",
    recordKeyUses: "maintenance",
    recordRootKeyUses: "maintenance",
    recordExceeded: "maintenance",
    recordAuthFailures: "maintenance",
    sweepRefills: "maintenance",
    retain: "maintenance",
    retentionLag: "maintenance",
    changeLayout: "maintenance",
    undoDivision: "maintenance",
    findExpiryStep: "maintenance",
    recordExpiries: "maintenance",
    findUnusedStep: "maintenance",
    recordUnused: "maintenance",
    partitionStates: "maintenance",
    indexDeletedRows: "layout",
    preparePartitions: "layout",
    redisEpoch: "maintenance",
    keepRedisEpoch: "maintenance",
    schemaState: "maintenance",
    partitionEpochs: "maintenance",
    keepPartitionEpochs: "maintenance",
    missingParts: "maintenance",
    orphans: "maintenance",
    brokenRules: "maintenance",
    sequences: "maintenance",
    digestRows: "maintenance",
  };
  return { ...procedures, pools };
}

/** The thread of the embedded database opens the default export of its module. */
export default openProcedures;

export type AppProcedures = ReturnType<typeof openProcedures>;
