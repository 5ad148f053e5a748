import { keepProcessAlive } from "../../../../engine/src/clock/keep-alive.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { CommandError } from "../output.ts";
import { printable } from "./printable.ts";

/** The address of a service, and the root key to call it with. */
export interface Endpoint {
  /** Without a slash at the end. */
  readonly url: string;
  readonly rootKey: string | undefined;
}

export interface Attempts {
  /** Whether the call can be repeated without a second effect. */
  readonly repeatable: boolean;
  readonly idempotencyKey?: string | undefined;
  /** The time for the whole answer, in milliseconds. */
  readonly timeout?: number;
  /** The maximum number of attempts of a repeatable call. */
  readonly attempts?: number;
  /** The longest time to wait before an attempt, in milliseconds. A service that asks for more gets no other attempt. */
  readonly waitMax?: number;
  /** Called before each attempt after the first one. The attempts before it may have had their effect. */
  readonly onRetry?: (wait: number) => void;
}

/** A successful answer. */
export interface Answer {
  // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the operation and is the service's promise.
  data: any;
  pagination?: { hasMore: boolean; cursor?: string };
  requestId: string;
}

export const TIMEOUT_DEFAULT = 10_000;
const ATTEMPTS_DEFAULT = 3;
const WAIT_MAX_DEFAULT = 5_000;
const WAIT_FIRST = 200;
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

/** No complete answer: the connection failed, or the answer took too long. Its message names the address. */
export class UnreachableError extends CommandError {}

/**
 * Calls an operation. Redirects are not followed, so a root key reaches no other host.
 *
 * @param body the request body as JSON.
 * @throws {CommandError} without a successful answer.
 */
export async function call(endpoint: Endpoint, operation: string, body: string, options: Attempts): Promise<Answer> {
  const { repeatable, attempts = ATTEMPTS_DEFAULT, waitMax = WAIT_MAX_DEFAULT } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      return await callOnce(endpoint, operation, body, options);
    } catch (error) {
      const wait = retryWait(error, attempt);
      // A call over a limit of requests had no effect.
      const isSafe = repeatable || (error instanceof ServiceError && error.status === 429);
      if (!isSafe || attempt >= attempts || wait === undefined || wait > waitMax) throw error;
      options.onRetry?.(wait);
      await pause(wait);
    }
  }
}

/** The time before the next attempt, in milliseconds; undefined if another attempt would fail in the same way. */
function retryWait(error: unknown, attempt: number): number | undefined {
  const own = WAIT_FIRST * 2 ** (attempt - 1);
  if (error instanceof UnreachableError) return own;
  if (error instanceof RetryableError) return Math.max(own, error.retryAfter);
  return undefined;
}

/** The service asks to try again later: status 429, 502, 503 or 504. */
class RetryableError extends ServiceError {
  /** In milliseconds. */
  readonly retryAfter: number;

  constructor(error: ServiceError, retryAfter: number) {
    super(error.status, error.type, error.message, error.details);
    this.retryAfter = retryAfter;
  }
}

/** Waits. Unlike a timer of the clock, it keeps the process alive. */
export async function pause(length: number): Promise<void> {
  const release = keepProcessAlive();
  await new Promise<void>((resolve) => systemClock.schedule(length, resolve));
  release();
}

async function callOnce(endpoint: Endpoint, operation: string, body: string, options: Attempts): Promise<Answer> {
  const { idempotencyKey } = options;
  const response = await request(`${endpoint.url}/v2/${operation}`, options.timeout ?? TIMEOUT_DEFAULT, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      ...(endpoint.rootKey !== undefined && { Authorization: `Bearer ${endpoint.rootKey}` }),
      ...(idempotencyKey !== undefined && { "Idempotency-Key": idempotencyKey }),
    },
    body,
  });
  const answer = readAnswer(endpoint.url, response);
  if (response.status === 200 && "data" in answer) {
    return { data: answer.data, pagination: answer.pagination, requestId: String(answer.meta?.requestId) };
  }
  const error = serviceError(endpoint.url, response.status, answer);
  if (![429, 502, 503, 504].includes(response.status)) throw error;
  const seconds = Number(/^\d{1,6}$/.exec(response.headers.get("retry-after") ?? "")?.[0] ?? 0);
  throw new RetryableError(error, seconds * 1_000);
}

export interface Received {
  status: number;
  headers: Headers;
  text: string;
}

/**
 * Sends one request and reads the answer, within `timeout` milliseconds for both.
 *
 * @throws {UnreachableError} without a complete answer.
 */
export async function request(address: string, timeout: number, init: RequestInit): Promise<Received> {
  const signal = AbortSignal.timeout(timeout);
  const release = keepProcessAlive();
  try {
    const response = await fetch(address, { ...init, redirect: "manual", signal });
    return { status: response.status, headers: response.headers, text: await readText(response) };
  } catch (error) {
    throw error instanceof CommandError ? error : unreachable(address, error, timeout);
  } finally {
    release();
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop closes the connection.
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > ANSWER_BYTES_MAX) {
      throw new CommandError(
        `The answer is longer than ${ANSWER_BYTES_MAX / 2 ** 20} MiB, so it was not read to its end.`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function unreachable(address: string, error: unknown, timeout: number): UnreachableError {
  const { origin } = new URL(address);
  if ((error as Error).name === "TimeoutError") {
    return new UnreachableError(
      `${origin} did not answer completely within ${timeout / 1_000} s. Is it busy, or the wrong address?`,
    );
  }
  const { code, message } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
  const reasons: Record<string, string> = {
    ECONNREFUSED: "no service listens there. Start it with `latchkey serve`, or give another address with --url",
    ENOTFOUND: "this name does not resolve to an address. Check the address",
    ECONNRESET: "the connection was closed before the answer. Try again",
  };
  return new UnreachableError(
    `${origin} cannot be reached: ${reasons[code ?? ""] ?? printable(message)}${code ? ` (${code})` : ""}.`,
  );
}

// biome-ignore lint/suspicious/noExplicitAny: each use checks the type of what it reads.
function readAnswer(url: string, { status, headers, text }: Received): any {
  if (status >= 300 && status < 400) {
    const target = printable(headers.get("location") ?? "another address");
    throw new CommandError(
      `${url} redirects to ${target}. Redirects are not followed; log in with the address itself.`,
    );
  }
  const type = headers.get("content-type") ?? "";
  if (/^application\/(problem\+)?json\b/i.test(type)) {
    try {
      const answer = JSON.parse(text);
      if (typeof answer === "object" && answer !== null) return answer;
    } catch {
      // The same error as for an answer of another type.
    }
  }
  throw new CommandError(
    `${url} answered with status ${status} and ${printable(type) || "no content type"}, not as a Latchkey service does. Is it the right address?`,
  );
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
