import type { KeyRecord } from "../directory/records.ts";
import type { LimitDecision } from "../limits/counters.ts";
import { isAllowed } from "../rules/address.ts";
import { type PermissionQuery, satisfies } from "../rules/permission-query.ts";
import type { VerificationCode, VerificationRequest } from "./request.ts";

/** The steps of a verification. */
export const stepNames = [
  "lookup",
  "deletion",
  "api",
  "rootKey",
  "workspace",
  "enabled",
  "expiry",
  "address",
  "permissions",
  "concurrency",
  "limits",
  "credits",
] as const;

export type Step = (typeof stepNames)[number];

/** A step that an explanation ran. */
export interface TracedStep {
  readonly step: Step;
  /** The code of a verification that fails here. */
  readonly code: VerificationCode;
  readonly isFailed: boolean;
}

/** What an explanation records. The first failed step decides. */
export type Trace = TracedStep[];

export function hasFailed(trace: Trace): boolean {
  return trace.some(({ isFailed }) => isFailed);
}

/**
 * The code of a step if it fails. With a trace, the step is recorded and always passes, so that the same code lists every
 * step in its order.
 */
export function codeOf(
  step: Step,
  code: VerificationCode,
  isFailed: boolean,
  trace: Trace | undefined,
): VerificationCode | undefined {
  if (trace !== undefined) {
    trace.push({ step, code, isFailed });
    return undefined;
  }
  return isFailed ? code : undefined;
}

/** Why a key that was found must look missing. */
export function codeOfVisibility(
  key: KeyRecord,
  { apiId, keyspaces, principal, sought }: VerificationRequest,
  trace?: Trace,
): VerificationCode | undefined {
  return (
    codeOf("deletion", "NOT_FOUND", key.isDeleted, trace) ??
    codeOf(
      "api",
      "NOT_FOUND",
      (apiId !== undefined && apiId !== key.apiId) || (keyspaces !== undefined && !keyspaces.includes(key.apiId)),
      trace,
    ) ??
    codeOf(
      "rootKey",
      "NOT_FOUND",
      sought === undefined
        ? principal !== null && !principal.may(key.verifyRequirement)
        : !sought.opens(key.apiId, principal ?? sought.edge),
      trace,
    )
  );
}

/** The code of the first check that fails, among those that charge nothing. */
export function codeOfState(
  key: KeyRecord,
  { now, address }: VerificationRequest,
  query: PermissionQuery | undefined,
  trace?: Trace,
): VerificationCode | undefined {
  return (
    codeOf("workspace", "FORBIDDEN", !key.workspaceEnabled, trace) ??
    codeOf("enabled", "DISABLED", !key.enabled, trace) ??
    codeOf("expiry", "EXPIRED", key.expiresAt !== null && now >= key.expiresAt, trace) ??
    codeOf("address", "FORBIDDEN", key.allowedIps !== null && !isAllowed(key.allowedIps, address), trace) ??
    codeOf("permissions", "INSUFFICIENT_PERMISSIONS", query !== undefined && !satisfies(query, key.permissions), trace)
  );
}

/** What decides whether a call is charged. */
interface ChargeChecks {
  /** Omitted: it needs none. */
  readonly areSlotsFree?: boolean;
  readonly limits: LimitDecision | undefined;
  /** Omitted: it costs nothing. */
  readonly isCovered?: boolean;
}

/** The code of a call that was not charged: no slot is free, a limit denies it, or the balance does not cover its cost. */
export function codeOfCharge(
  { areSlotsFree = true, limits, isCovered = true }: ChargeChecks,
  trace?: Trace,
): VerificationCode | undefined {
  return (
    codeOf("concurrency", "RATE_LIMITED", !areSlotsFree, trace) ??
    codeOf("limits", "RATE_LIMITED", limits?.allowed === false, trace) ??
    codeOf("credits", "USAGE_EXCEEDED", !isCovered, trace)
  );
}
