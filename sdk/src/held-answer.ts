import type { HoldKeeper, HoldTimes, Settlement } from "./hold.ts";

/** An answer that has ended. */
export interface EndedAnswer {
  /** Whether all of it was sent. False: the end user hung up, or the handler failed. */
  readonly complete: boolean;
  /** 0 if there was none yet. */
  readonly status: number;
  /** Bytes of the body that the handler sent, before any compression by the server. */
  readonly bytes: number;
  /** How often it sent some. */
  readonly chunks: number;
  /** What the handler reported last. */
  readonly reported: Settlement | undefined;
  /** The credits that were held. */
  readonly cost: number;
}

/** The option `hold` of `verify`. */
export interface HoldOptions<Request> extends HoldTimes {
  /**
   * What an answer did cost, when it has ended. Default: what the handler reported, or else the cost that was held. It may
   * take 30 seconds. If it fails, the cost that was held is charged, and `onError` gets the reason.
   */
  readonly settle?: ((answer: EndedAnswer, request: Request) => Settlement | Promise<Settlement>) | undefined;
  /**
   * Called when a hold was made, with a promise that is fulfilled when it was settled or released: for platforms that end
   * a program with its last answer, such as `after` of Next.js.
   */
  readonly waitUntil?: ((done: Promise<void>, request: Request) => void) | undefined;
}

/** The answer to a request with a hold: counts what is sent, and ends the hold with it. */
export class HeldAnswer {
  /** Fulfilled when the hold was settled or released, or that has failed for good. */
  readonly done: Promise<void>;
  readonly hasBody: boolean;
  readonly #keeper: HoldKeeper;
  readonly #cost: number;
  readonly #settle: ((answer: EndedAnswer) => Settlement | Promise<Settlement>) | undefined;
  #resolve: () => void = () => {};
  #hasEnded = false;
  #bytes = 0;
  #chunks = 0;

  constructor(
    keeper: HoldKeeper,
    cost: number,
    method: string,
    settle: ((answer: EndedAnswer) => Settlement | Promise<Settlement>) | undefined,
  ) {
    this.#keeper = keeper;
    this.#cost = cost;
    this.hasBody = method !== "HEAD";
    this.#settle = settle;
    this.done = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** A part of the body was sent. */
  sent(bytes: number): void {
    if (bytes === 0) return;
    this.#bytes += bytes;
    this.#chunks++;
  }

  /**
   * The answer has ended. Its hold is released if nothing was sent or it is an error, unless the handler reported
   * something. Only the first call counts.
   */
  end(complete: boolean, status: number): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const hasBody = this.hasBody && status !== 204 && status !== 304;
    const [bytes, chunks] = hasBody ? [this.#bytes, this.#chunks] : [0, 0];
    const { reported } = this.#keeper;
    const isFree = reported === undefined && (status >= 400 || (!complete && bytes === 0));
    const cost = this.#cost;
    const decide = () =>
      this.#settle
        ? this.#settle({ complete, status, bytes, chunks, reported, cost })
        : (reported ?? { credits: cost });
    void this.#keeper.end(isFree ? undefined : decide).finally(this.#resolve);
  }
}
