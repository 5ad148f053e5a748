import type { DirectorySource } from "../../../../engine/src/directory/directories.ts";
import type { LookupRateLimiter } from "../../../../engine/src/directory/lookup-rate-limiter.ts";
import type { Leases } from "../../../../engine/src/limits/leases.ts";
import type { KeyLookup } from "../../../../engine/src/verification/key-lookup.ts";
import type { Authenticator } from "../../platform/rpc/authenticate.ts";
import type { FairQueue } from "../../platform/rpc/fair-queue.ts";
import type { Problem } from "../../platform/rpc/problems.ts";
import type { RootKeyUse } from "../../platform/store/access/root-key-usage.ts";
import type { Edges } from "./edges.ts";
import type { ReadRecords } from "./read-records.ts";
import type { ReplicaReports } from "./reports.ts";
import type { ReportedIds, ReportedOwners } from "./statements.ts";
import type { ReplicaStream } from "./stream.ts";

/**
 * What the operations of edges use. Their queues are their own, so that edges without records cannot take the database from
 * direct callers.
 */
export interface ReplicaServices {
  readonly stream: Pick<ReplicaStream, "follow" | "reach">;
  readonly edges: Pick<Edges, "note" | "list">;
  readonly source: Pick<DirectorySource, "keysAt" | "derivedKeysAt" | "rootKeysByHashes" | "workspaces">;
  /** Of the keys, since the last change. */
  readonly records: Pick<ReadRecords, "current">;
  /** Look-ups of hashes that are unknown, by root key. */
  readonly lookups: Pick<LookupRateLimiter, "begin" | "end" | "spend">;
  readonly resolving: Pick<FairQueue, "run">;
  readonly charging: Pick<FairQueue, "run">;
  readonly leasing: Pick<FairQueue, "run">;
  readonly reporting: Pick<FairQueue, "run">;
  /** Records as verifications of this node use them. */
  readonly keys: Pick<KeyLookup, "findSought">;
  readonly leases: Pick<Leases, "grant" | "takeBack">;
  /** Null: analytics are off. */
  readonly reports: Pick<ReplicaReports, "accept"> | null;
  readonly authenticator: Pick<Authenticator, "authenticateHash">;
  /** Notes when root keys were last used. */
  recordRootKeyUses(uses: readonly RootKeyUse[]): void;
  findReported(ids: ReportedIds): Promise<ReportedOwners>;
  readonly verifyAuth: "optional" | "required";
  /** The workspace of callers without a root key. */
  readonly defaultWorkspaceId: string;
  newRequestId(): string;
  /** What a caller is told of an error. Bugs are reported. */
  problemOf(error: unknown, requestId: string): Problem;
}
