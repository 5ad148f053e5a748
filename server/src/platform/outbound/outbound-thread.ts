import { Worker } from "node:worker_threads";
import type { Clock, Milliseconds, Timer } from "../../../../engine/src/clock/clock.ts";
import { startTimeout } from "../../../../engine/src/clock/timeout.ts";
import { type Exchange, type ExchangePlan, type OutboundAnswer, OutboundFailure, type Transport } from "./exchange.ts";
import type { FromOutboundThread, ToOutboundThread } from "./thread-messages.ts";

/** How long the thread has to say what it has of a request that was ended. */
const END_MAX: Milliseconds = 250;

/** How long it may be silent about one before it is ended. A busy machine delays it too. */
const SILENT_MAX: Milliseconds = 2_000;

/** From the end of a request until none of its bytes is sent any more. */
export const OUTBOUND_END_MAX: Milliseconds = SILENT_MAX;

/** How long the thread stays without a request. */
const IDLE_MAX: Milliseconds = 60_000;

/** The pause after a thread that ended by itself or had to be ended. */
const RESTART_PAUSE: Milliseconds = 1_000;

/** The heap in MiB. Bodies of answers are beside it, and bounded by the open requests. */
const HEAP_MB = 64;

export interface OutboundThreadOptions {
  clock: Clock;
  /** Reports that the thread ended by itself or had to be ended. */
  onLoss(cause: unknown): void;
  /** Starts the thread. */
  start?: () => Worker;
}

/**
 * Sends requests from a thread of its own, so that nothing that a host sends is parsed in the thread that answers calls. A
 * request ends soon after it was told to, even if the thread is stuck; a stuck thread is ended.
 *
 * There is no thread until the first request, and again after a minute without one. When it ends by itself or had to be
 * ended, its requests fail, and those of the next second are rejected as `busy`; then the next request starts another one.
 */
export class OutboundThread implements Transport {
  readonly #options: OutboundThreadOptions;
  #running: RunningThread | undefined;
  #restsUntil: Milliseconds = 0;
  #isClosed = false;

  constructor(options: OutboundThreadOptions) {
    this.#options = options;
  }

  /** Whether there is a thread at the moment. */
  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  begin(plan: ExchangePlan): Exchange {
    const { clock } = this.#options;
    if (this.#isClosed) return failing("failed", "The request was ended by a stop of the service");
    if (!this.#running && clock.monotonic() < this.#restsUntil) {
      return failing("busy", "Requests are not sent for a moment, because the thread that sends them has ended");
    }
    this.#running ??= this.#start();
    return this.#running.begin(plan);
  }

  /** Ends all requests and the thread. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running?.stop("The request was ended by a stop of the service");
  }

  #start(): RunningThread {
    const { clock, onLoss, start = startThread } = this.#options;
    const thread = new RunningThread(start(), clock, (cause) => {
      if (this.#running !== thread) return;
      this.#running = undefined;
      if (cause === undefined) return;
      this.#restsUntil = clock.monotonic() + RESTART_PAUSE;
      onLoss(cause);
    });
    return thread;
  }
}

function startThread(): Worker {
  return new Worker(new URL("./thread.ts", import.meta.url), {
    name: "outbound",
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
  });
}

interface OpenExchange extends PromiseWithResolvers<OutboundAnswer> {
  /** Set after it was told to end. */
  ending: ReturnType<typeof startTimeout> | undefined;
}

class RunningThread {
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #onEnd: (cause: unknown) => void;
  readonly #open = new Map<number, OpenExchange>();
  #lastId = 0;
  #idle: Timer | undefined;
  #isEnded = false;

  /** `onEnd` gets undefined if the thread was not needed any more. */
  constructor(worker: Worker, clock: Clock, onEnd: (cause: unknown) => void) {
    this.#worker = worker;
    this.#clock = clock;
    this.#onEnd = onEnd;
    worker.on("message", (message: FromOutboundThread) => this.#settle(message));
    worker.once("error", (error) => this.#end(error, "The request failed: its thread has ended"));
    worker.once("exit", (code) => {
      this.#end(new Error(`The thread has ended with the code ${code}`), "The request failed: its thread has ended");
    });
    // Open requests keep the process running, as connections do.
    worker.unref();
  }

  begin(plan: ExchangePlan): Exchange {
    const id = ++this.#lastId;
    const exchange: OpenExchange = { ...Promise.withResolvers<OutboundAnswer>(), ending: undefined };
    if (this.#open.size === 0) this.#worker.ref();
    this.#open.set(id, exchange);
    this.#idle?.cancel();
    this.#send(["begin", id, plan]);
    return { answer: exchange.promise, end: (failure) => this.#endExchange(id, failure) };
  }

  async stop(message: string): Promise<void> {
    this.#end(undefined, message);
    await this.#worker.terminate();
  }

  #endExchange(id: number, failure: OutboundFailure): void {
    const exchange = this.#open.get(id);
    if (!exchange || exchange.ending) return;
    this.#send(["end", id, failure.reason, failure.message]);
    exchange.ending = startTimeout(this.#clock, END_MAX);
    void exchange.ending.expired.then(() => {
      exchange.reject(failure);
      if (!this.#open.has(id)) return;
      exchange.ending = startTimeout(this.#clock, SILENT_MAX - END_MAX);
      void exchange.ending.expired.then(() => this.#endSilent());
    });
  }

  #endSilent(): void {
    const cause = new Error(`The thread did not end a request within ${SILENT_MAX} ms`);
    this.#end(cause, "The request failed: its thread did not answer and was ended");
    void this.#worker.terminate();
  }

  #settle(message: FromOutboundThread): void {
    const [, id] = message;
    const exchange = this.#open.get(id);
    if (!exchange) return;
    this.#open.delete(id);
    exchange.ending?.cancel();
    if (message[0] === "failure") exchange.reject(new OutboundFailure(message[2], message[3]));
    else exchange.resolve({ status: message[2], body: Buffer.from(message[3].buffer), isComplete: message[4] });
    if (this.#open.size > 0) return;
    this.#worker.unref();
    this.#idle = this.#clock.schedule(IDLE_MAX, () => void this.stop(""));
  }

  #send(message: ToOutboundThread): void {
    this.#worker.postMessage(message);
  }

  #end(cause: unknown, message: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#idle?.cancel();
    for (const exchange of this.#open.values()) {
      exchange.ending?.cancel();
      exchange.reject(new OutboundFailure("failed", message));
    }
    this.#open.clear();
    this.#onEnd(cause);
  }
}

function failing(reason: OutboundFailure["reason"], message: string): Exchange {
  return { answer: Promise.reject(new OutboundFailure(reason, message)), end() {} };
}
