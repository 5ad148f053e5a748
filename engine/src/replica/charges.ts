import { Overloaded } from "../errors/overloaded.ts";
import { type ChargeCall, type ChargeResult, type Home, HomeUnavailable } from "./home.ts";

/** Calls of one question, and their bytes as JSON: home reads short bodies only. */
const CALLS_MAX = 256;
const BYTES_MAX = 48 * 1024;
/** Questions under way. Further calls wait, and are asked about together. */
const QUESTIONS_MAX = 4;
/** Calls that wait. Beyond them, calls get 503. */
const WAITING_MAX = 10_000;

interface WaitingCall {
  readonly call: ChargeCall;
  readonly bytes: number;
  resolve(result: ChargeResult): void;
  reject(error: unknown): void;
}

/**
 * Charges calls at home. Those of one turn of the event loop share a question, and those that arrive while questions are
 * under way share the next one. A question is never repeated: without an answer it is not known whether it was charged.
 */
export class Charges {
  readonly #home: Pick<Home, "charge">;
  readonly #position: () => string | undefined;
  #waiting: WaitingCall[] = [];
  #underWay = 0;
  #isScheduled = false;

  constructor(home: Pick<Home, "charge">, position: () => string | undefined) {
    this.#home = home;
    this.#position = position;
  }

  /** Rejects with `Overloaded` before anything was charged, and with `HomeUnavailable` if that is not known. */
  charge(call: ChargeCall): Promise<ChargeResult> {
    if (this.#waiting.length >= WAITING_MAX) throw new Overloaded("Too many calls wait for home");
    const { promise, resolve, reject } = Promise.withResolvers<ChargeResult>();
    this.#waiting.push({ call, bytes: JSON.stringify(call).length + 1, resolve, reject });
    if (!this.#isScheduled && this.#underWay < QUESTIONS_MAX) {
      this.#isScheduled = true;
      setImmediate(() => {
        this.#isScheduled = false;
        this.#startQuestions();
      });
    }
    return promise;
  }

  #startQuestions(): void {
    while (this.#waiting.length > 0 && this.#underWay < QUESTIONS_MAX) {
      let [count, bytes] = [0, 0];
      for (const call of this.#waiting) {
        if (count === CALLS_MAX || (count > 0 && bytes + call.bytes > BYTES_MAX)) break;
        count++;
        bytes += call.bytes;
      }
      const calls = this.#waiting.slice(0, count);
      this.#waiting = this.#waiting.slice(count);
      this.#underWay++;
      void this.#ask(calls).finally(() => {
        this.#underWay--;
        this.#startQuestions();
      });
    }
  }

  async #ask(waiting: readonly WaitingCall[]): Promise<void> {
    try {
      const position = this.#position();
      const calls = waiting.map(({ call }) => call);
      const { results } = await this.#home.charge({ calls, ...(position !== undefined && { position }) });
      for (const [i, { resolve, reject }] of waiting.entries()) {
        const result = results[i];
        if (result === undefined) reject(new HomeUnavailable("Home has not answered each call of a question"));
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}
