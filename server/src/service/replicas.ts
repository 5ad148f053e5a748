import { LookupRateLimiter } from "../../../engine/src/directory/lookup-rate-limiter.ts";
import { Leases } from "../../../engine/src/limits/leases.ts";
import { newRequestId } from "../../../engine/src/random/random.ts";
import { KeyLookup } from "../../../engine/src/verification/key-lookup.ts";
import { Edges } from "../features/replica/edges.ts";
import { ReadRecords } from "../features/replica/read-records.ts";
import { ReplicaReports } from "../features/replica/reports.ts";
import type { ReplicaServices } from "../features/replica/service.ts";
import { ReplicaStream } from "../features/replica/stream.ts";
import { FairQueue } from "../platform/rpc/fair-queue.ts";
import { directorySource } from "./directory-source.ts";
import type { Parts, Start } from "./open.ts";

/** Look-ups of records: of the connections for look-ups, some stay for direct callers. */
const RESOLVING = { runningMax: 2, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 2_000 };
/** Batches of calls. */
const CHARGING = { runningMax: 16, runningPerWorkspaceMax: 8, waitingPerWorkspaceMax: 2_000 };
/** Questions about leases, each of up to 256 limits. */
const LEASING = { runningMax: 8, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 2_000 };
/** Reports. One write takes several. */
const REPORTING = { runningMax: 32, runningPerWorkspaceMax: 16, waitingPerWorkspaceMax: 1_000 };

/** What edges use, and what is known of them. */
export interface Replicas extends ReplicaServices {
  readonly edges: Edges;
  readonly lookups: LookupRateLimiter;
  readonly resolving: FairQueue;
  readonly charging: FairQueue;
  readonly leasing: FairQueue;
  readonly leases: Leases;
  readonly reporting: FairQueue;
}

/** Opens what the operations of edges use. */
export function openReplicas(
  { config, clock, random }: Start,
  { store, directories, limits, analytics, workspaceId }: Parts,
  {
    authenticator,
    problemOf,
    recordRootKeyUses,
  }: Pick<ReplicaServices, "authenticator" | "problemOf" | "recordRootKeyUses">,
): Replicas {
  return {
    stream: new ReplicaStream({ clock, feed: directories.feed, follower: directories.changes }),
    edges: new Edges(clock),
    source: directorySource(store, clock),
    records: new ReadRecords(() => directories.feed.present()),
    lookups: new LookupRateLimiter(clock, config.lookupsPerSecond),
    resolving: new FairQueue(RESOLVING),
    charging: new FairQueue(CHARGING),
    leasing: new FairQueue(LEASING),
    reporting: new FairQueue(REPORTING),
    keys: new KeyLookup(directories),
    leases: new Leases(limits.lender, random),
    reports: config.analytics.enabled
      ? new ReplicaReports({
          clock,
          write: (batches) => analytics.addBatches(batches),
          addUses: (uses) => analytics.addUses(uses),
        })
      : null,
    findReported: (ids) => store.read("reportedOwners", ids),
    verifyAuth: config.verifyAuth,
    defaultWorkspaceId: workspaceId,
    newRequestId: () => newRequestId(random),
    problemOf,
    authenticator,
    recordRootKeyUses,
  };
}
