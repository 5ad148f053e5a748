const TIMEOUTS_MAX = 5;
const PROBE_WAIT = 1_000;
const ORDINARY = 0;

/** How an attempt ended. `unknown` says nothing about the service. */
export type Outcome = "answered" | "timeout" | "unknown";

/**
 * A circuit breaker: a service that hangs costs a few calls their time-out, and not every call. It opens when several
 * attempts in a row got no answer in time. Then one attempt at a time is a probe. Any answer closes it.
 */
export class Breaker {
  readonly #isOn: boolean;
  readonly #now: () => number;
  #timeouts = 0;
  #probeAt = 0;
  #probe: number | undefined;
  #probes = 0;

  constructor(isOn: boolean, now: () => number = () => performance.now()) {
    this.#isOn = isOn;
    this.#now = now;
  }

  get isOpen(): boolean {
    return this.#timeouts >= TIMEOUTS_MAX;
  }

  /** A permit for one attempt, whose end must be reported; undefined if it must not be sent. */
  admit(): number | undefined {
    if (!this.isOpen) return ORDINARY;
    if (this.#probe !== undefined || this.#now() < this.#probeAt) return undefined;
    this.#probe = ++this.#probes;
    return this.#probe;
  }

  /** Reports how the attempt of a permit ended. */
  end(permit: number, outcome: Outcome): void {
    if (!this.#isOn) return;
    const isProbe = permit === this.#probe;
    if (isProbe) this.#probe = undefined;
    if (outcome === "answered") this.#timeouts = 0;
    const hasOpened = outcome === "timeout" && ++this.#timeouts === TIMEOUTS_MAX;
    if (isProbe || hasOpened) this.#probeAt = this.#now() + PROBE_WAIT;
  }
}
