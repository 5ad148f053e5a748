import { Overloaded } from "../errors/overloaded.ts";
import {
  type ChargeCall,
  type ChargeResult,
  type DescriptorCall,
  type Home,
  HomeUnavailable,
  type LimitCall,
} from "./home.ts";

type AnyCall = ChargeCall | LimitCall | DescriptorCall;

/** Calls of one question, and their bytes as JSON: home reads short bodies only. */
const CALLS_MAX = 256;
const BYTES_MAX = 48 * 1024;
/** Questions under way. Further calls wait, and are asked about together. */
const QUESTIONS_MAX = 4;
/** Calls that wait, and their bytes as JSON. Beyond them, calls get 503. */
const WAITING_MAX = { calls: 10_000, bytes: 32 * 1024 * 1024 };

interface WaitingCall {
  readonly call: AnyCall;
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
  #waitingBytes = 0;
  #underWay = 0;
  #isScheduled = false;

  constructor(home: Pick<Home, "charge">, position: () => string | undefined) {
    this.#home = home;
    this.#position = position;
  }

  /** Rejects with `Overloaded` before anything was charged, and with `HomeUnavailable` if that is not known. */
  charge(call: AnyCall): Promise<ChargeResult> {
    const bytes = Buffer.byteLength(JSON.stringify(call)) + 1;
    if (this.#waiting.length >= WAITING_MAX.calls || this.#waitingBytes + bytes > WAITING_MAX.bytes) {
      throw new Overloaded("Too many calls wait for home");
    }
    const { promise, resolve, reject } = Promise.withResolvers<ChargeResult>();
    this.#waiting.push({ call, bytes, resolve, reject });
    this.#waitingBytes += bytes;
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
      this.#waitingBytes -= bytes;
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
      const calls = waiting.flatMap(({ call }) => (isLimit(call) ? [] : [call]));
      const limits = waiting.flatMap(({ call }) => (isLimit(call) ? [call] : []));
      const answer = await this.#home.charge({
        ...(calls.length > 0 && { calls }),
        ...(limits.length > 0 && { limits }),
        ...(position !== undefined && { position }),
      });
      const [ofCalls, ofLimits] = [answer.results.values(), (answer.limits ?? []).values()];
      for (const { call, resolve, reject } of waiting) {
        const result: ChargeResult | undefined = (isLimit(call) ? ofLimits : ofCalls).next().value;
        if (result === undefined) reject(new HomeUnavailable("Home has not answered each call of a question"));
        else resolve(result);
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}

function isLimit(call: AnyCall): call is LimitCall | DescriptorCall {
  return "operation" in call;
}
