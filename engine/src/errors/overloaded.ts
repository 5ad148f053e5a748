/** Which limit a call exceeded: one of the whole service, or one of the caller's workspace. */
export type ExceededLimit = "service" | "lookups" | "counters" | "idempotency records";

/**
 * A limit that protects the service rejected a call before anything was charged or changed. The caller gets 503, or 429
 * where the limit is its workspace's, with Retry-After. The log gets nothing: the limit works as intended.
 */
export class Overloaded extends Error {
  /** Survives the copy from a database thread, where the class is lost. */
  readonly exceeded: ExceededLimit;
  /** When the caller may retry. Survives the copy too. */
  readonly retryAfterSeconds: number;

  constructor(message: string, exceeded: ExceededLimit = "service", retryAfterSeconds = 1) {
    super(message);
    this.name = "Overloaded";
    this.exceeded = exceeded;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export function isOverloaded(error: unknown): error is Overloaded {
  return error instanceof Error && (error as Partial<Overloaded>).exceeded !== undefined;
}
