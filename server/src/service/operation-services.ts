import { addressList } from "../../../engine/src/rules/address.ts";
import { Explainer } from "../../../engine/src/verification/explainer.ts";
import { Namespaces } from "../../../engine/src/verification/namespaces.ts";
import { OwnKeys } from "../../../engine/src/verification/own-keys.ts";
import { oldestKept } from "../features/analytics/levels.ts";
import { AnalyticsQueries } from "../features/analytics/queries.ts";
import { OwnDerivations } from "../features/keys/own-derivation.ts";
import { namespaceCreation } from "../features/ratelimits/namespace-creation.ts";
import type { Services } from "../features/services.ts";
import type { CallQueues } from "../platform/rpc/call-queues.ts";
import { FairQueue } from "../platform/rpc/fair-queue.ts";
import type { QuotaCounts } from "../platform/rpc/quota-counts.ts";
import type { NodeDescription } from "./node.ts";
import type { Parts, Start } from "./open.ts";
import type { Totals } from "./workers/totals.ts";

const HOLDING = { runningMax: 3, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 5_000 };

/** The parts of the wiring that operations use. */
interface Wiring
  extends Pick<
    Services,
    "verification" | "ledger" | "openHolds" | "holdSubjects" | "replays" | "recorder" | "leaks" | "oauth" | "replicas"
  > {
  queues: CallQueues;
  quotas: QuotaCounts;
  node: NodeDescription;
  totals: Totals;
}

/** What operations get on the main thread. */
export function operationServices(
  { config, clock, folder }: Start,
  { store, directories, limits: { limiter }, analytics }: Parts,
  {
    verification,
    ledger,
    openHolds,
    holdSubjects,
    replays,
    recorder,
    leaks,
    oauth,
    replicas,
    queues,
    quotas,
    node,
    totals,
  }: Wiring,
): Services {
  return {
    clock,
    verification,
    ledger,
    openHolds,
    holdSubjects,
    replicas,
    explainer: new Explainer(clock, directories, limiter),
    ownKeys: new OwnKeys(clock, directories, limiter),
    derivations: new OwnDerivations({
      clock,
      limiter,
      queues,
      quotas,
      perMinute: config.derivedKeys.perMinute,
      transact: (derivation) => store.transact("deriveForHolder", derivation),
    }),
    limiter,
    replays,
    recorder,
    leaks,
    oauth,
    reads: queues.reads,
    holders: new FairQueue(HOLDING),
    keys: { origins: (question) => store.read("keyOrigins", question) },
    namespaces: new Namespaces({
      directories,
      create: namespaceCreation({ clock, queues, quotas, transact: (use) => store.transact("createNamespaces", use) }),
    }),
    analytics: new AnalyticsQueries({
      isOn: recorder !== null,
      stats: (query) => analytics.stats(query),
      counts: (query) => analytics.counts(query),
      top: (query) => analytics.top(query),
      decisions: (query) => analytics.decisions(query),
      names: (subjects) => store.read("names", subjects),
      oldest: (level, now) => oldestKept(level, config.analytics.retention, now),
    }),
    node: {
      id: folder.holder,
      status: async () => node.status(),
      async serviceStatus() {
        await totals.refresh();
        return node.serviceStatus();
      },
      async decisions(workspaceId, since, now) {
        await totals.refresh();
        return analytics.recorder.decisions.latest(workspaceId, since, now);
      },
    },
    gateways: { trustedProxies: addressList(config.trustedProxies) },
    portal: { keysPerDay: config.portal.keysPerDay },
  };
}
