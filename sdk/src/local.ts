import type { Milliseconds } from "../../engine/src/clock/clock.ts";
import { keepProcessAlive } from "../../engine/src/clock/keep-alive.ts";
import { systemClock } from "../../engine/src/clock/system.ts";
import { then } from "../../engine/src/clock/then.ts";
import { DecidedElsewhere } from "../../engine/src/errors/decided-elsewhere.ts";
import { newId, newRequestId } from "../../engine/src/random/random.ts";
import { systemRandom } from "../../engine/src/random/system.ts";
import { AskedHome } from "../../engine/src/replica/asked-home.ts";
import { OwnCaller } from "../../engine/src/replica/caller.ts";
import { CommonPauses } from "../../engine/src/replica/common-pauses.ts";
import { ReplicaCounts } from "../../engine/src/replica/counts.ts";
import { type LimitCall, ReplicaRefused, rejectAnswer, UnusableAnswer } from "../../engine/src/replica/home.ts";
import { Replica } from "../../engine/src/replica/replica.ts";
import { ChargeRejected, charged } from "../../engine/src/replica/replica-verification.ts";
import { type AnswerValue, valueAnswers } from "../../engine/src/verification/answers.ts";
import { isMistake, type VerificationRequest } from "../../engine/src/verification/request.ts";
import { type Awaitable, attempt, promising } from "./at-once.ts";
import {
  bounded,
  type CallOptions,
  callOperation,
  checkCallOptions,
  connectionOf,
  type LatchkeyOptions,
  type Result,
  variableOf,
} from "./call.ts";
import { CLIENT_NAMES, Latchkey } from "./client.ts";
import { LatchkeyError } from "./error.ts";
import { errorOf, print } from "./on-error.ts";
import type {
  ExplainVerificationInput,
  ExplainVerificationOutput,
  KeysOperations,
  MultiLimitInput,
  RatelimitsOperations,
  VerifyKeyInput,
  VerifyKeyOutput,
} from "./operations.ts";
import { checkNames, type Names } from "./option-names.ts";
import { Secret } from "./secret.ts";

/** Options of `LocalLatchkey`, besides those of `Latchkey`. */
export interface LocalLatchkeyOptions extends LatchkeyOptions {
  /** The name by which the service shows this process; at most 100 characters. */
  readonly name?: string | undefined;
  /** Memory for the records of keys, in bytes. Default: 64 MiB, for about 150,000 keys. */
  readonly cacheBytes?: number | undefined;
  /**
   * Milliseconds for which known keys are verified while the service does not answer. Default: 0. A key that is revoked in
   * this time works until the service answers.
   */
  readonly staleMax?: number | undefined;
  /**
   * Whether this process takes parts of busy limits ahead, so that calls of these limits need no round trip. Default: true.
   * Without it, the service charges each call, and `remaining` of an answer always has all charges of others.
   */
  readonly leases?: boolean | undefined;
  /**
   * Called when the service stops or begins to answer this process, also before it has answered once. Default: prints with
   * `console.error` why nothing is decided here.
   */
  readonly onState?: ((state: LocalState, cause?: unknown) => void) | undefined;
  /** Called with a number of verifications that the service does not count, and why. Default: nothing. */
  readonly onLoss?: ((verifications: number, cause: unknown) => void) | undefined;
}

/**
 * `current`: keys are decided here. `unreachable`: the service does not answer. `refused`: it does not accept the root key; nothing
 * is decided here.
 */
export type LocalState = "current" | "unreachable" | "refused";

const CACHE_BYTES_DEFAULT = 64 * 1024 * 1024;
const CACHE_BYTES_MIN = 1024 * 1024;
const STALE_MAX = 3_600_000;
const NAME_LENGTH_MAX = 100;
/** Unsuccessful look-ups per second. */
const LOOKUPS_PER_SECOND = 1_000;
/** Time for an answer, beyond what the service may wait with it. */
const ANSWER_TIME_MAX = 5_000;
/** Between two attempts to begin. */
const START_PAUSE: Milliseconds = 1_000;
/** The release that this client has. */
const VERSION = "0.1.0";

/** The members that are decided here. A call with others goes to the service as it is. */
const MEMBERS = new Set(["key", "apiId", "keyspaces", "permissions", "tags", "credits", "ratelimits", "clientIp"]);
/** Those of a named limit. Only the service knows limits that a call brings. */
const NAMED_MEMBERS = new Set(["name", "cost"]);
const [NAMED_MAX, NAMED_LENGTH_MAX] = [50, 255];
/** Those of an entry of a call of limits. */
const ENTRY_MEMBERS = new Set(["namespace", "identifier", "limit", "duration", "mode", "shadow", "cost"]);
const [ENTRIES_MAX, NAME_MAX] = [100, 512];
const [KEY_MAX, ID_MAX, APIS_MAX, PERMISSIONS_MAX, TAGS_MAX, TAG_MAX] = [512, 64, 20, 1_000, 10, 128];
/** The address of a call without one. The service would take that of this process, which only it knows. */
const NO_ADDRESS = "0.0.0.0";

const LOCAL_NAMES: Names<LocalLatchkeyOptions> = {
  ...CLIENT_NAMES,
  name: true,
  cacheBytes: true,
  staleMax: true,
  leases: true,
  onState: true,
  onLoss: true,
};

/** The default of `onState`. */
function printState(state: LocalState, cause: unknown): void {
  if (state !== "current") print(new Error(`LocalLatchkey cannot decide (${state}): ${errorOf(cause).message}`));
}

/** Clients that the process closes when it has nothing more to do. */
const open = new Set<LocalLatchkey>();
let isWatched = false;

function closeAtExit(client: LocalLatchkey): void {
  open.add(client);
  if (isWatched) return;
  isWatched = true;
  // Node, Bun and Deno have it.
  const { process } = globalThis as { process?: Partial<Pick<NodeJS.Process, "on">> };
  process?.on?.("beforeExit", () => {
    for (const each of open) void each.close();
  });
}

/**
 * A client that decides verifications in this process. It has the methods of `Latchkey`, and every middleware takes it.
 *
 * ```ts
 * const latchkey = new LocalLatchkey({ url, rootKey });
 * app.use(verify({ latchkey, apiId }));
 * ```
 *
 * It keeps records of the keys that it was asked about, and follows the changes of the service: a revoked key is dead within
 * a second, also if the network is cut. Limits, credits, budgets and limits of namespaces (`ratelimits.limit`, `multiLimit`) are
 * charged by the service, in one question for the calls of a moment; of busy limits of keys, this process takes a part ahead.
 * Everything else is a call of the service. Its root key needs `replicas.*.open`, or that of its APIs.
 */
export class LocalLatchkey extends Latchkey {
  declare readonly keys: KeysOperations;
  declare readonly ratelimits: RatelimitsOperations;
  readonly #replica: Replica<AnswerValue>;
  readonly #counts: ReplicaCounts;
  readonly #caller: OwnCaller;
  readonly #remote: Pick<KeysOperations, "verifyKey" | "explainVerification"> &
    Pick<RatelimitsOperations, "limit" | "multiLimit">;
  readonly #onState: NonNullable<LocalLatchkeyOptions["onState"]>;
  #state: LocalState | undefined;
  readonly #started: Promise<void>;
  #isStarted = false;
  #closed = false;

  /** @throws {TypeError} without an address or a root key, or with a value that cannot be used. It names the option. */
  constructor(options: LocalLatchkeyOptions = {}) {
    checkNames(options, LOCAL_NAMES);
    const { name, staleMax = 0, cacheBytes = CACHE_BYTES_DEFAULT, leases = true, ...further } = options;
    const { onState = printState, onLoss = () => {}, ...ofClient } = further;
    super(ofClient);
    // The program of the service needs it too; the other parts of this package do not.
    if (!("withResolvers" in Promise)) throw new TypeError("LocalLatchkey needs Node 22 or newer, Bun or Deno.");
    const { url = variableOf("LATCHKEY_URL") } = options;
    const given = options.rootKey ?? variableOf("LATCHKEY_ROOT_KEY");
    const rootKey = given instanceof Secret ? given.reveal() : given?.trim();
    if (rootKey === undefined) {
      throw new TypeError("A root key is missing: give the option `rootKey`, or set LATCHKEY_ROOT_KEY.");
    }
    bounded("staleMax", staleMax, 0, STALE_MAX);
    if (typeof leases !== "boolean") throw new TypeError("The option `leases` must be true or false.");
    bounded("cacheBytes", cacheBytes, CACHE_BYTES_MIN, Number.MAX_SAFE_INTEGER);
    if (name !== undefined && (name === "" || name.length > NAME_LENGTH_MAX)) {
      throw new TypeError(`The option \`name\` must have 1 to ${NAME_LENGTH_MAX} characters.`);
    }
    const home = new FetchHome({ ...ofClient, url, rootKey, retries: 0, circuitBreaker: false });
    const id = newId(systemRandom, "edge");
    this.#counts = new ReplicaCounts({ clock: systemClock, recorder: id, home, onLoss });
    this.#replica = new Replica({
      form: valueAnswers,
      clock: systemClock,
      random: systemRandom,
      home,
      bytesMax: cacheBytes,
      staleMax,
      lookupsPerSecond: LOOKUPS_PER_SECOND,
      leases,
      // What is not decided here is counted by the service.
      recorder: { verification: (event) => isUndecided(event) || this.#counts.verification(event) },
      status: () => ({
        id,
        kind: "library",
        version: VERSION,
        reports: this.#counts.waiting,
        ...(name !== undefined && { name }),
      }),
      onState: (state, cause) => this.#tell(state, cause),
    });
    this.#onState = onState;
    this.#caller = new OwnCaller(this.#replica.directories, rootKey);
    const { limit, multiLimit } = this.ratelimits;
    const { verifyKey, explainVerification } = this.keys;
    this.#remote = { verifyKey, explainVerification, limit, multiLimit };
    this.keys = {
      ...this.keys,
      verifyKey: promising((input: VerifyKeyInput, own?: CallOptions) => this.#verifyKey(input, own)),
      explainVerification: (input = {}, own) => this.#explainVerification(input, own),
    };
    this.ratelimits = {
      ...this.ratelimits,
      limit: (input, own) => this.#charge("ratelimits.limit", [input], own, () => this.#remote.limit(input, own)),
      multiLimit: (input, own) =>
        this.#charge("ratelimits.multiLimit", input, own, () => this.#remote.multiLimit(input, own)),
    };
    this.#started = this.#start();
    closeAtExit(this);
  }

  /**
   * Resolves when this process decides, or when the client was closed; until then, calls go to the service. Never rejects. Whoever waits
   * keeps the process alive.
   */
  async ready(): Promise<void> {
    // No timer of the client does. A program that waits for a service that is away would end, with the exit code 13.
    const release = keepProcessAlive();
    await this.#started;
    release();
  }

  /**
   * Reports what was counted, returns what is left of leases, and ends the connection to the service. Later calls go to the service. A
   * program that has nothing more to do closes its clients itself; before `process.exit`, it has to.
   */
  async close(): Promise<void> {
    open.delete(this);
    this.#closed = true;
    this.#isStarted = false;
    await Promise.all([this.#replica.close(), this.#counts.close()]);
  }

  async #start(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#replica.start();
        this.#isStarted = !this.#closed;
        if (this.#state !== undefined) this.#tell("current");
        return;
      } catch (error) {
        if (!this.#closed) this.#tell(error instanceof ReplicaRefused ? "refused" : "unreachable", error);
        await new Promise<void>((resolve) => systemClock.schedule(START_PAUSE, resolve));
      }
    }
  }

  #tell(state: LocalState, cause?: unknown): void {
    if (this.#state === state) return;
    this.#state = state;
    try {
      this.#onState(state, cause);
    } catch (error) {
      print(errorOf(error));
    }
  }

  #verifyKey(input: VerifyKeyInput, own?: CallOptions): Awaitable<Result<VerifyKeyOutput>> {
    checkCallOptions(own);
    const request = this.#isStarted && own?.idempotencyKey === undefined ? readRequest(input) : undefined;
    if (request === undefined) return this.#remote.verifyKey(input, own);
    const requestId = newRequestId(systemRandom);
    const decided = attempt(
      () => this.#decide(request, requestId),
      (error) => {
        if (error instanceof DecidedElsewhere) return undefined;
        throw asLatchkeyError(error, "keys.verifyKey", requestId);
      },
    );
    return then(decided, (data) => (data === undefined ? this.#remote.verifyKey(input, own) : { data, requestId }));
  }

  /** The answer to a verification; undefined if the service must decide it. */
  #decide(request: LocalRequest, requestId: string): Awaitable<VerifyKeyOutput | undefined> {
    const now = systemClock.now();
    const startedAt = systemClock.monotonic();
    const { changes } = this.#replica.directories;
    const caller = then(changes.mayServe(now, startedAt), (mayServe) => (mayServe ? this.#caller.find(now) : null));
    return then(caller, (principal) => {
      if (principal === null) return undefined;
      const { workspaceId } = this.#replica.stream.settings;
      const answer = this.#replica.verification.verify({
        ...request,
        workspaceId,
        principal,
        requestId,
        now,
        startedAt,
      });
      return then(answer, (decided) => {
        // The service describes mistakes in a call.
        if (isMistake(decided)) return undefined;
        return isUndecided({ code: decided.code, address: request.address }) ? undefined : (decided as VerifyKeyOutput);
      });
    });
  }

  /** The explanation of the service, with what this process would decide by. */
  async #explainVerification(
    input: ExplainVerificationInput,
    own?: CallOptions,
  ): Promise<Result<ExplainVerificationOutput>> {
    const explained = await this.#remote.explainVerification(input, own);
    if (!this.#isStarted) return explained;
    const { key: given } = input;
    const key = given instanceof Secret ? given.reveal() : given;
    const edge = this.#replica.explain(key, explained.data.key?.keyId);
    return { ...explained, data: { ...explained.data, edge } };
  }

  /** Charges limits of namespaces at the service, in one question for the calls of a moment. */
  async #charge<Output>(
    operation: LimitCall["operation"],
    entries: MultiLimitInput,
    own: CallOptions | undefined,
    remote: () => Promise<Result<Output>>,
  ): Promise<Result<Output>> {
    checkCallOptions(own);
    if (!this.#isStarted || own?.idempotencyKey !== undefined || !areEntries(entries)) return remote();
    const requestId = newRequestId(systemRandom);
    try {
      // Calls of a workspace with a limit of requests have its state in their answer.
      if ((await this.#caller.find(systemClock.now())) === null) return remote();
      const result = await this.#replica.charges.charge({ operation, entries });
      if ("isElsewhere" in result) return remote();
      return { data: charged(result).data as Output, requestId };
    } catch (error) {
      if (error instanceof DecidedElsewhere) return remote();
      throw asLatchkeyError(error, operation, requestId);
    }
  }
}

/** Whether the service reads these entries. It describes mistakes in a call of their own, and not in those of others. */
function areEntries(entries: MultiLimitInput): boolean {
  return Array.isArray(entries) && entries.length > 0 && entries.length <= ENTRIES_MAX && entries.every(isEntry);
}

function isEntry(entry: unknown): boolean {
  if (typeof entry !== "object" || entry === null) return false;
  for (const name of Object.keys(entry)) if (!ENTRY_MEMBERS.has(name)) return false;
  const { namespace, identifier, limit, duration, mode, shadow, cost } = entry as MultiLimitInput[number];
  return (
    isText(namespace, NAME_MAX) &&
    isText(identifier, NAME_MAX) &&
    isCost(limit) &&
    limit > 0 &&
    Number.isInteger(duration) &&
    duration > 0 &&
    (mode === undefined || mode === "standard" || mode === "strict") &&
    (shadow === undefined || typeof shadow === "boolean") &&
    (cost === undefined || isCost(cost))
  );
}

/** Whether the key has a list of addresses, and the call has no address. */
function isUndecided({ code, address }: { readonly code: string; readonly address: string }): boolean {
  return code === "FORBIDDEN" && address === NO_ADDRESS;
}

type LocalRequest = Omit<VerificationRequest, "workspaceId" | "principal" | "requestId" | "now" | "startedAt">;

/** The request of a call that can be decided here; undefined if the service must look at it. */
function readRequest(input: VerifyKeyInput): LocalRequest | undefined {
  if (typeof input !== "object" || input === null) return undefined;
  if (!hasOnly(input, MEMBERS)) return undefined;
  const { key: given, apiId, keyspaces, permissions, tags, credits, ratelimits, clientIp } = input;
  const key = given instanceof Secret ? given.reveal() : given;
  const isValid =
    isText(key, KEY_MAX) &&
    (apiId === undefined || isText(apiId, ID_MAX)) &&
    (keyspaces === undefined || isListOfTexts(keyspaces, APIS_MAX, ID_MAX)) &&
    (permissions === undefined || isText(permissions, PERMISSIONS_MAX)) &&
    (tags === undefined || isListOfTexts(tags, TAGS_MAX, TAG_MAX)) &&
    (credits === undefined || (Object.keys(credits).join() === "cost" && isCost(credits.cost))) &&
    (ratelimits === undefined || areNamedLimits(ratelimits)) &&
    (clientIp === undefined || isText(clientIp, ID_MAX));
  if (!isValid) return undefined;
  const named = ratelimits?.map(({ name, cost = 1 }) => ({ name, cost }));
  return { key, apiId, keyspaces, permissions, tags, credits, ratelimits: named, address: clientIp ?? NO_ADDRESS };
}

function areNamedLimits(limits: NonNullable<VerifyKeyInput["ratelimits"]>): boolean {
  if (!Array.isArray(limits) || limits.length > NAMED_MAX) return false;
  const names = new Set<string>();
  for (const limit of limits) {
    if (!isNamedLimit(limit)) return false;
    names.add(limit.name);
  }
  return names.size === limits.length;
}

function isNamedLimit(limit: unknown): boolean {
  if (typeof limit !== "object" || limit === null || !hasOnly(limit, NAMED_MEMBERS)) return false;
  const { name, cost } = limit as NonNullable<VerifyKeyInput["ratelimits"]>[number];
  return isText(name, NAMED_LENGTH_MAX) && (cost === undefined || isCost(cost));
}

/** Whether it has no further members with a value. */
function hasOnly(value: object, members: ReadonlySet<string>): boolean {
  for (const name of Object.keys(value)) {
    if (!members.has(name) && (value as Record<string, unknown>)[name] !== undefined) return false;
  }
  return true;
}

function isText(value: unknown, lengthMax: number): value is string {
  return typeof value === "string" && value.length > 0 && value.length <= lengthMax;
}

function isListOfTexts(value: unknown, countMax: number, lengthMax: number): boolean {
  return (
    Array.isArray(value) && value.length > 0 && value.length <= countMax && value.every((one) => isText(one, lengthMax))
  );
}

function isCost(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 1_000_000_000;
}

function asLatchkeyError(error: unknown, operation: string, requestId: string): unknown {
  if (error instanceof LatchkeyError) return error;
  if (error instanceof ChargeRejected) {
    const { type, status, message: detail, retryAfter } = error;
    return new LatchkeyError({
      type: type as LatchkeyError["type"],
      operation,
      status,
      detail,
      retryAfter,
      requestId,
    });
  }
  if (error instanceof Error && error.cause instanceof LatchkeyError) {
    const { type, detail, status, retryAfter } = error.cause;
    return new LatchkeyError({ type, operation, detail, status, retryAfter, cause: error });
  }
  if (error instanceof UnusableAnswer) {
    return new LatchkeyError({ type: "invalid_answer", operation, detail: error.message, status: 200, cause: error });
  }
  return error;
}

/** The questions about changes that home holds, of all clients of this process. */
const polls = new CommonPauses(systemClock);

/** The service, over `fetch`. */
class FetchHome extends AskedHome {
  readonly #connection: ReturnType<typeof connectionOf>;

  constructor(options: LatchkeyOptions) {
    super();
    // Hooks are about the calls of the program.
    this.#connection = connectionOf({ ...options, onRequest: undefined, onResponse: undefined });
  }

  protected async ask(operation: string, question: object, wait: Milliseconds): Promise<unknown> {
    try {
      const own = { timeout: ANSWER_TIME_MAX + wait, retries: 0 };
      const call = () => callOperation(this.#connection, operation, {}, JSON.stringify(question), own);
      const { data } = await (wait > 0 ? polls.run(call) : call());
      return data;
    } catch (error) {
      const { status, message: detail } = error as LatchkeyError;
      rejectAnswer({ operation, status, detail, cause: error });
    }
  }
}
