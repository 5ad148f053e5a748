import type { Clock, Milliseconds, Timer } from "../../../engine/src/clock/clock.ts";

/** Requests of callers that home has at once. */
export const PLACES_MAX = 512;
/** Further ones that wait for a place. They hold no memory but a short body. */
const WAITING_MAX = 1_000;
/** How long they wait. */
const WAIT_MAX: Milliseconds = 5_000;

/** A request of a caller that is passed on. */
export interface PassedOn {
  /** Starts it at home. */
  begin(): void;
  /** Whether its caller is to go on: its body has not arrived, or its answer is not read. */
  waitsForCaller(): boolean;
  /** Ends it, whether it has begun or not. */
  fail(error: Error): void;
}

/**
 * Which requests of callers home has. When there are as many as allowed, a further one replaces the one that has waited for its
 * caller for the longest, so callers that send or read slowly keep nobody from home. If all wait for home, it waits too, for a
 * limited time and with a limited number of others.
 */
export class CallerPlaces {
  readonly #clock: Clock;
  /** Those that have begun, the oldest first. */
  readonly #open = new Set<PassedOn>();
  /** Those that wait, the oldest first. */
  readonly #waiting = new Map<PassedOn, Timer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Begins a request once there is a place for it, usually at once. `leave` must follow when it has ended, whatever became of it. */
  enter(request: PassedOn): void {
    if (this.#waiting.size === 0 && this.#hasRoom()) {
      this.#begin(request);
      return;
    }
    if (this.#waiting.size >= WAITING_MAX) {
      request.fail(new Error("too many requests wait for it"));
      return;
    }
    const expire = () => {
      this.#waiting.delete(request);
      request.fail(new Error("it has been busy for too long"));
    };
    this.#waiting.set(request, this.#clock.schedule(WAIT_MAX, expire));
    this.#advance();
  }

  leave(request: PassedOn): void {
    this.#waiting.get(request)?.cancel();
    this.#waiting.delete(request);
    if (this.#open.delete(request)) this.#advance();
  }

  #advance(): void {
    for (const [request, timer] of this.#waiting) {
      if (!this.#hasRoom()) return;
      timer.cancel();
      this.#waiting.delete(request);
      this.#begin(request);
    }
  }

  #begin(request: PassedOn): void {
    this.#open.add(request);
    try {
      request.begin();
    } catch (error) {
      this.#open.delete(request);
      request.fail(error as Error);
    }
  }

  #hasRoom(): boolean {
    if (this.#open.size < PLACES_MAX) return true;
    for (const request of this.#open) {
      if (!request.waitsForCaller()) continue;
      this.#open.delete(request);
      request.fail(new Error("others needed the connection while this request waited for its caller"));
      return true;
    }
    return false;
  }
}
