import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { faultOfDecision } from "../../../engine/src/replica/answer-shapes.ts";
import { AskedHome } from "../../../engine/src/replica/asked-home.ts";
import { HomeUnavailable, rejectAnswer, type UnusableAnswer } from "../../../engine/src/replica/home.ts";
import { collected, statusOf } from "./answers.ts";
import { CallerPlaces, PLACES_MAX } from "./caller-places.ts";

/**
 * Connections to home, by what they are for; requests beyond it wait for one. Each has its own, so that callers whose requests
 * are slow delay neither the stream of changes nor what others charge.
 */
const CONNECTIONS_MAX = { changes: 4, leases: 2, questions: 16, passedOn: PLACES_MAX } as const;
type Purpose = keyof typeof CONNECTIONS_MAX;
/** What operations have connections of their own. */
const purposes: Readonly<Record<string, Purpose>> = { "replica.listChanges": "changes", "replica.lease": "leases" };
/** A connection that is not used for this long is closed before home closes it. */
const IDLE_MAX: Milliseconds = 4_000;
/** How long home may be silent, beyond the time that a question lets it wait. */
const SILENCE_MAX: Milliseconds = 5_000;
/** How long an answer may take as a whole, however slowly home sends it: the short one about changes, and any other. */
const CHANGES_TIME_MAX: Milliseconds = 5_000;
const ANSWER_TIME_MAX: Milliseconds = 30_000;
/** What the status of an answer may be. */
const STATUS_MIN = 200;
const STATUS_MAX = 599;
/** Bytes of an answer of an operation `replica.*`. */
const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** A request to home. */
export interface HomeRequest {
  method: string;
  /** The path with the query. */
  path: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** How long home may be silent. */
  timeout: Milliseconds;
  /** How long the answer may take as a whole. Omitted: as long as home is not silent. */
  within?: Milliseconds;
  /** Omitted: a request of a caller. */
  purpose?: Purpose;
}

/** Home over HTTP. */
export class HttpHome extends AskedHome {
  /** Of the requests of callers. */
  readonly places: CallerPlaces;
  readonly #clock: Clock;
  readonly #base: URL;
  readonly #rootKey: string;
  readonly #agents: Readonly<Record<Purpose, HttpAgent | HttpsAgent>>;

  /** @param onUnusable told of each answer to the edge that is none of its operation. */
  constructor(upstream: URL, rootKey: string, clock: Clock, onUnusable: (error: UnusableAnswer) => void) {
    super(onUnusable);
    this.places = new CallerPlaces(clock);
    this.#clock = clock;
    this.#base = upstream;
    this.#rootKey = rootKey;
    const agent = (purpose: Purpose) => {
      const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX[purpose], timeout: IDLE_MAX };
      return upstream.protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
    };
    this.#agents = {
      changes: agent("changes"),
      leases: agent("leases"),
      questions: agent("questions"),
      passedOn: agent("passedOn"),
    };
  }

  /** Starts a request. The caller writes its body, and reads the answer; both end with an error if home is silent for too long. */
  request(
    { method, path, headers, timeout, within, purpose = "passedOn" }: HomeRequest,
    onAnswer: (answer: IncomingMessage) => void,
  ) {
    const { protocol, hostname, port, pathname } = this.#base;
    const start = protocol === "https:" ? requestHttps : requestHttp;
    const request = start(
      {
        agent: this.#agents[purpose],
        protocol,
        // An IPv6 address has brackets in an address only.
        hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
        port,
        method,
        path: pathname.replace(/\/$/, "") + path,
        headers: { ...headers, host: this.#base.host },
        timeout,
      },
      (answer) => {
        // Node reads any three digits, and throws if it is to write them.
        if (statusOf(answer) >= STATUS_MIN && statusOf(answer) <= STATUS_MAX) onAnswer(answer);
        else request.destroy(new Error(`its status is ${statusOf(answer)}`));
      },
    );
    // Without a listener, Node would end the connection and say nothing.
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      request.emit("error", new Error("it answers in another protocol"));
    });
    request.on("timeout", () => request.destroy(new Error("Home is silent")));
    if (within !== undefined) {
      const timer = this.#clock.schedule(within, () => request.destroy(new Error("Home is too slow")));
      request.on("close", () => timer.cancel());
    }
    return request;
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  /** @throws {UnusableAnswer} unless a body is that of a success of an operation, to a call that was passed on. */
  requireDecision(operation: string, body: string): void {
    this.requireUsable(operation, faultOfDecision(parsed(body)?.data, operation));
  }

  protected async ask(operation: string, question: object, wait: Milliseconds): Promise<unknown> {
    const { status, body } = await this.#send(operation, JSON.stringify(question), wait);
    const answer = parsed(body);
    if (status === 200 && answer !== undefined) return answer.data;
    rejectAnswer({ operation, status, detail: `Home answered ${operation} with ${status}: ${detailOf(answer, body)}` });
  }

  #send(operation: string, body: string, wait: Milliseconds): Promise<{ status: number; body: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
    const failed = (error: Error) =>
      reject(new HomeUnavailable(`Home does not answer (${error.message})`, { cause: error }));
    const headers = {
      authorization: `Bearer ${this.#rootKey}`,
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
    };
    const purpose = purposes[operation] ?? "questions";
    const timeout = SILENCE_MAX + wait;
    const within = wait + (purpose === "changes" ? CHANGES_TIME_MAX : ANSWER_TIME_MAX);
    const asked = { method: "POST", path: `/v2/${operation}`, headers, timeout, within, purpose };
    const request = this.request(asked, (answer) => {
      collected(answer, ANSWER_BYTES_MAX).then((text) => resolve({ status: statusOf(answer), body: text }), failed);
    });
    request.on("error", failed);
    request.end(body);
    return promise;
  }
}

/** The envelope of an answer; undefined if it has none. */
function parsed(body: string): { data?: unknown; error?: { detail?: unknown } } | undefined {
  try {
    return Object(JSON.parse(body));
  } catch {
    return undefined;
  }
}

/** Of a text of somebody else, so much that its origin can be seen. */
const EXCERPT_LENGTH = 80;

function detailOf(answer: ReturnType<typeof parsed>, body: string): string {
  if (answer === undefined) return `no JSON, but ${JSON.stringify(body.slice(0, EXCERPT_LENGTH))}`;
  const detail = answer.error?.detail;
  return typeof detail === "string" ? detail : "no detail";
}
