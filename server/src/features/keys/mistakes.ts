import type { VerificationMistake } from "../../../../engine/src/verification/request.ts";
import type { ProblemCode } from "../../platform/rpc/problems.ts";

/** The problem of an error in the request of a verification that was found after the key. */
export const mistakeProblems = {
  query_unreadable: "permissions_query_syntax_error",
  token_unreadable: "invalid_input",
  limit_unknown: "precondition_failed",
  units_mixed: "invalid_input",
  hold_limits_excessive: "invalid_input",
  hold_required: "hold_required",
  replay_mismatched: "idempotency_mismatch",
  replay_running: "idempotency_in_progress",
} as const satisfies Record<VerificationMistake["kind"], ProblemCode>;
