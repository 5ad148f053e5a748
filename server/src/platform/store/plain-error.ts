import type { ExceededLimit, Overloaded } from "../../../../engine/src/errors/overloaded.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import { isOperatorError } from "../../log/operator-error.ts";

/** An error in a form that can be sent between threads. Cloning an error would lose its name. */
export interface PlainError {
  name: string;
  message: string;
  stack: string | undefined;
  code: string | undefined;
  /** SQLite's code. */
  errcode: number | undefined;
  /** Whether the error is an `OperatorError`. */
  forOperator: boolean;
  /** Set on an `Overloaded`. */
  exceeded: ExceededLimit | undefined;
  retryAfterSeconds: number | undefined;
}

export function plainError(error: unknown): PlainError {
  const { name, message, stack, code, errcode, exceeded, retryAfterSeconds } = error as NodeJS.ErrnoException &
    Partial<Pick<Overloaded, "exceeded" | "retryAfterSeconds">> & { errcode?: number };
  return { name, message, stack, code, errcode, forOperator: isOperatorError(error), exceeded, retryAfterSeconds };
}

/** Restores an error of another thread, with the class that callers check. */
export function asError(plain: PlainError): Error {
  const error = plain.name === "StoreUnavailable" ? new StoreUnavailable(plain.message) : new Error(plain.message);
  return Object.assign(error, plain);
}
