import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { HoldRequest } from "../credits/hold.ts";
import type { LimitDecision } from "../limits/counters.ts";
import type { Replay, ReplayableCall } from "../limits/replay-store.ts";
import type { NamedLimit, SelectedLimits } from "./limits.ts";

/** One verification as an operation asks for it. */
export interface VerificationRequest {
  /** The key string that the caller presented. Empty with `sought`. */
  key: string;
  /** What finds the key in place of its string, which is not known. */
  sought?: SoughtHash | undefined;
  /** The name of the migration that imported the key, if the caller gives one. */
  migrationId?: string | undefined;
  /** The key must belong to this API. */
  apiId?: string | undefined;
  /** The key must belong to one of these APIs. */
  keyspaces?: readonly string[] | undefined;
  /** A permission query that the key must satisfy. */
  permissions?: string | undefined;
  /** Limits to charge by name. */
  ratelimits?: readonly NamedLimit[] | undefined;
  /** The price of the verification if the key has credits or budgets; 1 when omitted. */
  credits?: { cost: number } | undefined;
  /** Holds the cost instead of spending it. Only with a root key. */
  hold?: Pick<HoldRequest, "ttl" | "onExpiry"> | undefined;
  /** Set when the caller may repeat the call. Repetitions are charged once. */
  idempotent?: ReplayableCall | undefined;
  /** The workspace in which to look up the key. */
  workspaceId: string;
  /** The caller; null without a root key. */
  principal: Caller | null;
  /** The caller's address, for the allow-list of the API. */
  address: string;
  /** Identifies the call in its answer and in the log of decisions. */
  requestId: string;
  /** Labels for the analytics. */
  tags?: readonly string[] | undefined;
  /** Set if an upstream verifier knew the key, which was created then. */
  isKnownUpstream?: true;
  /** What the limits of the call have decided already. Set if the key or the caller changed meanwhile: only they are judged again. */
  charged?: { readonly selected: SelectedLimits; readonly decided: LimitDecision | Replay };
  now: Instant;
  /** Monotonic start time of the call. */
  startedAt: Milliseconds;
}

/** The cost of a verification that names none. */
export const COST_DEFAULT = 1;

/** Where a key is stored, within its workspace. */
export interface KeyPlace {
  readonly hash: string;
  /** Null unless the key is found only through its migration. */
  readonly migrationId: string | null;
  readonly isDerived?: boolean;
}

/** The hash of a key whose string somebody else has read: a call of an edge. */
export interface SoughtHash {
  readonly hash: string;
  /** The edge. It is judged in place of the caller, also after a wait, if the call has no root key. */
  readonly edge: Caller;
  /** Whether this caller, or the edge for one without a root key, may find keys of the API in this way. */
  opens(apiId: string, caller: Caller): boolean;
  /** Runs a look-up of a key that nobody has asked for before, and counts it if there is none. */
  lookUp<R>(load: () => Promise<R | null>): Promise<R | null>;
}

/** The holder of a root key. */
export interface Caller {
  /** A replica names it to home, where the caller is not the replica itself. */
  readonly rootKeyHash?: string | undefined;
  may(requirement: string): boolean;
  /** Whether the root key is still valid, as it was when the call arrived. */
  isCurrent(now: Instant): boolean;
  /** Authenticates again with the same root key. Throws or rejects when it is no longer valid. */
  renew(now: Instant): Caller | Promise<Caller>;
}

/** Every code that a verification can answer with. */
export const verificationCodes = [
  "VALID",
  "NOT_FOUND",
  "FORBIDDEN",
  "INSUFFICIENT_PERMISSIONS",
  "USAGE_EXCEEDED",
  "RATE_LIMITED",
  "DISABLED",
  "EXPIRED",
] as const;

export type VerificationCode = (typeof verificationCodes)[number];

/** An error in the request, found after the key was found. `message` describes it. */
export interface VerificationMistake {
  kind:
    | "query_unreadable"
    | "token_unreadable"
    | "limit_unknown"
    | "units_mixed"
    | "hold_limits_excessive"
    | "hold_required"
    | "replay_mismatched"
    | "replay_running";
  /** Undefined when the kind is explanation enough. */
  message?: string;
}

/** An answer, as JSON if nothing else is said, or an error in the request. */
export type VerificationAnswer<Answer = string> = Answer | VerificationMistake;

export function isMistake(answer: unknown): answer is VerificationMistake {
  return typeof answer === "object" && answer !== null && "kind" in answer;
}
