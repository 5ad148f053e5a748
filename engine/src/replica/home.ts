import type { Milliseconds } from "../clock/clock.ts";
import type { DirectoryLimit } from "../directory/stored.ts";
import { decideByCall } from "../errors/decided-elsewhere.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";

/**
 * The service, as a replica asks it: the operations `replica.*`. Each method rejects with `HomeUnavailable` if there was no
 * usable answer, and with `ReplicaRefused` if home no longer accepts the replica; `charge` with `DecidedElsewhere` if home cannot read the
 * question, and each call is to be asked alone. Answers may have further members.
 */
export interface Home {
  listChanges(question: ChangesQuestion): Promise<ChangesAnswer>;
  /** Rejects with `OperationUnknown` if home is of a release that cannot read the question. */
  resolveKeys(question: RecordsQuestion): Promise<RecordsAnswer>;
  charge(question: ChargeQuestion): Promise<ChargeAnswer>;
  /** Rejects with `OperationUnknown` if home is of a release without leases. */
  lease(question: LeaseQuestion): Promise<LeaseAnswer>;
}

/** Home did not answer, or could not. What was asked may have happened. */
export class HomeUnavailable extends StoreUnavailable {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "HomeUnavailable";
  }
}

/** Home is of a release that does not have an operation, or a member of the question. */
export class OperationUnknown extends HomeUnavailable {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "OperationUnknown";
  }
}

/** Home cannot read a position, such as one of another release. It may be asked again without one. */
export class PositionUnreadable extends HomeUnavailable {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PositionUnreadable";
  }
}

/** What answered in the place of home, or home of another release, gave an answer that is none of the operation. */
export class UnusableAnswer extends HomeUnavailable {
  readonly operation: string;

  constructor(operation: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "UnusableAnswer";
    this.operation = operation;
  }
}

/** Home refuses the root key of the replica. Nothing that it knows may be used any more. */
export class ReplicaRefused extends StoreUnavailable {
  constructor(message: string) {
    super(message);
    this.name = "ReplicaRefused";
  }
}

/** Home will not take a report, however often it is sent. */
export class ReportRejected extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ReportRejected";
  }
}

/** Home has failed at a report, and is not away: it may be the report that it fails at. */
export class ReportFailed extends HomeUnavailable {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ReportFailed";
  }
}

/** The answer of home to an operation of replicas that it did not succeed in. Undefined status: there was none. */
export interface FailedAnswer {
  readonly operation: string;
  readonly status: number | undefined;
  readonly detail: string;
  readonly cause?: unknown;
}

/** What an answer means that is none of its operation. Whoever gave it may have done so because of what is in a report. */
export function unusableAnswer(operation: string, detail: string, cause?: unknown): HomeUnavailable {
  const error = new UnusableAnswer(operation, detail, { cause });
  return operation === "replica.report" ? new ReportFailed(detail, { cause: error }) : error;
}

/** Throws what an answer means that is not a success. */
export function rejectAnswer({ operation, status = 0, detail, cause }: FailedAnswer): never {
  // Home answers 200 with data. So somebody else has answered, such as a proxy before it.
  if (status >= 200 && status < 400) throw unusableAnswer(operation, detail, cause);
  if (operation === "replica.report" && isRejection(status)) throw new ReportRejected(detail);
  if (operation === "replica.report" && isFailure(status)) throw new ReportFailed(detail, { cause });
  if (status === 404 || (operation === "replica.resolveKeys" && status === 400)) {
    throw new OperationUnknown(detail, { cause });
  }
  if (operation === "replica.listChanges" && status === 400) throw new PositionUnreadable(detail, { cause });
  if (status === 401 || status === 403) throw new ReplicaRefused(detail);
  // One call of a question that is not valid concerns no other one: each is asked alone.
  if (operation === "replica.charge" && (status === 400 || status === 413)) decideByCall();
  throw new HomeUnavailable(detail, { cause });
}

/**
 * Whether home has judged a report, and will not judge it otherwise. Not so with the root key (401), where something else than the
 * service answers (404), and where home wants to be asked again.
 */
function isRejection(status: number): boolean {
  return status >= 400 && status < 500 && ![401, 404, 408, 425, 429].includes(status);
}

/** Whether home has failed at a question. Gateways and the service itself say with other statuses that it is away. */
function isFailure(status: number): boolean {
  return status >= 500 && ![502, 503, 504].includes(status);
}

/** What home shows of a replica. */
export interface ReplicaStatus {
  readonly id: string;
  readonly kind: "process" | "library";
  readonly version: string;
  readonly name?: string;
  /** Cached records. */
  readonly records: number;
  /** Counts that wait to be delivered. */
  readonly reports: number;
  /** Leases of limits. Omitted if there are none: a home that gives none does not know this member. */
  readonly leases?: number;
}

export interface ChangesQuestion {
  /** Keys the tags of the answer. */
  readonly tagKey: string;
  /** That of the last answer. Omitted: the present one. */
  readonly position?: string;
  /** How long home may wait for a change, in milliseconds. */
  readonly wait: Milliseconds;
  readonly edge: ReplicaStatus;
}

export interface ChangesAnswer {
  readonly position: string;
  /** Milliseconds between home's last read of its changes and the arrival of the question; negative if it was read after that. */
  readonly age: Milliseconds;
  /** Whether everything may have changed. */
  readonly isLost: boolean;
  /** Those of what changed: see `keyedTag`. */
  readonly tags: readonly string[];
  /** Whether there are further ones: ask again at once. */
  readonly hasMore: boolean;
  readonly workspaceId: string;
  /** Whether callers without a root key are answered in this workspace. */
  readonly allowsAnonymous: boolean;
}

export interface RecordsQuestion {
  readonly position?: string;
  /** Hashes of key strings. */
  readonly keys?: readonly string[];
  /** Hashes of root keys. */
  readonly rootKeys?: readonly string[];
  /** Names or ids of rate limit namespaces. */
  readonly namespaces?: readonly string[];
  /** Whether to give the record of the workspace. */
  readonly workspace?: boolean;
}

/** What only home can judge. */
export interface Elsewhere {
  readonly isElsewhere: true;
}

export interface RecordsAnswer {
  /** In the order of the question. Null: there is none. */
  readonly keys: readonly (ReplicaKey | DeletedReplicaKey | Elsewhere | null)[];
  readonly rootKeys: readonly (ReplicaRootKey | Elsewhere | null)[];
  /** Absent if the question has none. */
  readonly namespaces?: readonly (ReplicaNamespace | Elsewhere | null)[];
  readonly workspace?: ReplicaWorkspace;
}

/** A rate limit namespace in which this replica may count. */
export interface ReplicaNamespace {
  readonly namespaceId: string;
}

export interface DeletedReplicaKey {
  readonly isDeleted: true;
  readonly keyId: string;
  readonly apiId: string;
  readonly identityId: string | null;
}

export interface ReplicaKey {
  readonly keyId: string;
  readonly apiId: string;
  readonly poolId: string;
  readonly name: string | null;
  /** JSON, or null. */
  readonly meta: string | null;
  readonly enabled: boolean;
  readonly workspaceEnabled: boolean;
  /** Epoch milliseconds. */
  readonly expiresAt: number | null;
  /** JSON array of CIDRs, or null. */
  readonly allowedIps: string | null;
  readonly apiAllowedIps: string | null;
  readonly identity: {
    readonly id: string;
    readonly externalId: string;
    /** JSON, or null. */
    readonly meta: string | null;
    readonly ratelimits: readonly DirectoryLimit[];
  } | null;
  readonly ratelimits: readonly DirectoryLimit[];
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
  /** What judging the key needs beyond these members. */
  readonly needs: readonly string[];
}

export interface ReplicaRootKey {
  readonly rootKeyId: string;
  readonly grants: readonly string[];
  readonly enabled: boolean;
  readonly expiresAt: number | null;
  readonly workspaceEnabled: boolean;
  readonly requestsPerMinute: number | null;
}

export interface ReplicaWorkspace {
  readonly id: string;
  readonly enabled: boolean;
  readonly hasImportedKeys: boolean;
  readonly hasSha512Keys: boolean;
  readonly hasUpstreams: boolean;
}

/** Whose call it is. */
export interface ChargeCaller {
  /**
   * The hash of its root key, which home judges too, until the call is charged. Omitted: it has none, or the caller is the
   * replica itself.
   */
  readonly rootKey?: string;
}

/** A verification whose limits, credits or budgets home charges. Its fields are those of `keys.verifyKey`. */
export interface ChargeCall extends ChargeCaller {
  /** The hash of the key string. */
  readonly hash: string;
  /** Whether the caller sent no root key. */
  readonly isAnonymous: boolean;
  readonly apiId?: string | undefined;
  readonly keyspaces?: readonly string[] | undefined;
  readonly permissions?: string | undefined;
  readonly ratelimits?: readonly object[] | undefined;
  readonly credits?: { readonly cost: number } | undefined;
  readonly tags?: readonly string[] | undefined;
  /** That of the caller, for lists of allowed addresses. */
  readonly address: string;
}

/** A call of `ratelimits.limit`, with one entry, or of `ratelimits.multiLimit`. */
export interface LimitCall extends ChargeCaller {
  readonly operation: "ratelimits.limit" | "ratelimits.multiLimit";
  readonly entries: readonly LimitEntry[];
  /** That of the caller. Omitted: the caller is the replica itself. */
  readonly address?: string;
}

export interface LimitEntry {
  /** As the caller names it. */
  readonly namespace: string;
  /** That in which the caller may count. Omitted: the caller is the replica itself. */
  readonly namespaceId?: string;
  readonly identifier: string;
  readonly limit: number;
  readonly duration: number;
  readonly mode?: "standard" | "strict" | undefined;
  readonly shadow?: boolean | undefined;
  readonly cost?: number | undefined;
}

/** A question of the rate limit service of Envoy. Only home knows what is limited. */
export interface DescriptorCall extends ChargeCaller {
  readonly operation: "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
  /** That in which the caller may count. */
  readonly namespaceId: string;
  /** As it arrived, in base64. */
  readonly message: string;
  readonly address: string;
}

export interface ChargeQuestion {
  readonly position?: string;
  readonly calls?: readonly ChargeCall[];
  readonly limits?: readonly (LimitCall | DescriptorCall)[];
}

export interface ChargeAnswer {
  /** In the order of the calls. */
  readonly results: readonly ChargeResult[];
  /** In their order. */
  readonly limits?: readonly ChargeResult[];
}

/** The data of the answer of the operation, with its headers if it has some, or its problem. */
export type ChargeResult =
  | { readonly data: object; readonly headers?: Readonly<Record<string, string>> }
  | { readonly problem: ChargeProblem }
  /** Of calls of limits: they must be passed on whole. */
  | Elsewhere;

export interface ChargeProblem {
  readonly code: string;
  /** Its type in errors of the API, such as `data/key_not_found`. */
  readonly type: string;
  readonly status: number;
  readonly detail: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface LeaseQuestion {
  readonly position?: string;
  readonly leases: readonly LeaseRequest[];
}

/** Asks for an amount of a limit, and returns what is left of ended leases of it. */
export interface LeaseRequest {
  readonly key: {
    /** Of a key that has the limit. */
    readonly hash: string;
    /** That of the limit. */
    readonly name: string;
    readonly owner: "key" | "identity";
  };
  /** Home gives nothing if the limit is another one there. */
  readonly limit: number;
  readonly duration: Milliseconds;
  /** The amount; 0: none. */
  readonly want: number;
  readonly returns?: readonly LeaseReturn[];
}

/** What was spent of a lease that has ended. Home takes it once. */
export interface LeaseReturn {
  readonly id: string;
  readonly amount: number;
  readonly spent: number;
}

export interface LeaseAnswer {
  /** In the order of the question. Null: no lease. */
  readonly leases: readonly (LeaseGrant | null)[];
}

/** An amount of a limit that home has subtracted. */
export interface LeaseGrant {
  readonly id: string;
  readonly amount: number;
  /** What remains at home besides. */
  readonly remaining: number;
  /** The end of the window, by the clock of home. */
  readonly reset: number;
  /** From the grant until the lease ends. */
  readonly expiresIn: Milliseconds;
}
