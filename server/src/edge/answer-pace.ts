import type { ClientRequest, IncomingMessage } from "node:http";
import type { Clock, Milliseconds, Timer } from "../../../engine/src/clock/clock.ts";

/** What an answer that is passed on must have in each interval: a KiB per second, and its head in the first one. */
const INTERVAL: Milliseconds = 60_000;
const BYTES_MIN = 60 * 1024;

/**
 * Ends a request to home whose answer comes too slowly: one that drips is never silent, and would keep its place for ever. The
 * time of an answer that its caller does not read is not home's.
 */
export class AnswerPace {
  readonly #clock: Clock;
  readonly #passed: ClientRequest;
  readonly #waitsForCaller: () => boolean;
  #answer: IncomingMessage | undefined;
  /** Bytes that the connection had read when the interval began. */
  #bytesBefore = 0;
  #hasWaited = false;
  #timer: Timer | undefined;

  constructor(clock: Clock, request: IncomingMessage, passed: ClientRequest, waitsForCaller: () => boolean) {
    this.#clock = clock;
    this.#passed = passed;
    this.#waitsForCaller = waitsForCaller;
    // The caller has sent everything.
    request.once("end", () => this.#answer ?? this.#begin());
    passed.once("close", () => this.#timer?.cancel());
  }

  /** The head of the answer has arrived. */
  answered(answer: IncomingMessage): void {
    this.#answer = answer;
    this.#begin();
  }

  /** The caller has read what waited for it. */
  drained(): void {
    this.#hasWaited = true;
  }

  #begin(): void {
    this.#timer?.cancel();
    this.#hasWaited = false;
    this.#bytesBefore = this.#bytesRead;
    this.#timer = this.#clock.schedule(INTERVAL, () => this.#check());
  }

  #check(): void {
    const isCallers = this.#hasWaited || this.#waitsForCaller();
    const isSlow = this.#answer === undefined || this.#bytesRead - this.#bytesBefore < BYTES_MIN;
    if (isSlow && !isCallers) this.#passed.destroy(new Error("it is too slow"));
    else this.#begin();
  }

  get #bytesRead(): number {
    return this.#passed.socket?.bytesRead ?? 0;
  }
}
