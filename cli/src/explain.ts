import type { Instant } from "../../engine/src/clock/clock.ts";
import type { VerifyKeyOutput } from "../../sdk/src/index.ts";
import { printable } from "./printable.ts";
import { iso, length } from "./times.ts";

/** The part of the request that a decision can depend on. */
export interface VerificationInput {
  apiId?: string;
  permissions?: string;
  credits?: { cost?: number };
}

/** What was decided and why, in words. The first line is the decision. */
export function explain(answer: VerifyKeyOutput, input: VerificationInput, now: Instant): string[] {
  return [decision(answer, input, now), ...facts(answer, input, now).map((line) => `  ${line}`)];
}

function decision(answer: VerifyKeyOutput, input: VerificationInput, now: Instant): string {
  const { code, expires, retryAfter, credits, permissions = [] } = answer;
  switch (code) {
    case "VALID":
      return "VALID: every check passed. Let the request through.";
    case "NOT_FOUND":
      return input.apiId === undefined
        ? "NOT_FOUND: there is no such key for this root key. It is mistyped or deleted, belongs to another workspace, or to an API that this root key may not verify."
        : `NOT_FOUND: there is no such key in the API ${printable(input.apiId)} for this root key. Without --api-id, keys of all APIs are found.`;
    case "DISABLED":
      return "DISABLED: the key exists and was disabled. `latchkey keys update-key --enabled true` enables it.";
    case "EXPIRED":
      return `EXPIRED: the key expired${expires === undefined ? "" : ` ${ago(now - expires)}, at ${iso(expires)}`}.`;
    case "FORBIDDEN":
      return "FORBIDDEN: the address of the caller is not in the allow-list of the API, or the workspace is disabled. --client-ip gives the address of your user.";
    case "INSUFFICIENT_PERMISSIONS":
      return `INSUFFICIENT_PERMISSIONS: the permissions of the key do not satisfy ${printable(input.permissions ?? "the query")}. It has ${permissions.length > 0 ? permissions.map(printable).join(", ") : "none"}.`;
    case "USAGE_EXCEEDED":
      return `USAGE_EXCEEDED: the verification costs ${input.credits?.cost ?? 1} and the key has ${credits ?? 0} credits left. Nothing was charged.`;
    case "RATE_LIMITED": {
      const enforced = (answer.ratelimits ?? []).filter(({ shadow }) => !shadow);
      const exceeded = [...(answer.concurrency ?? []), ...enforced].filter(({ exceeded }) => exceeded);
      const names = exceeded.map(({ name }) => printable(name));
      const wait =
        retryAfter === undefined
          ? "It can never pass with this cost"
          : `It passes in ${length(retryAfter)} if nothing else is charged`;
      return `RATE_LIMITED: the limit ${names.join(", ")} is exhausted. ${wait}. Nothing was charged.`;
    }
    default:
      return `${printable(code)}: ${answer.valid ? "the key is valid" : "the key was rejected"}.`;
  }
}

function facts(answer: VerifyKeyOutput, input: VerificationInput, now: Instant): string[] {
  const { keyId, apiId, name, expires, permissions = [], roles = [], credits, identity, ratelimits = [] } = answer;
  if (keyId === undefined) return [];
  return [
    `Key ${printable(keyId)}${name === undefined ? "" : ` (${printable(name)})`} of the API ${printable(apiId ?? "")}`,
    ...(identity ? [`It belongs to ${printable(identity.externalId)}.`] : []),
    ...(expires === undefined
      ? ["It never expires."]
      : expires > now
        ? [`It expires in ${length(expires - now)}, at ${iso(expires)}.`]
        : []),
    ...(roles.length > 0 ? [`Roles: ${roles.map(printable).join(", ")}`] : []),
    ...(permissions.length > 0 ? [`Permissions: ${permissions.map(printable).join(", ")}`] : []),
    ...(answer.valid && input.permissions !== undefined ? [`They satisfy ${printable(input.permissions)}.`] : []),
    ...(credits === undefined ? ["Credits: unlimited"] : [`Credits: ${credits.toLocaleString("en")} left`]),
    ...ratelimits.map(
      (limit) =>
        `Limit ${printable(limit.name)}: ${limit.remaining.toLocaleString("en")} of ${limit.limit.toLocaleString("en")} in ${length(limit.duration)} left, ${limit.mode === "strict" ? "strict, more is free" : "window ends"} at ${iso(limit.reset)}${limit.shadow ? `; in shadow mode, it ${limit.exceeded ? "would deny the call" : "denies nothing"}` : ""}`,
    ),
  ];
}

function ago(milliseconds: number): string {
  return milliseconds > 0 ? `${length(milliseconds)} ago` : "just now";
}
