import { Breaker, type Outcome } from "./breaker.ts";
import { type InputError, LatchkeyError } from "./error.ts";
import { checkNames, type Names } from "./option-names.ts";
import { readText } from "./read-text.ts";
import { Secret } from "./secret.ts";

const TIMEOUT_DEFAULT = 2_000;
/** The longest delay that timers accept. */
const TIMEOUT_MAX = 2 ** 31 - 1;
const RETRIES_DEFAULT = 2;
const RETRIES_MAX = 12;
const RETRY_WAIT_MAX_DEFAULT = 5_000;
const WAIT_FIRST = 100;
const ANSWER_BYTES_MAX_DEFAULT = 16 * 2 ** 20;
/** The longest text that all runtimes can hold has about 512 MiB. */
const ANSWER_BYTES_MAX = 256 * 2 ** 20;
/** Why the call's own signal is aborted when its time is over. */
const TIMED_OUT = new Error("The time-out of the call is over.");

/** What every call of a client uses. */
export interface LatchkeyOptions {
  /** The address of the service, such as `https://keys.example.com`. Omitted: `LATCHKEY_URL` of the environment. */
  readonly url?: string | URL | undefined;
  /**
   * The root key. Omitted: `LATCHKEY_ROOT_KEY` of the environment. Without one, only keys can be verified, if the service
   * allows it.
   */
  readonly rootKey?: string | Secret | undefined;
  /** Milliseconds that one attempt may take, with its answer. Default: 2000. */
  readonly timeout?: number | undefined;
  /**
   * Further attempts after a failed one, 0 to 12. Default: 2. A call that creates or charges something is retried only if
   * the service recognizes the repetition: it then carries an `Idempotency-Key`.
   */
  readonly retries?: number | undefined;
  /**
   * Whether calls that charge limits or credits (`keys.verifyKey`, `ratelimits.limit`, `ratelimits.multiLimit`) carry an
   * `Idempotency-Key` too, so that they are retried. Default: false. The service stores a record of each such call for a
   * day, at most 100,000 per workspace with its default settings.
   */
  readonly retryCharges?: boolean | undefined;
  /** The longest `Retry-After` that a call waits for, in milliseconds. Longer: it fails at once. Default: 5000. */
  readonly retryWaitMax?: number | undefined;
  /**
   * Whether calls fail at once, with `circuit_open`, after 5 attempts in a row that timed out. One attempt per second is
   * then sent as a probe, and any answer lets all calls pass again. Default: true.
   */
  readonly circuitBreaker?: boolean | undefined;
  /** The longest answer that is read, in bytes, 1 MiB to 256 MiB. Longer: the call fails. Default: 16 MiB. */
  readonly answerBytesMax?: number | undefined;
  /** Called before each attempt. Headers that it sets are sent. */
  readonly onRequest?: ((attempt: Attempt) => void) | undefined;
  /** Called after each attempt. */
  readonly onResponse?: ((end: AttemptEnd) => void) | undefined;
  /** What sends the requests. Default: the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
}

/** What one call uses instead of the options of the client. */
export interface CallOptions {
  /** Ends the call when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that one attempt may take, with its answer. */
  readonly timeout?: number | undefined;
  /** Further attempts after a failed one, 0 to 12. */
  readonly retries?: number | undefined;
  /** Whether a call that charges limits or credits carries an `Idempotency-Key`, so that it is retried. */
  readonly retryCharges?: boolean | undefined;
  /**
   * Identifies this call for 24 hours: a repetition with the same key and input returns the outcome of the first call. 1 to
   * 255 visible ASCII characters. Omitted: a random one, if the operation supports it and the call is to be retried.
   */
  readonly idempotencyKey?: string | undefined;
}

const CALL_NAMES: Names<CallOptions> = {
  signal: true,
  timeout: true,
  retries: true,
  retryCharges: true,
  idempotencyKey: true,
};

/** @throws {TypeError} for an option that does not exist. */
export function checkCallOptions(own: CallOptions | undefined): void {
  if (own !== undefined) checkNames(own, CALL_NAMES);
}

/** One attempt of a call. */
export interface Attempt {
  readonly operation: string;
  /** 1, 2, … */
  readonly attempt: number;
  /** Without the root key. */
  readonly headers: Headers;
}

/** How an attempt ended. */
export interface AttemptEnd {
  readonly operation: string;
  readonly attempt: number;
  /** Duration in milliseconds. */
  readonly duration: number;
  /** Undefined without an answer. */
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  /** Undefined if it succeeded. */
  readonly error: LatchkeyError | undefined;
  /** Milliseconds until the next attempt; undefined if there is none. */
  readonly retryIn: number | undefined;
  /** Of the answer; undefined without a complete one. Its text is not here, because it can have secrets. */
  readonly headers: Headers | undefined;
}

/** An answer as it was received. It can have secrets. */
export interface ReceivedAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Undefined if it is longer than `answerBytesMax`. */
  readonly text: string | undefined;
}

/** The limit of requests per minute of the workspace. */
export interface RateLimit {
  readonly limit: number;
  readonly remaining: number;
  /** Milliseconds until the minute ends. */
  readonly reset: number;
}

/** The answer to a call that succeeded. */
export interface Result<Data> {
  readonly data: Data;
  /** Identifies the call in the log of the service. */
  readonly requestId: string;
  /** Present if the workspace has a limit of requests. */
  readonly rateLimit?: RateLimit;
}

/** One page of a list. */
export interface Page<Data> extends Result<Data> {
  readonly pagination: {
    readonly hasMore: boolean;
    /** Send it as `cursor` to get the next page. Present if there is one. */
    readonly cursor?: string;
  };
}

/** An operation that returns pages. */
export interface List<Input, Data, Item> {
  /** One page. */
  (...args: Args<Input>): Promise<Page<Data>>;
  /** Every entry, from the page of `input.cursor` on. It gets the next page when the entries of one are used up. */
  all(...args: Args<Input>): AsyncGenerator<Item, void, undefined>;
}

/** The input can be omitted if all of its members can. */
export type Args<Input> =
  Record<never, never> extends Input ? [input?: Input, options?: CallOptions] : [input: Input, options?: CallOptions];

/** What the client must know of an operation besides its types. */
export interface Traits {
  /** Whether a call can be repeated: always, or with an Idempotency-Key; `charge`: only on request. Omitted: never. */
  readonly repeatable?: "always" | "idempotent" | "charge";
  /** The members of the answer, or of each entry of a list, that are secrets. */
  readonly secrets?: readonly string[];
  /** Name of the list inside `data`. Omitted: `data` is the list. */
  readonly list?: string;
}

/** Makes the method of an operation. */
// biome-ignore lint/suspicious/noExplicitAny: the generated class gives each method its type.
export type MakeMethod = (operation: string, traits: Traits) => any;

/** Makes methods that call the service of these options. */
export function methodsOf(options: LatchkeyOptions): MakeMethod {
  const { url = variableOf("LATCHKEY_URL"), rootKey = variableOf("LATCHKEY_ROOT_KEY") } = options;
  const connection = connectionOf({ ...options, url, rootKey });
  return (operation, traits) => {
    // Async, so that an input without JSON rejects, and an option that does not exist.
    const call = async (input: unknown = {}, own?: CallOptions) => {
      checkCallOptions(own);
      return callOperation(connection, operation, traits, bodyOf(input), own ?? {});
    };
    return Object.assign(call, {
      all: (input?: object, own?: CallOptions) => entriesOf(call, operation, traits, input, own),
    });
  };
}

/** Where calls go, and how. */
export interface Connection {
  readonly url: string;
  readonly rootKey: string | undefined;
  readonly send: typeof fetch;
  readonly answerBytesMax: number;
  readonly options: LatchkeyOptions;
  readonly breaker: Breaker;
}

/** A connection with these options alone: it reads no variables of the environment. */
export function connectionOf(options: LatchkeyOptions): Connection {
  const address = options.url?.toString();
  if (address === undefined) {
    throw new TypeError("The address of the service is missing: give the option `url`, or set LATCHKEY_URL.");
  }
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new TypeError("The option `url` (LATCHKEY_URL) must be an address such as https://keys.example.com.");
  }
  const { rootKey: given } = options;
  const rootKey = given instanceof Secret ? given.reveal() : given?.trim();
  // `fetch` would name the value in its error.
  if (rootKey !== undefined && !/^[\x21-\x7e]+$/.test(rootKey)) {
    throw new TypeError("The option `rootKey` (LATCHKEY_ROOT_KEY) must be a root key: visible ASCII characters only.");
  }
  settingsOf(options, {});
  const { answerBytesMax = ANSWER_BYTES_MAX_DEFAULT } = options;
  return {
    url: url.href.replace(/\/+$/, ""),
    rootKey,
    // Workers accept a call of `fetch` only as a function of its own.
    send: options.fetch ?? ((address, init) => fetch(address, init)),
    answerBytesMax: bounded("answerBytesMax", answerBytesMax, 2 ** 20, ANSWER_BYTES_MAX),
    options,
    breaker: new Breaker(options.circuitBreaker ?? true),
  };
}

/** A variable of the environment; undefined if it is empty or the platform has no environment. */
export function variableOf(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name]?.trim() || undefined;
  } catch {
    // Deno without the permission to read it.
    return undefined;
  }
}

interface Settings {
  readonly timeout: number;
  readonly retries: number;
  readonly retryWaitMax: number;
}

function settingsOf(options: LatchkeyOptions, own: CallOptions): Settings {
  return {
    timeout: bounded("timeout", own.timeout ?? options.timeout ?? TIMEOUT_DEFAULT, 1, TIMEOUT_MAX),
    retries: bounded("retries", own.retries ?? options.retries ?? RETRIES_DEFAULT, 0, RETRIES_MAX),
    retryWaitMax: bounded("retryWaitMax", options.retryWaitMax ?? RETRY_WAIT_MAX_DEFAULT, 0, TIMEOUT_MAX),
  };
}

export function bounded(name: string, value: number, minimum: number, maximum: number): number {
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  throw new TypeError(`The option \`${name}\` must be an integer from ${minimum} to ${maximum}.`);
}

async function* entriesOf(
  call: (input: object, own?: CallOptions) => Promise<Result<unknown>>,
  operation: string,
  { list }: Traits,
  input: object = {},
  own?: CallOptions,
): AsyncGenerator<unknown, void, undefined> {
  for (let page = input; ; ) {
    const { data, pagination } = (await call(page, own)) as Page<unknown>;
    const entries = list === undefined ? data : (data as Record<string, unknown>)[list];
    if (!Array.isArray(entries)) {
      throw new LatchkeyError({ type: "invalid_answer", operation, detail: `${OTHER_SHAPE} There is no list.` });
    }
    yield* entries;
    if (!pagination?.hasMore) return;
    const { cursor } = pagination;
    // Otherwise the same page would be returned for ever.
    if (cursor === undefined || cursor === (page as { cursor?: string }).cursor) {
      throw new LatchkeyError({
        type: "invalid_answer",
        operation,
        detail: "The list has no next page, but more entries.",
      });
    }
    page = { ...input, cursor };
  }
}

/** Calls an operation. The body is JSON. `onAnswer` gets what each attempt received; undefined without a complete answer. */
export async function callOperation(
  connection: Connection,
  operation: string,
  traits: Traits,
  body: string,
  own: CallOptions,
  onAnswer?: (answer: ReceivedAnswer | undefined) => void,
): Promise<Result<unknown>> {
  const { onResponse } = connection.options;
  const { breaker } = connection;
  const settings = settingsOf(connection.options, own);
  const { repeatable } = traits;
  const retryCharges = own.retryCharges ?? connection.options.retryCharges ?? false;
  const hasOwnKey = settings.retries > 0 && (repeatable === "idempotent" || (repeatable === "charge" && retryCharges));
  const idempotencyKey = own.idempotencyKey ?? (hasOwnKey ? crypto.randomUUID() : undefined);
  const isRepeatable = repeatable === "always" || (repeatable !== undefined && idempotencyKey !== undefined);
  let earlier: LatchkeyError | undefined;
  for (let attempt = 1; ; attempt++) {
    const permit = breaker.admit();
    // An earlier attempt may have been executed. Its error says so.
    if (permit === undefined) throw earlier ?? notSent(operation);
    const headers = new Headers();
    if (idempotencyKey !== undefined) headers.set("Idempotency-Key", idempotencyKey);
    const startedAt = performance.now();
    let answer: ReceivedAnswer | LatchkeyError | undefined;
    let ended: Result<unknown> | LatchkeyError | undefined;
    try {
      answer = await attemptOnce(connection, operation, attempt, { headers, body }, settings.timeout, own.signal);
      ended = answer instanceof LatchkeyError ? answer : resultOf(operation, answer, connection.answerBytesMax);
    } finally {
      breaker.end(permit, outcomeOf(ended));
    }
    const error = ended instanceof LatchkeyError ? ended : undefined;
    const retryIn =
      error && attempt <= settings.retries && !breaker.isOpen
        ? retryWait(error, attempt, isRepeatable, settings)
        : undefined;
    const { status, requestId } = error ?? { status: 200, requestId: (ended as Result<unknown>).requestId };
    const duration = performance.now() - startedAt;
    const received = answer instanceof LatchkeyError ? undefined : answer;
    onAnswer?.(received);
    onResponse?.({ operation, attempt, duration, status, requestId, error, retryIn, headers: received?.headers });
    if (!(ended instanceof LatchkeyError)) return withSecrets(ended, traits);
    if (retryIn === undefined) throw ended;
    await wait(retryIn, operation, own.signal);
    earlier = ended;
  }
}

/** The error of a call that the circuit breaker does not let pass. */
function notSent(operation: string): LatchkeyError {
  const detail =
    "The call was not sent, because the service left several in a row without an answer. Try again shortly.";
  return new LatchkeyError({ type: "circuit_open", operation, detail });
}

function outcomeOf(ended: Result<unknown> | LatchkeyError | undefined): Outcome {
  if (!(ended instanceof LatchkeyError)) return ended ? "answered" : "unknown";
  return ended.status !== undefined ? "answered" : ended.type === "timeout" ? "timeout" : "unknown";
}

/** The input as JSON. A secret that is a member of it is revealed; one below prints as such. */
function bodyOf(input: unknown): string {
  return JSON.stringify(input, function (this: Record<string, unknown>, name, value) {
    const original = this === input ? this[name] : undefined;
    return original instanceof Secret ? original.reveal() : value;
  });
}

/** The time before the next attempt, in milliseconds; undefined if there must be none. */
function retryWait(
  { type, status, retryAfter = 0 }: LatchkeyError,
  attempt: number,
  isRepeatable: boolean,
  { retryWaitMax }: Settings,
): number | undefined {
  const isSafe =
    // A call over a limit of requests had no effect.
    status === 429 ||
    (isRepeatable &&
      (type === "network_error" ||
        type === "timeout" ||
        status === 502 ||
        status === 503 ||
        status === 504 ||
        // An attempt without an answer is still being executed.
        (attempt > 1 && type === "application/idempotency_in_progress")));
  if (!isSafe || retryAfter > retryWaitMax) return undefined;
  return Math.round(Math.min(WAIT_FIRST * 2 ** (attempt - 1), retryWaitMax) * (0.5 + Math.random() / 2) + retryAfter);
}

async function wait(length: number, operation: string, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, length);
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
  });
  if (signal?.aborted) throw aborted(operation, signal);
}

function aborted(operation: string, { reason }: AbortSignal): LatchkeyError {
  return new LatchkeyError({ type: "aborted", operation, detail: "The call was aborted.", cause: reason });
}

function attemptOnce(
  connection: Connection,
  operation: string,
  attempt: number,
  request: { headers: Headers; body: string },
  timeout: number,
  signal: AbortSignal | undefined,
): Promise<ReceivedAnswer | LatchkeyError> {
  const { rootKey, options } = connection;
  options.onRequest?.({ operation, attempt, headers: request.headers });
  // A copy: the hook may keep its own, and log it.
  const headers = new Headers(request.headers);
  headers.set("Content-Type", "application/json");
  if (rootKey !== undefined) headers.set("Authorization", `Bearer ${rootKey}`);
  return exchange(connection, operation, `/v2/${operation}`, { ...request, headers, method: "POST" }, timeout, signal);
}

/** Sends one request and reads its answer. `operation` names it in errors. */
export async function exchange(
  { url, send, answerBytesMax }: Connection,
  operation: string,
  path: string,
  request: RequestInit,
  timeout: number,
  signal?: AbortSignal,
): Promise<ReceivedAnswer | LatchkeyError> {
  if (signal?.aborted) return aborted(operation, signal);
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(TIMED_OUT), timeout);
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort);
  try {
    // A redirect could lead the root key to another host. Workers have no `redirect: "error"`.
    const response = await send(url + path, { ...request, redirect: "manual", signal: controller.signal });
    return { status: response.status, headers: response.headers, text: await readText(response, answerBytesMax) };
  } catch (error) {
    if (signal?.aborted) return aborted(operation, signal);
    const detail = controller.signal.aborted
      ? `The service did not answer within ${timeout} ms.`
      : `The service at ${new URL(url).origin} cannot be reached: ${reasonOf(error)}. Is it running, and is that its address?`;
    const type = controller.signal.aborted ? "timeout" : "network_error";
    return new LatchkeyError({ type, operation, detail, cause: error });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/** Runtimes give the reason as the cause, as the message, or as a code. */
function reasonOf(error: unknown): string {
  const { cause, message, code } = Object(error) as {
    cause?: { code?: string; message?: string };
    message?: string;
    code?: string;
  };
  return cause?.code ?? cause?.message ?? code ?? message ?? "unknown reason";
}

const OTHER_SHAPE = "The answer is not one of this operation. Is the service too old or too new?";

/** The answer, or the error that it describes. Its shape is checked: an address can be that of another service. */
function resultOf(
  operation: string,
  { status, headers, text }: ReceivedAnswer,
  bytesMax: number,
): Result<unknown> | LatchkeyError {
  const seconds = headers.get("Retry-After") ?? "";
  const retryAfter = /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1_000 : undefined;
  const { data, error, meta, pagination } = parse(text);
  const requestId = typeof meta?.requestId === "string" ? meta.requestId : undefined;
  const isAnswer = status === 200 && data !== undefined && requestId !== undefined;
  if (isAnswer && typeof data === "object" && data !== null) {
    const rateLimit = rateLimitOf(headers);
    return { data, requestId, ...(pagination && { pagination }), ...(rateLimit && { rateLimit }) };
  }
  if (typeof error?.type === "string" && typeof error.detail === "string") {
    const listed: InputError[] = Array.isArray(error.errors) ? error.errors : [];
    const errors = listed.filter((one) => typeof one?.message === "string");
    const type = error.type.replace(/^.*\/errors\//, "");
    return new LatchkeyError({ type, operation, detail: error.detail, status, errors, retryAfter, requestId });
  }
  const detail =
    text === undefined
      ? `The answer is longer than ${Math.floor(bytesMax / 2 ** 20)} MiB.`
      : status === 0 || (status >= 300 && status < 400)
        ? "The address redirects to another one. Redirects are not followed: use that address."
        : isAnswer
          ? `${OTHER_SHAPE} \`data\` is no object.`
          : `The answer has status ${status} and is not one of Latchkey. Is it the right address?`;
  return new LatchkeyError({ type: "invalid_answer", operation, detail, status, retryAfter });
}

// biome-ignore lint/suspicious/noExplicitAny: each use checks the type of what it reads.
function parse(text: string | undefined): any {
  try {
    return Object(JSON.parse(text ?? ""));
  } catch {
    return {};
  }
}

function rateLimitOf(headers: Headers): RateLimit | undefined {
  const [limit, remaining, reset] = ["Limit", "Remaining", "Reset"].map((name) => headers.get(`RateLimit-${name}`));
  if (limit == null || remaining == null || reset == null) return undefined;
  return { limit: Number(limit), remaining: Number(remaining), reset: Number(reset) * 1_000 };
}

function withSecrets(result: Result<unknown>, { secrets = [] }: Traits): Result<unknown> {
  const { data } = result;
  for (const entry of (Array.isArray(data) ? data : [data]) as Record<string, unknown>[]) {
    for (const name of secrets) {
      const text = entry?.[name];
      if (typeof text === "string") entry[name] = new Secret(text);
    }
  }
  return result;
}
