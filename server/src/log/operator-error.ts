/**
 * An error that the operator can fix. Its message names the setting, the cause and the remedy. The command line prints it
 * as one line, without a stack, and exits with 1.
 */
export class OperatorError extends Error {
  /** Preserved when a database thread sends the error, unlike its class. */
  readonly forOperator = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "OperatorError";
  }
}

export function isOperatorError(error: unknown): error is Error {
  return error instanceof Error && (error as Partial<OperatorError>).forOperator === true;
}
