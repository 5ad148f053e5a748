/** How long an idle connection stays open: a little longer than load balancers use theirs. */
export const KEEP_ALIVE_MS = 72_000;

/** Limits on requests and connections. */
export interface HttpLimits {
  /** Milliseconds in which the headers of a request must arrive. */
  headersTimeout: number;
  /** Milliseconds in which a whole request must arrive. */
  requestTimeout: number;
  /** Maximum number of open connections. */
  connectionsMax: number;
  /** Maximum bytes of a body. Metered operations have a smaller limit. */
  bodyBytesMax: number;
  /** Memory for all incoming bodies, in bytes, and as much again for outgoing responses. */
  bodiesBytesMax: number;
}

export function headersTimeoutOf({ headersTimeout, requestTimeout }: HttpLimits): number {
  return Math.min(headersTimeout, requestTimeout);
}
