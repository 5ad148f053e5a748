import { after, type Clock, type Instant, type Milliseconds } from "../clock/clock.ts";

/** Outcomes that are remembered at a time, and their bytes. */
const OUTCOMES_MAX = 100_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** How many are looked at for each that comes in: more than one, so that those that expire are found. */
const LOOKED_AT = 4;
/** Longest time for which an outcome is remembered (contract A5). */
const LIFE_MAX: Milliseconds = 24 * 3_600_000;

/** There is no room to remember another outcome: nothing was charged. */
export class OutcomesFull extends Error {
  constructor() {
    super("There is no room to remember another Idempotency-Key");
    this.name = "OutcomesFull";
  }
}

/** A call that its caller may repeat, by hashes. */
export interface RepeatableCall {
  scope: string;
  /** Hash of the body. */
  fingerprint: string;
}

/** What is remembered of a call, and the longest window that it was charged in, in milliseconds. */
export interface Outcome {
  text: string;
  windowMax: Milliseconds;
}

/** What a repetition is told, or why it is told nothing. */
export type Repetition =
  | { readonly repetition: "known"; readonly text: string }
  /** The scope belongs to another body. */
  | { readonly repetition: "mismatched" }
  /** The first call is still under way. */
  | { readonly repetition: "running" };

interface Remembered {
  fingerprint: string;
  text: string;
  until: Instant;
}

/**
 * What came of calls that limits alone were charged for, so that a repetition is told the same and charged nothing.
 * It lies beside the counters in memory, and like them is charged and remembered in one step.
 */
export class RememberedOutcomes {
  readonly #clock: Clock;
  readonly #outcomes = new Map<string, Remembered>();
  readonly #running = new Set<string>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Makes a call unless it was made before. `outcomeOf` says what is to be remembered of it, undefined when it charged
   * nothing.
   *
   * @throws {OutcomesFull} before anything was charged.
   */
  once<T extends object>(
    call: RepeatableCall,
    make: () => T | Promise<T>,
    outcomeOf: (made: T) => Outcome | undefined,
  ): T | Repetition | Promise<T> {
    const before = this.#outcomes.get(call.scope);
    if (before && this.#clock.now() < before.until) {
      return before.fingerprint === call.fingerprint
        ? { repetition: "known", text: before.text }
        : { repetition: "mismatched" };
    }
    if (this.#running.has(call.scope)) return { repetition: "running" };
    this.#makeRoom();
    const made = make();
    if (!(made instanceof Promise)) {
      this.#remember(call, outcomeOf(made));
      return made;
    }
    this.#running.add(call.scope);
    return made
      .then((settled) => {
        this.#remember(call, outcomeOf(settled));
        return settled;
      })
      .finally(() => this.#running.delete(call.scope));
  }

  /** Looks at a few of the oldest each time: those that have expired go, the others go to the end of the line. */
  #makeRoom(): void {
    const now = this.#clock.now();
    let looked = 0;
    for (const [scope, remembered] of this.#outcomes) {
      // What goes to the end of the line would be met again.
      if (looked++ === LOOKED_AT) break;
      this.#forget(scope);
      if (remembered.until > now) this.#put(scope, remembered);
    }
    if (this.#outcomes.size >= OUTCOMES_MAX || this.#bytes >= BYTES_MAX) throw new OutcomesFull();
  }

  #remember({ scope, fingerprint }: RepeatableCall, outcome: Outcome | undefined): void {
    if (!outcome) return;
    const until = after(this.#clock.now(), Math.min(2 * outcome.windowMax, LIFE_MAX));
    this.#forget(scope);
    this.#put(scope, { fingerprint, text: outcome.text, until });
  }

  #put(scope: string, remembered: Remembered): void {
    this.#outcomes.set(scope, remembered);
    this.#bytes += bytesOf(scope, remembered);
  }

  #forget(scope: string): void {
    const remembered = this.#outcomes.get(scope);
    if (!remembered) return;
    this.#outcomes.delete(scope);
    this.#bytes -= bytesOf(scope, remembered);
  }
}

function bytesOf(scope: string, { text }: Remembered): number {
  return 300 + 2 * (scope.length + text.length);
}
