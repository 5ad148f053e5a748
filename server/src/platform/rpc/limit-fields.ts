/**
 * One item of the header `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10).
 *
 * @param name without characters that need an escape in a quoted string.
 */
export function policyItem(name: string, limit: number, duration: number): string {
  return `"${name}";q=${limit};w=${Math.ceil(duration / 1_000)}`;
}

/** One item of the header `RateLimit`. Its seconds are rounded up, so that clients do not retry too early. */
export function stateItem(name: string, remaining: number, reset: number, now: number): string {
  return `"${name}";r=${remaining};t=${Math.max(0, Math.ceil((reset - now) / 1_000))}`;
}
