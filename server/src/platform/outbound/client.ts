import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { startTimeout } from "../../../../engine/src/clock/timeout.ts";
import { type Exchange, type OutboundAnswer, OutboundFailure, type Transport } from "./exchange.ts";
import { Places } from "./places.ts";
import { findUrlFault, hostOf } from "./url.ts";

export interface OutboundOptions {
  clock: Clock;
  /** What sends the requests. */
  transport: Transport;
  /** Whether requests may go to any address, and over unencrypted HTTP. */
  allowPrivate: boolean;
  /** The time of one request, from the resolution of the name to the last byte that is read. */
  timeout: Milliseconds;
  /** The most bytes of an answer's body that are read. */
  answerBytesMax: number;
  /** The most open requests to one host name. */
  requestsPerHost: number;
  /** The most open requests. */
  requestsMax: number;
}

export interface OutboundRequest {
  url: string;
  method: "GET" | "POST";
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Owners share the open requests, per host and in total, as `Places` says. Default: the request is of no owner. */
  owner?: string;
  /** The time of this request; default: that of all requests. */
  timeout?: Milliseconds;
}

/**
 * Sends HTTP requests to addresses that callers of the service chose. A host that is not on the public internet, slow
 * answers and long answers must not harm the service or its network.
 */
export class OutboundClient {
  readonly #options: OutboundOptions;
  readonly #places: Places;
  readonly #placesByHost = new Map<string, Places>();
  readonly #open = new Set<Exchange>();
  #isClosed = false;

  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#places = new Places(options.requestsMax);
  }

  /** Open requests. */
  get open(): number {
    return this.#places.taken;
  }

  /**
   * Sends one request. An answer with any status is a success.
   *
   * @throws {OutboundFailure}
   */
  async send(request: OutboundRequest): Promise<OutboundAnswer> {
    const { clock, transport, allowPrivate, timeout, answerBytesMax, requestsPerHost } = this.#options;
    const { url, method, headers, body = "", owner } = request;
    const fault = findUrlFault(url, allowPrivate);
    if (fault !== undefined) throw new OutboundFailure("forbidden", `The URL ${fault}`);
    if (this.#isClosed) throw stopped();
    const host = hostOf(url);
    const here = this.#placesByHost.get(host) ?? new Places(requestsPerHost);
    if (!this.#places.hasRoom(owner) || !here.hasRoom(owner)) {
      throw new OutboundFailure("busy", "Too many requests are open");
    }
    this.#placesByHost.set(host, here);
    for (const places of [this.#places, here]) places.take(owner);
    const exchange = transport.begin({ url, method, headers, body, allowPrivate, answerBytesMax });
    this.#open.add(exchange);
    const limit = startTimeout(clock, request.timeout ?? timeout);
    void limit.expired.then(() => exchange.end(new OutboundFailure("timeout", "No answer arrived in time")));
    try {
      return await exchange.answer;
    } finally {
      limit.cancel();
      this.#open.delete(exchange);
      for (const places of [this.#places, here]) places.giveBack(owner);
      if (here.taken === 0) this.#placesByHost.delete(host);
    }
  }

  /** Ends all requests. */
  close(): void {
    this.#isClosed = true;
    for (const exchange of this.#open) exchange.end(stopped());
  }
}

function stopped(): OutboundFailure {
  return new OutboundFailure("failed", "The request was ended by a stop of the service");
}
