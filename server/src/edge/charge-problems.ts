import { HomeUnavailable } from "../../../engine/src/replica/home.ts";
import { ChargeRejected } from "../../../engine/src/replica/replica-verification.ts";
import { Problem, type ProblemCode, problems } from "../platform/rpc/problems.ts";

/** Throws an error of a charge. A charge that home has rejected is answered as home would have answered the call. */
export function rejectCharge(error: unknown): never {
  if (!(error instanceof ChargeRejected)) throw error;
  if (!(error.code in problems)) throw new HomeUnavailable(`Home rejected a charge: ${error.message}`);
  const { code, message, retryAfter } = error;
  const headers = retryAfter === undefined ? {} : { "retry-after": String(Math.ceil(retryAfter / 1_000)) };
  throw new Problem(code as ProblemCode, message, { headers });
}
