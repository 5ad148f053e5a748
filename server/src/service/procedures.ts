import type { Instant } from "../../../engine/src/clock/clock.ts";
import { BloomFilter, type BloomFilterState } from "../../../engine/src/crypto/bloom-filter.ts";
import { systemSecrets } from "../../../engine/src/crypto/secret.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import { nameProcedures } from "../features/analytics/subjects.ts";
import { budgetRules } from "../features/budgets/statements.ts";
import { creditProcedures } from "../features/credits/procedures.ts";
import { balanceRules } from "../features/credits/statements/balances.ts";
import { slotRules } from "../features/credits/statements/slots.ts";
import { DASHBOARD, dashboardCallerInTransaction, sessionProcedures } from "../features/dashboard/procedures.ts";
import type { DatabaseServices } from "../features/database-services.ts";
import { eventProcedures } from "../features/events/procedures.ts";
import { holdProcedures } from "../features/holds/procedures.ts";
import { holdRules } from "../features/holds/statements.ts";
import { DERIVATION_BOUNDS, type DerivationBounds } from "../features/keys/derivation.ts";
import { keyProcedures } from "../features/keys/procedures.ts";
import { derivedKeyRules } from "../features/keys/statements/derived-keys.ts";
import { watchKeyLocations } from "../features/keys/statements/key-locations.ts";
import { keyRules } from "../features/keys/statements/keys.ts";
import { leakProcedures } from "../features/leaks/procedures.ts";
import { oauthProcedures } from "../features/oauth/procedures.ts";
import { planProcedures } from "../features/plans/procedures.ts";
import { planRules } from "../features/plans/statements/plans.ts";
import { PORTAL } from "../features/portal/portal-caller.ts";
import { portalProcedures } from "../features/portal/procedures.ts";
import { portalCallerInTransaction } from "../features/portal/session-principal.ts";
import { ratelimitProcedures } from "../features/ratelimits/procedures.ts";
import { replicaProcedures } from "../features/replica/statements.ts";
import { upstreamProcedures } from "../features/upstreams/procedures.ts";
import { webhookProcedures } from "../features/webhooks/procedures.ts";
import { administrationProcedures } from "../features/workspaces/procedures.ts";
import { findUrlFault } from "../platform/outbound/url.ts";
import { operationProcedures, type SessionCallers } from "../platform/rpc/execute.ts";
import { ensureTokenKey } from "../platform/store/access/token-key.ts";
import type { StoreRules } from "../platform/store/inspection.ts";
import { joinProcedures } from "../platform/store/join-procedures.ts";
import { leaseProcedures } from "../platform/store/lease.ts";
import { migrate } from "../platform/store/migrate.ts";
import { requireServable } from "../platform/store/move/marks.ts";
import { storeProcedures } from "../platform/store/procedures.ts";
import { BYTES_MAX, defaultMaxima } from "../platform/store/quotas/quotas.ts";
import type { QuotaLimits } from "../platform/store/quotas/workspace-usage.ts";
import type { PoolsOf, Sql } from "../platform/store/store.ts";
import { vaultRules } from "../platform/store/vault.ts";
import { KeyRing, type KeyRingSource } from "../platform/vault/key-ring.ts";
import { vaultProcedures } from "../platform/vault/procedures.ts";
import { Vault } from "../platform/vault/vault.ts";
import { operations, portalOperations } from "./operations.ts";
import { lateIndexes, retentionTasks } from "./retention-tasks.ts";

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
  /** What the owner of keys may derive. Omitted: the defaults of the settings. */
  derivedKeys?: DerivationBounds | undefined;
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
const rules: StoreRules = {
  ...balanceRules,
  ...budgetRules,
  ...derivedKeyRules,
  ...holdRules,
  ...keyRules,
  ...planRules,
  ...slotRules,
  ...vaultRules,
};

/** How transactions read the callers of sessions. */
const sessions: SessionCallers = {
  [DASHBOARD]: dashboardCallerInTransaction,
  [PORTAL]: portalCallerInTransaction,
};

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
  const { portalEndedKeysMax = 20, derivedKeys = DERIVATION_BOUNDS, limits = defaultLimits } = options;
  const vault = new Vault(new KeyRing(keyRingSource));
  const random = seed === undefined ? systemRandom : seededRandom(seed);
  const secrets = systemSecrets;
  const keyFilter = filterState && new BloomFilter(filterState);
  const ofAdministration = administrationProcedures({ random, secrets });
  const starting = {
    reading: {},
    writing: {
      /** Migrates the database and creates what the first call needs, in one transaction. */
      prepare: async (sql: Sql, options: { now: Instant; rootKey: string | undefined }) => {
        await migrate(sql);
        await requireServable(sql);
        await vault.check(sql);
        if (keyFilter) await watchKeyLocations(sql);
        const tokenKey = await ensureTokenKey(sql, secrets);
        return { ...(await ofAdministration.writing.establish(sql, options)), tokenKey };
      },
    },
  };
  const services: DatabaseServices = {
    portal: { endedKeysMax: portalEndedKeysMax },
    derivedKeys,
    webhooks: { findUrlFault: (url) => findUrlFault(url, allowPrivateWebhooks) },
    upstreams: { findUrlFault: (url) => findUrlFault(url, allowPrivateUpstreams) },
  };
  const pools: PoolsOf<typeof starting> = { prepare: "maintenance" };
  const procedures = joinProcedures(
    storeProcedures({ retentionTasks, lateIndexes, rules }),
    leaseProcedures,
    operationProcedures([...operations, ...portalOperations], {
      random,
      secrets,
      vault,
      publicUrl,
      sessions,
      services,
      limits,
    }),
    { ...starting, pools },
    ofAdministration,
    sessionProcedures({ random, secrets }),
    portalProcedures,
    vaultProcedures(vault),
    keyProcedures({
      random,
      secrets,
      keyFilter,
      openPepper: vault.openPepper.bind(vault),
      derivedKeys,
      sessions,
      limits,
    }),
    planProcedures,
    leakProcedures({ random }),
    upstreamProcedures({ random, vault, limits }),
    creditProcedures(random),
    holdProcedures,
    ratelimitProcedures({ random, sessions, limits }),
    nameProcedures,
    replicaProcedures,
    eventProcedures({ random }),
    webhookProcedures({ random, vault }),
    oauthProcedures({ random, vault }),
  );
  return { ...procedures, mayTakeLong, hasMarkers: true };
}

/** The thread of the embedded database opens the default export of its module. */
export default openProcedures;

export type AppProcedures = ReturnType<typeof openProcedures>;
