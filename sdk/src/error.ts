import type { ProblemType } from "./operations.ts";
import { shareClass } from "./share-class.ts";

/**
 * What went wrong. The types of the service, such as `data/key_not_found`, have a page at `/errors/<type>` of the service.
 * Besides those:
 *
 * - `network_error`: no complete answer, because the connection failed. The service may have executed the call.
 * - `timeout`: no complete answer within the time-out. The service may have executed the call.
 * - `circuit_open`: the call was not sent, because the service left several in a row without an answer.
 * - `aborted`: the `signal` of the call was aborted. Its reason is the `cause`.
 * - `invalid_answer`: an answer that Latchkey does not send: a redirect, no JSON, more than `answerBytesMax`.
 *
 * A newer service can send a type that is not in this list.
 */
export type ErrorType = ProblemType | "network_error" | "timeout" | "circuit_open" | "aborted" | "invalid_answer";

/** One error in the input of a call. */
export interface InputError {
  /** Path in the schema of the input: `/properties/name/maxLength`. */
  readonly location: string;
  readonly message: string;
  /** How to fix it. */
  readonly fix?: string;
}

/** Members of an error. */
export interface ErrorMembers {
  readonly type: ErrorType;
  readonly operation: string;
  readonly detail: string;
  readonly status?: number | undefined;
  readonly errors?: readonly InputError[];
  readonly retryAfter?: number | undefined;
  readonly requestId?: string | undefined;
  readonly cause?: unknown;
}

/** How many errors in an input a message names. */
const NAMED_MAX = 3;

/** A detail with what is wrong in the input, and how to fix it. */
function withErrors(detail: string, errors: readonly InputError[]): string {
  if (errors.length === 0) return detail;
  const named = errors
    .slice(0, NAMED_MAX)
    .map(({ message, fix }) => (fix === undefined ? `${message}.` : `${message}. ${fix}`));
  const more = errors.length > NAMED_MAX ? ` And ${errors.length - NAMED_MAX} more.` : "";
  return `${detail.replace(/\.$/, "")}: ${named.join(" ")}${more}`;
}

/**
 * Why a call failed. Only an option that cannot be used is a `TypeError` instead. The message has the first errors in the
 * input, with what to do.
 */
export class LatchkeyError extends Error {
  static {
    shareClass(LatchkeyError, "LatchkeyError");
  }

  override readonly name = "LatchkeyError";
  /** Identifies the error; compare this one. */
  readonly type: ErrorType;
  /** The operation that was called, such as `keys.verifyKey`. */
  readonly operation: string;
  /** What is wrong with this call and how to fix it. */
  readonly detail: string;
  /** The HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  /** Each error in the input, with the type `application/invalid_input`. */
  readonly errors: readonly InputError[];
  /** Milliseconds to wait before another attempt; undefined if the service gave none. */
  readonly retryAfter: number | undefined;
  /** Identifies the call in the log of the service; undefined without an answer of the service. */
  readonly requestId: string | undefined;

  constructor({ type, operation, detail, status, errors = [], retryAfter, requestId, cause }: ErrorMembers) {
    super(`${operation}: ${withErrors(detail, errors)} (${type})`, cause === undefined ? undefined : { cause });
    this.type = type;
    this.operation = operation;
    this.detail = detail;
    this.status = status;
    this.errors = errors;
    this.retryAfter = retryAfter;
    this.requestId = requestId;
  }
}
