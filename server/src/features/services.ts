import type { Clock, Instant } from "../../../engine/src/clock/clock.ts";
import type { Ledger } from "../../../engine/src/credits/ledger.ts";
import type { Charge, LimitDecision } from "../../../engine/src/limits/counters.ts";
import type { Limiter } from "../../../engine/src/limits/limiter.ts";
import type { ReplayStore } from "../../../engine/src/limits/replay-store.ts";
import type { AddressList } from "../../../engine/src/rules/address.ts";
import type { Explainer } from "../../../engine/src/verification/explainer.ts";
import type { Namespaces } from "../../../engine/src/verification/namespaces.ts";
import type { OwnKeys } from "../../../engine/src/verification/own-keys.ts";
import type { KeyOrigins, KeyOriginsQuestion } from "../../../engine/src/verification/stored.ts";
import type { Verification } from "../../../engine/src/verification/verification.ts";
import { grpcMethodsUsing } from "../platform/grpc/method.ts";
import type { FairQueue } from "../platform/rpc/fair-queue.ts";
import { usingServices } from "../platform/rpc/operation.ts";
import type { Principal } from "../platform/rpc/principal.ts";
import type { Decision } from "./analytics/decisions.ts";
import type { AnalyticsQueries } from "./analytics/queries.ts";
import type { Recorder } from "./analytics/recorder.ts";
import type { HoldSubjects } from "./holds/hold-subjects.ts";
import type { OpenHolds } from "./holds/open-holds.ts";
import type { OwnDerivations } from "./keys/own-derivation.ts";
import type { LeakReports } from "./leaks/reports.ts";
import type { AccessTokens } from "./oauth/access-tokens.ts";
import type { KeyFacts } from "./oauth/key-facts.ts";
import type { ReplicaServices } from "./replica/service.ts";
import type { NodeStatus, ServiceStatus } from "./system/fields.ts";

/** What operations use on the main thread. Only types come from there: handlers run in the thread of the database too. */
export interface Services {
  readonly analytics: Pick<AnalyticsQueries, "isOn" | "oldest" | "stats" | "count" | "countEach" | "rank" | "find">;
  /** What this node knows without the database. */
  readonly node: {
    status(): Promise<NodeStatus>;
    /** What only root keys of the default workspace may know. */
    serviceStatus(): Promise<ServiceStatus>;
    /** Identifies the node among all. */
    readonly id: string;
    /** A sample of the recent decisions of the workspace, the newest first. */
    decisions(workspaceId: string, since: number, now: Instant): Promise<Iterable<Decision>>;
  };
  readonly verification: Pick<Verification, "verify" | "inspect" | "watch">;
  readonly explainer: Pick<Explainer, "explain">;
  readonly ownKeys: Pick<OwnKeys, "find" | "findParent" | "readLimits">;
  /** Derives keys for holders. */
  readonly derivations: Pick<OwnDerivations, "derive">;
  readonly keys: {
    /** What the record of a key leaves out. */
    origins(question: KeyOriginsQuestion): Promise<KeyOrigins>;
  };
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly replicas: ReplicaServices;
  readonly limiter: Limiter;
  readonly replays: ReplayStore;
  readonly ledger: Pick<Ledger<readonly Charge[], LimitDecision>, "change">;
  readonly openHolds: Pick<OpenHolds, "remove">;
  /** What is needed to change a hold. */
  readonly holdSubjects: Pick<HoldSubjects, "find" | "remove">;
  /** Records the decisions of metered operations; null: analytics are off. */
  readonly recorder: Recorder | null;
  readonly namespaces: Pick<Namespaces<Principal>, "find" | "create">;
  readonly leaks: Pick<LeakReports, "accept">;
  /** The queue of reads of the database. */
  readonly reads: Pick<FairQueue, "run">;
  /** The queue of holders of keys, of whom thousands read in one second when each of their clients starts with it. */
  readonly holders: Pick<FairQueue, "run">;
  readonly portal: {
    /** New keys of an owner. */
    readonly keysPerDay: number;
  };
  readonly gateways: {
    /** Proxies whose `X-Forwarded-For` counts. */
    readonly trustedProxies: AddressList | null;
  };
  readonly oauth: {
    /** Undefined: access tokens are off. */
    readonly tokens: Pick<AccessTokens, "issue" | "read"> | undefined;
    readonly facts: Pick<KeyFacts, "place" | "createdAt">;
    /** The resources for which keys of an API get access tokens. */
    resources(api: { workspaceId: string; apiId: string }): Promise<readonly string[]>;
    /** The queue of signatures. */
    readonly issuing: Pick<FairQueue, "run">;
  };
}

export const { analysis, limitedMutation, metered, pagedAnalysis } = usingServices<Services>();

/** Declares a method of gRPC. */
export const grpcMethod = grpcMethodsUsing<Services>();
