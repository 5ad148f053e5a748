import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import type { Agent as HttpsAgent } from "node:https";
import type { LookupFunction } from "node:net";
import type { Clock, Milliseconds } from "../clock/clock.ts";
import { startTimeout } from "../clock/timeout.ts";
import { isPublicAddress } from "../rules/public-address.ts";
import { Places } from "./places.ts";
import { lookupHost, queryHost, type Resolve } from "./resolve.ts";
import { findUrlFault, hostOf } from "./url.ts";

/** The most bytes of the headers of an answer. */
const HEADERS_BYTES_MAX = 16 * 1024;

/** How long an unused connection stays open. */
const IDLE_MAX: Milliseconds = 5_000;

/** Addresses of one name that are tried. */
const ADDRESSES_MAX = 8;

export interface OutboundOptions {
  clock: Clock;
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
  /** Finds addresses; by default as `allowPrivate` says. */
  resolve?: Resolve;
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

export interface OutboundAnswer {
  /** 200 to 599. A redirect is an answer like others: it is not followed. */
  status: number;
  /** The first bytes of the body, not decompressed. */
  body: Buffer;
  /** Whether `body` is the whole body: it was not too long and arrived in time. */
  isComplete: boolean;
}

/**
 * Why there is no answer. `forbidden`: the URL is not allowed, or its host has no address that is allowed. `busy`: too
 * many requests are open. `timeout`: no complete head of an answer arrived in time. `failed`: everything else.
 */
export type OutboundFailureReason = "forbidden" | "busy" | "timeout" | "failed";

/** A request without an answer. The message is one line, and names no address. */
export class OutboundFailure extends Error {
  readonly reason: OutboundFailureReason;

  constructor(reason: OutboundFailureReason, message: string) {
    super(message);
    this.name = "OutboundFailure";
    this.reason = reason;
  }
}

/**
 * Sends HTTP requests to addresses that callers of the service chose. A host that is not on the public internet, slow
 * answers and long answers must not harm the service or its network.
 *
 * Each connection resolves the name of the host and is made to the addresses that were checked, so that a name cannot
 * change between the check and the connection. One address that is not public forbids the whole name.
 */
export class OutboundClient {
  readonly #options: OutboundOptions;
  readonly #resolve: Resolve;
  readonly #plain = { request: requestHttp, agent: new HttpAgent({ keepAlive: true, timeout: IDLE_MAX }) };
  #https: HttpsAgent | undefined;
  readonly #places: Places;
  readonly #placesByHost = new Map<string, Places>();
  readonly #closed = new AbortController();

  constructor(options: OutboundOptions) {
    this.#options = options;
    this.#places = new Places(options.requestsMax);
    this.#resolve = options.resolve ?? (options.allowPrivate ? lookupHost : queryHost);
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
    const { clock, allowPrivate, timeout, requestsPerHost } = this.#options;
    const { url, owner } = request;
    const fault = findUrlFault(url, allowPrivate);
    if (fault !== undefined) throw new OutboundFailure("forbidden", `The URL ${fault}`);
    const host = hostOf(url);
    const here = this.#placesByHost.get(host) ?? new Places(requestsPerHost);
    if (!this.#places.hasRoom(owner) || !here.hasRoom(owner)) {
      throw new OutboundFailure("busy", "Too many requests are open");
    }
    this.#placesByHost.set(host, here);
    for (const places of [this.#places, here]) places.take(owner);
    const limit = startTimeout(clock, request.timeout ?? timeout);
    const abort = new AbortController();
    void limit.expired.then(() => abort.abort(new OutboundFailure("timeout", "No answer arrived in time")));
    try {
      return await this.#sendWithin(request, AbortSignal.any([abort.signal, this.#closed.signal]));
    } finally {
      limit.cancel();
      for (const places of [this.#places, here]) places.giveBack(owner);
      if (here.taken === 0) this.#placesByHost.delete(host);
    }
  }

  /** Ends all requests, and closes all connections. */
  close(): void {
    this.#closed.abort(new OutboundFailure("failed", "The request was ended by a stop of the service"));
    this.#plain.agent.destroy();
    this.#https?.destroy();
  }

  async #sendWithin(request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> {
    try {
      return await this.#exchange(request, signal, true);
    } catch (error) {
      // The host closed an unused connection while it was chosen for this request.
      if (!(error instanceof StaleConnection)) throw error;
      return await this.#exchange(request, signal, false);
    }
  }

  async #exchange({ url, method, headers, body = "" }: OutboundRequest, signal: AbortSignal, mayReuse: boolean) {
    const { promise, resolve, reject } = Promise.withResolvers<OutboundAnswer>();
    const { request, agent } = new URL(url).protocol === "https:" ? await this.#encrypted() : this.#plain;
    const outgoing = request(url, {
      method,
      headers: { ...headers, "accept-encoding": "identity", "content-length": Buffer.byteLength(body) },
      agent: mayReuse ? agent : false,
      lookup: this.#lookup,
      maxHeaderSize: HEADERS_BYTES_MAX,
    });
    const abort = () => outgoing.destroy(signal.reason);
    signal.addEventListener("abort", abort);
    if (signal.aborted) abort();
    let hasAnswer = false;
    outgoing.on("response", (incoming) => {
      hasAnswer = true;
      this.#read(incoming, resolve);
    });
    outgoing.on("error", (error) => {
      // What ends an answer is an event of the answer too.
      if (!hasAnswer) reject(toFailure(error, outgoing));
    });
    outgoing.on("upgrade", (_, socket) => {
      socket.destroy();
      reject(new OutboundFailure("failed", "The request failed: the host changed the protocol"));
    });
    outgoing.end(body);
    return promise.finally(() => signal.removeEventListener("abort", abort));
  }

  /** The module is loaded for the first request: many services send none, and TLS takes a megabyte. */
  async #encrypted() {
    const { Agent, request } = await import("node:https");
    this.#https ??= new Agent({ keepAlive: true, timeout: IDLE_MAX });
    return { request, agent: this.#https };
  }

  /** Reads what is allowed of a body. An end of the connection ends an incomplete answer. */
  #read(incoming: IncomingMessage, resolve: (answer: OutboundAnswer) => void): void {
    const { answerBytesMax } = this.#options;
    // The chunks are copied: each is an object of some hundred bytes, and may have one byte.
    let body = Buffer.alloc(0);
    let length = 0;
    const finish = (isComplete: boolean) => {
      resolve({ status: incoming.statusCode!, body: body.subarray(0, length), isComplete });
    };
    incoming.on("data", (chunk: Buffer) => {
      const isTooLong = length + chunk.length > answerBytesMax;
      const end = Math.min(length + chunk.length, answerBytesMax);
      if (end > body.length) body = Buffer.concat([body], Math.min(answerBytesMax, Math.max(end, 2 * body.length)));
      chunk.copy(body, length);
      length = end;
      if (!isTooLong) return;
      finish(false);
      incoming.destroy();
    });
    incoming.on("end", () => finish(true));
    incoming.on("error", () => finish(false));
    incoming.on("close", () => finish(false));
  }

  /** Resolves and checks a name for a connection that is being made. */
  readonly #lookup: LookupFunction = (host, { all }, callback) => {
    void this.#resolveAllowed(host).then(
      (addresses) => {
        if (all) callback(null, addresses);
        else callback(null, addresses[0]!.address, addresses[0]!.family);
      },
      (error) => callback(error, []),
    );
  };

  async #resolveAllowed(host: string) {
    const { allowPrivate } = this.#options;
    const addresses = await this.#resolve(host);
    // One message for both: it says nothing about names that only the network of the service knows.
    const isForbidden = !allowPrivate && addresses.some(({ address }) => !isPublicAddress(address));
    if (addresses.length === 0 || isForbidden) {
      const wanted = allowPrivate ? "address" : "public address";
      throw new OutboundFailure("forbidden", `The host of the URL has no ${wanted}`);
    }
    return addresses.slice(0, ADDRESSES_MAX);
  }
}

/** A connection that was used before ended before any answer. */
class StaleConnection extends Error {}

function toFailure(error: NodeJS.ErrnoException, outgoing: ClientRequest): Error {
  if (error instanceof OutboundFailure) return error;
  if (outgoing.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE")) return new StaleConnection();
  return new OutboundFailure("failed", `The request failed: ${error.code ?? error.name}`);
}
