import { decideByCall } from "../../../engine/src/errors/decided-elsewhere.ts";
import type { Charges } from "../../../engine/src/replica/charges.ts";
import { HomeUnavailable } from "../../../engine/src/replica/home.ts";
import { ChargeRejected, charged } from "../../../engine/src/replica/replica-verification.ts";
import { Problem, type ProblemCode, problems } from "../platform/rpc/problems.ts";

/** What home has answered to a call of limits. @throws or rejects with what the caller is answered, or `DecidedElsewhere`. */
export async function chargeLimits(charges: Pick<Charges, "charge">, call: Parameters<Charges["charge"]>[0]) {
  try {
    const result = await charges.charge(call);
    if ("isElsewhere" in result) decideByCall();
    return charged(result);
  } catch (error) {
    return rejectCharge(error);
  }
}

/** Throws an error of a charge. A charge that home has rejected is answered as home would have answered the call. */
export function rejectCharge(error: unknown): never {
  if (!(error instanceof ChargeRejected)) throw error;
  if (!Object.hasOwn(problems, error.code)) throw new HomeUnavailable(`Home rejected a charge: ${error.message}`);
  const { code, message, retryAfter } = error;
  const headers = retryAfter === undefined ? {} : { "retry-after": String(Math.ceil(retryAfter / 1_000)) };
  throw new Problem(code as ProblemCode, message, { headers });
}
