import { Problem, problems } from "../rpc/problems.ts";
import { FailedCall } from "../rpc/server.ts";

/** Status codes of gRPC (grpc/doc/statuscodes.md), as far as they are used. */
export const OK = 0;
export const INVALID_ARGUMENT = 3;
export const DEADLINE_EXCEEDED = 4;
export const NOT_FOUND = 5;
export const PERMISSION_DENIED = 7;
export const RESOURCE_EXHAUSTED = 8;
export const FAILED_PRECONDITION = 9;
export const ABORTED = 10;
export const UNIMPLEMENTED = 12;
export const INTERNAL = 13;
export const UNAVAILABLE = 14;
export const UNAUTHENTICATED = 16;

const codes: Readonly<Record<number, number>> = {
  400: INVALID_ARGUMENT,
  401: UNAUTHENTICATED,
  403: PERMISSION_DENIED,
  404: NOT_FOUND,
  408: DEADLINE_EXCEEDED,
  409: ABORTED,
  413: RESOURCE_EXHAUSTED,
  429: RESOURCE_EXHAUSTED,
  503: UNAVAILABLE,
};

/** A call that ends with a status other than OK. */
export class GrpcError extends Error {
  readonly code: number;
  /** Names the call in the log; undefined: it never became one. */
  readonly requestId: string | undefined;

  constructor(code: number, message: string, requestId?: string) {
    super(message);
    this.name = "GrpcError";
    this.code = code;
    this.requestId = requestId;
  }
}

/** What a caller is told of an error. */
export function grpcError(error: unknown, requestId?: string): GrpcError {
  if (error instanceof GrpcError) return error;
  if (error instanceof FailedCall) return grpcError(error.problem, error.requestId);
  if (!(error instanceof Problem)) return new GrpcError(INTERNAL, problems.unexpected_error.detail, requestId);
  // The call was not decided: what holds it back is no limit of the caller's.
  if (error.code === "too_many_counters") return new GrpcError(UNAVAILABLE, error.message, requestId);
  return new GrpcError(codes[problems[error.code].status] ?? INTERNAL, error.message, requestId);
}

/** Encodes a text for the header `grpc-message`: percent-encoded UTF-8 (grpc/doc/PROTOCOL-HTTP2.md). */
export function encodeMessage(message: string): string {
  return message.replace(/[^\x20-\x24\x26-\x7e]/gu, (character) => encodeURIComponent(character.toWellFormed()));
}
