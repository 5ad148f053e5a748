import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import type { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import type { SecureContext } from "node:tls";
import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { type Exchange, type ExchangePlan, type OutboundAnswer, OutboundFailure, type Transport } from "./exchange.ts";
import { isPublicAddress } from "./public-address.ts";
import { ReadAllowance } from "./read-allowance.ts";
import { lookupHost, queryHost, type Resolve } from "./resolve.ts";

/** The most bytes of the headers of an answer. */
const HEADERS_BYTES_MAX = 16 * 1024;

/** Interim answers (1xx) before an answer. Each costs the parser as much as an answer. */
const INTERIM_ANSWERS_MAX = 16;

/** How long an unused connection stays open. */
const IDLE_MAX: Milliseconds = 5_000;

/** Addresses of one name that are tried. */
const ADDRESSES_MAX = 8;

/**
 * Sends requests from the thread in which it is.
 *
 * Each connection resolves the name of the host and is made to the addresses that were checked, so that a name cannot
 * change between the check and the connection. One address that is not public forbids the whole name.
 */
export class HttpTransport implements Transport {
  /** Apart: a connection to a private address must not serve a request that may not go there. */
  readonly #anywhere: Connections;
  readonly #publicOnly: Connections;

  /** `resolve` finds addresses; by default as the plan of a request says. */
  constructor(resolve?: Resolve) {
    this.#anywhere = new Connections(true, resolve ?? lookupHost);
    this.#publicOnly = new Connections(false, resolve ?? queryHost);
  }

  begin(plan: ExchangePlan): Exchange {
    const connections = plan.allowPrivate ? this.#anywhere : this.#publicOnly;
    const abort = new AbortController();
    return { answer: sendOnce(plan, connections, abort.signal), end: (failure) => abort.abort(failure) };
  }

  /** Closes the connections that are not used. */
  close(): void {
    this.#anywhere.close();
    this.#publicOnly.close();
  }
}

async function sendOnce(plan: ExchangePlan, connections: Connections, signal: AbortSignal): Promise<OutboundAnswer> {
  try {
    return await exchange(plan, connections, signal, true);
  } catch (error) {
    // The host closed an unused connection while it was chosen for this request.
    if (!(error instanceof StaleConnection)) throw error;
    return await exchange(plan, connections, signal, false);
  }
}

async function exchange(
  { url, method, headers, body, answerBytesMax }: ExchangePlan,
  connections: Connections,
  signal: AbortSignal,
  mayReuse: boolean,
): Promise<OutboundAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<OutboundAnswer>();
  const isEncrypted = new URL(url).protocol === "https:";
  const { request, agent, options } = isEncrypted ? await connections.encrypted() : connections.plain;
  const outgoing = request(url, {
    ...options,
    method,
    headers: { ...headers, "accept-encoding": "identity", "content-length": Buffer.byteLength(body) },
    agent: mayReuse ? agent : false,
    lookup: connections.lookup,
    maxHeaderSize: HEADERS_BYTES_MAX,
  });
  const abort = () => outgoing.destroy(signal.reason);
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  let allowance: ReadAllowance | undefined;
  outgoing.on("socket", (socket) => {
    allowance = ReadAllowance.of(socket);
    // A body of many chunks takes more bytes than its content.
    allowance.grant(2 * (HEADERS_BYTES_MAX + answerBytesMax));
  });
  let interimAnswers = 0;
  outgoing.on("information", () => {
    interimAnswers++;
    if (interimAnswers <= INTERIM_ANSWERS_MAX) return;
    outgoing.destroy(new OutboundFailure("failed", "The request failed: the host sent too many interim answers"));
  });
  let hasAnswer = false;
  outgoing.on("response", (incoming) => {
    hasAnswer = true;
    read(incoming, answerBytesMax, resolve);
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
  return promise.finally(() => {
    signal.removeEventListener("abort", abort);
    allowance?.end();
  });
}

/** Reads what is allowed of a body. An end of the connection ends an incomplete answer. */
function read(incoming: IncomingMessage, bytesMax: number, resolve: (answer: OutboundAnswer) => void): void {
  // The chunks are copied: each is an object of some hundred bytes, and may have one byte.
  let body = Buffer.alloc(0);
  let length = 0;
  const finish = (isComplete: boolean) => {
    resolve({ status: incoming.statusCode!, body: body.subarray(0, length), isComplete });
  };
  incoming.on("data", (chunk: Buffer) => {
    const isTooLong = length + chunk.length > bytesMax;
    const end = Math.min(length + chunk.length, bytesMax);
    if (end > body.length) body = Buffer.concat([body], Math.min(bytesMax, Math.max(end, 2 * body.length)));
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

/** Connections, which are used again, to allowed addresses. */
class Connections {
  readonly plain = { request: requestHttp, agent: new HttpAgent({ keepAlive: true, timeout: IDLE_MAX }), options: {} };
  readonly #allowPrivate: boolean;
  readonly #resolve: Resolve;
  #encrypted:
    | { request: typeof requestHttps; agent: HttpsAgent; options: { secureContext: SecureContext } }
    | undefined;

  constructor(allowPrivate: boolean, resolve: Resolve) {
    this.#allowPrivate = allowPrivate;
    this.#resolve = resolve;
  }

  /** The modules are loaded for the first request: TLS takes a megabyte. */
  async encrypted() {
    if (this.#encrypted) return this.#encrypted;
    const { Agent, request } = await import("node:https");
    const { createSecureContext } = await import("node:tls");
    this.#encrypted ??= {
      request,
      agent: new Agent({ keepAlive: true, timeout: IDLE_MAX }),
      // Node would make one for each connection, which takes a millisecond and parses all root certificates.
      options: { secureContext: createSecureContext() },
    };
    return this.#encrypted;
  }

  close(): void {
    this.plain.agent.destroy();
    this.#encrypted?.agent.destroy();
  }

  /** Resolves and checks a name for a connection that is being made. */
  readonly lookup: LookupFunction = (host, { all }, callback) => {
    void this.#resolveAllowed(host).then(
      (addresses) => {
        if (all) callback(null, addresses);
        else callback(null, addresses[0]!.address, addresses[0]!.family);
      },
      (error) => callback(error, []),
    );
  };

  async #resolveAllowed(host: string) {
    const addresses = await this.#resolve(host);
    // One message for both: it says nothing about names that only the network of the service knows.
    const isForbidden = !this.#allowPrivate && addresses.some(({ address }) => !isPublicAddress(address));
    if (addresses.length === 0 || isForbidden) {
      const wanted = this.#allowPrivate ? "address" : "public address";
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
