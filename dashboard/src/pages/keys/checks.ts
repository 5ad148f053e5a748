import type { VerifyKeyOutput } from "@latchkey/sdk";
import { duration, exactNumber, localTime } from "../../api/format.ts";

/** One step of a verification. The first that does not pass decides. */
export interface Check {
  readonly label: string;
  readonly state: "passed" | "decided" | "not reached";
  readonly detail?: string;
}

type Input = { readonly permissions?: string | undefined; readonly credits?: { readonly cost: number } | undefined };

/** The steps in their order, each with the code that it decides. The order is that of `server/src/verification`. */
const steps = [
  { label: "The key exists", code: "NOT_FOUND" },
  { label: "The key is enabled", code: "DISABLED" },
  { label: "The key has not expired", code: "EXPIRED" },
  { label: "The address is allowed", code: "FORBIDDEN" },
  { label: "Permissions", code: "INSUFFICIENT_PERMISSIONS" },
  { label: "Limits", code: "RATE_LIMITED" },
  { label: "Credits", code: "USAGE_EXCEEDED" },
] as const;

/** What was checked, in order. */
export function checksOf(data: VerifyKeyOutput, input: Input): Check[] {
  const decidedBy = steps.findIndex(({ code }) => code === data.code);
  return steps.map(({ label, code }, index) => {
    const isPassed = decidedBy === -1 || index < decidedBy;
    const state = isPassed ? "passed" : index === decidedBy ? "decided" : "not reached";
    const detail = state === "passed" ? passedDetail(code, data, input) : undefined;
    return { label, state, ...(detail !== undefined && { detail }) };
  });
}

function passedDetail(code: (typeof steps)[number]["code"], data: VerifyKeyOutput, input: Input): string | undefined {
  switch (code) {
    case "EXPIRED":
      return data.expires === undefined ? "it never expires" : `it expires ${localTime(data.expires)}`;
    case "INSUFFICIENT_PERMISSIONS":
      return input.permissions === undefined ? "none were asked for" : `${input.permissions} is satisfied`;
    case "RATE_LIMITED":
      return (data.ratelimits?.length ?? 0) === 0 ? "none apply" : data.ratelimits!.map(({ name }) => name).join(", ");
    case "USAGE_EXCEEDED":
      return data.credits === undefined ? "unlimited" : `${exactNumber(data.credits)} remain`;
    default:
      return undefined;
  }
}

/** What a code means for this verification, in one sentence. */
export function meaningOf(data: VerifyKeyOutput, input: Input): string {
  const { code, expires, credits, permissions = [], ratelimits = [], retryAfter } = data;
  switch (code) {
    case "VALID":
      return "Every check passed: let the request through.";
    case "NOT_FOUND":
      return "There is no such key for this root key. It is mistyped or deleted, or belongs to another API or workspace.";
    case "DISABLED":
      return "The key exists and was disabled.";
    case "EXPIRED":
      return `The key expired${expires === undefined ? "" : ` on ${localTime(expires)}`}.`;
    case "FORBIDDEN":
      return "The address of the caller is not in the allow-list of the API, or the workspace is disabled.";
    case "INSUFFICIENT_PERMISSIONS":
      return `The permissions of the key do not satisfy ${input.permissions}. It has ${permissions.join(", ") || "none"}.`;
    case "USAGE_EXCEEDED":
      return `The key has ${exactNumber(credits ?? 0)} credits left, which is less than this verification costs.`;
    case "RATE_LIMITED": {
      const names = ratelimits.filter(({ exceeded }) => exceeded).map(({ name }) => name);
      const wait =
        retryAfter === undefined
          ? "It can never pass with this cost."
          : `It passes in ${duration(Math.ceil(retryAfter / 1_000) * 1_000)}.`;
      return `The limit ${names.join(", ")} is exhausted. ${wait}`;
    }
  }
}
