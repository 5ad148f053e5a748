/**
 * A failure whose message is all that the operator needs: what cannot be used, the setting that names it, and the
 * remedy. The command line prints it as one line, without a stack, and exits with 1.
 */
export class OperatorError extends Error {
  /** Survives the copy from a database thread, where the class is lost. */
  readonly forOperator = true;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "OperatorError";
  }
}

export function isOperatorError(error: unknown): error is Error {
  return error instanceof Error && (error as Partial<OperatorError>).forOperator === true;
}
