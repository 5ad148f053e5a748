import { callOperation, connectionOf, exchange, type ReceivedAnswer, type Traits } from "../../sdk/src/call.ts";
import { LatchkeyError } from "../../sdk/src/index.ts";
import { CommandError } from "./output.ts";
import { printable } from "./printable.ts";

/** The address of a service, and the root key to call it with. */
export interface Endpoint {
  /** Without a slash at the end. */
  readonly url: string;
  readonly rootKey: string | undefined;
}

export interface Attempts {
  /** Whether a call can be repeated: always, or with an Idempotency-Key. Omitted: never. */
  readonly repeatable?: "always" | "idempotent";
  /** Omitted: a random one, if the call can be repeated with it. */
  readonly idempotencyKey?: string | undefined;
  /** The time for each attempt with its whole answer, in milliseconds. */
  readonly timeout?: number;
  /** The maximum number of attempts after the first one. */
  readonly retries?: number;
  /** The longest `Retry-After` that is waited for, in milliseconds. */
  readonly waitMax?: number;
  /** Called before an attempt is repeated that may have had its effect. */
  readonly onRetry?: () => void;
}

/** A successful answer. */
export interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the operation and is the service's promise.
  data: any;
  pagination?: { hasMore: boolean; cursor?: string };
  requestId: string;
}

export const TIMEOUT_DEFAULT = 10_000;
/** The largest page of a list has 100 keys with 1 MiB of metadata each. */
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;

/** A call that the service rejected or could not serve. */
export class ServiceError extends CommandError {
  readonly status: number;
  /** The path that identifies the problem, such as `data/key_not_found`. */
  readonly type: string;

  constructor(status: number, type: string, message: string, details: readonly string[]) {
    super(message, { details });
    this.name = "ServiceError";
    this.status = status;
    this.type = type;
  }
}

/**
 * Calls an operation. Redirects are not followed, so a root key reaches no other host.
 *
 * @param body the request body as JSON.
 * @throws {CommandError} without a successful answer.
 */
export async function call(endpoint: Endpoint, operation: string, body: string, attempts: Attempts): Promise<Answer> {
  const { repeatable, idempotencyKey, timeout = TIMEOUT_DEFAULT, retries, waitMax, onRetry } = attempts;
  let received: ReceivedAnswer | undefined;
  const connection = connect(endpoint, {
    timeout,
    retries,
    retryWaitMax: waitMax,
    onResponse({ status, retryIn }) {
      // A request beyond a limit had no effect.
      if (retryIn !== undefined && status !== 429) onRetry?.();
    },
  });
  const traits: Traits = repeatable === undefined ? {} : { repeatable };
  const keep = (answer: ReceivedAnswer | undefined) => {
    received = answer;
  };
  try {
    return (await callOperation(connection, operation, traits, body, { idempotencyKey }, keep)) as Answer;
  } catch (error) {
    if (!(error instanceof LatchkeyError)) throw error;
    throw received ? rejection(endpoint.url, received) : unreachable(endpoint.url, error, timeout);
  }
}

/**
 * Gets a page of a service, without a root key.
 *
 * @throws {CommandError} without a complete answer.
 */
export async function getPage(url: string, path: string, timeout: number): Promise<ReceivedAnswer> {
  const answer = await exchange(connect({ url, rootKey: undefined }), path, path, {}, timeout);
  if (answer instanceof LatchkeyError) throw unreachable(url, answer, timeout);
  return answer;
}

function connect({ url, rootKey }: Endpoint, options: Parameters<typeof connectionOf>[0] = {}) {
  // A command ends when its call has failed, so there is nothing that a circuit breaker could spare.
  return connectionOf({ ...options, url, rootKey, answerBytesMax: ANSWER_BYTES_MAX, circuitBreaker: false });
}

/** The error without a complete answer. Its message names the address. */
function unreachable(url: string, { type, cause }: LatchkeyError, timeout: number): CommandError {
  const { origin } = new URL(url);
  if (type === "timeout") {
    return new CommandError(
      `${origin} did not answer completely within ${timeout / 1_000} s. Is it busy, or the wrong address?`,
    );
  }
  const { code, message } = ((cause as Error).cause ?? cause) as NodeJS.ErrnoException;
  const reasons: Record<string, string> = {
    ECONNREFUSED: "no service listens there. Start it with `latchkey serve`, or give another address with --url",
    ENOTFOUND: "this name does not resolve to an address. Check the address",
    ECONNRESET: "the connection was closed before the answer. Try again",
  };
  return new CommandError(
    `${origin} cannot be reached: ${reasons[code ?? ""] ?? printable(message)}${code ? ` (${code})` : ""}.`,
  );
}

/** The error of an answer that is no success. */
function rejection(url: string, { status, headers, text }: ReceivedAnswer): CommandError {
  if (text === undefined) {
    return new CommandError(
      `The answer is longer than ${ANSWER_BYTES_MAX / 2 ** 20} MiB, so it was not read to its end.`,
    );
  }
  if (status >= 300 && status < 400) {
    const target = printable(headers.get("location") ?? "another address");
    return new CommandError(
      `${url} redirects to ${target}. Redirects are not followed; log in with the address itself.`,
    );
  }
  const type = headers.get("content-type") ?? "";
  const answer = /^application\/(problem\+)?json\b/i.test(type) ? parse(text) : undefined;
  if (typeof answer?.error === "object") return serviceError(url, status, answer);
  return new CommandError(
    `${url} answered with status ${status} and ${printable(type) || "no content type"}, not as a Latchkey service does. Is it the right address?`,
  );
}

// biome-ignore lint/suspicious/noExplicitAny: each use checks the type of what it reads.
function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The problem that an answer describes: title, detail, the errors of members with their remedies, request id. */
// biome-ignore lint/suspicious/noExplicitAny: each use checks the type of what it reads.
function serviceError(url: string, status: number, { error, meta }: any): ServiceError {
  const text = (value: unknown) => (typeof value === "string" ? printable(value) : "");
  const errors = Array.isArray(error?.errors) ? error.errors.slice(0, 100) : [];
  const type = text(error?.type);
  return new ServiceError(
    status,
    type.slice(type.indexOf("/errors/") + "/errors/".length),
    `${text(error?.title) || "Error"} (${status}): ${text(error?.detail) || "the service gave no detail"}`,
    [
      ...errors.map((one: Record<string, unknown> | null) =>
        [`${text(one?.location)}: ${text(one?.message)}`, text(one?.fix)].filter(Boolean).join(". "),
      ),
      ...(type ? [`About this error: ${type.startsWith("/") ? url + type : type}`] : []),
      `Request ${text(meta?.requestId) || "without an id"}`,
    ],
  );
}
