import type { Clock } from "../clock/clock.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { VerificationRequest } from "./request.ts";

const ATTEMPTS_MAX = 8;

/**
 * Makes an answer that needs several reads, again if the key or its caller has changed meanwhile. `read` gets the request with the
 * caller of that moment, and undefined from it says that something has changed.
 *
 * @throws {StoreUnavailable} if it changes each time, and what the renewal of the caller throws.
 */
export async function readUntilCurrent<Answer>(
  clock: Pick<Clock, "now" | "monotonic">,
  request: VerificationRequest,
  read: (request: VerificationRequest, attempt: number) => Promise<Answer | undefined>,
): Promise<Answer> {
  let current = request;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const answer = await read(current, attempt);
    if (answer !== undefined) return answer;
    const [now, startedAt] = [clock.now(), clock.monotonic()];
    current = { ...current, now, startedAt, principal: current.principal && (await current.principal.renew(now)) };
  }
  throw new StoreUnavailable("The key changed faster than it could be read");
}
