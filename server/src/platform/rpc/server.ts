import { type Clock, type Instant, instantAt, type Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { pause } from "../../../../engine/src/clock/pause.ts";
import { then } from "../../../../engine/src/clock/then.ts";
import { applyOwnChange, type CallDirectories } from "../../../../engine/src/directory/directories.ts";
import { DecidedElsewhere } from "../../../../engine/src/errors/decided-elsewhere.ts";
import { isOverloaded, type Overloaded } from "../../../../engine/src/errors/overloaded.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { Limiter } from "../../../../engine/src/limits/limiter.ts";
import { newRequestId, type Random } from "../../../../engine/src/random/random.ts";
import type { CallMetrics } from "../../metrics/calls.ts";
import type { RootKeyUse } from "../store/access/root-key-usage.ts";
import type { QuotaMaxima } from "../store/quotas/quotas.ts";
import type { Store } from "../store/store.ts";
import { isMasterKeyMissing } from "../vault/vault.ts";
import type { Authenticator, Credentials } from "./authenticate.ts";
import { notUtf8, readBody, requireJson } from "./body.ts";
import type { CallQueues } from "./call-queues.ts";
import { ChunkPace } from "./chunk-pace.ts";
import type { OperationCall, operationProcedures } from "./execute.ts";
import type { FailedAuthentications } from "./failed-authentications.ts";
import type { QueuedWork } from "./fair-queue.ts";
import { type IdempotentCall, idempotentCall, sealedCall } from "./idempotency.ts";
import { parseLongBody, SHORT_BODY_LENGTH_MAX, SHORT_LIST_LENGTH_MAX } from "./long-body.ts";
import {
  type Bulk,
  type Metered,
  type MeteredAnswer,
  type MeteredContext,
  type Operation,
  type Page,
  type ProblemRecord,
  pathOf,
  type Query,
} from "./operation.ts";
import { Principal } from "./principal.ts";
import { Problem, type ProblemCode, problemFrom, problems } from "./problems.ts";
import { QuotaCounts } from "./quota-counts.ts";
import { compiledSchema } from "./validate.ts";
import { type Admission, admit } from "./workspace-limit.ts";
import { overQuota, WorkspaceQuota } from "./workspace-quota.ts";

/** A call as the transport received it. */
export interface RpcRequest {
  /** The path of the request, for messages: `/v2/keys.verifyKey`. */
  path: string;
  credentials: Credentials;
  /** What authenticates the caller. Omitted: the root key in the credentials. */
  authentication?: CallerAuthentication;
  /** The token of a session that is not in the credentials, but replaces the root key. */
  session?: string | undefined;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** The header Idempotency-Key. */
  idempotencyKey: string | undefined;
  /** Null: the bytes are not UTF-8. */
  body: string | null;
  /** The caller's address, as far as it can be trusted. */
  address: string;
  /** Set if another thread has counted the call against the limit of its workspace: the headers of its answer. */
  admission?: Readonly<Record<string, string>> | undefined;
}

/** The status of the result of a call that another thread or process must answer. Its headers are those of the admission. */
export const DECIDED_ELSEWHERE = 0;

/** What authenticates the caller of a request. */
export type Caller = Pick<RpcRequest, "credentials" | "authentication" | "session" | "address">;

/** A way to authenticate callers that send no root key. */
export interface CallerAuthentication {
  /** The principal for which the session of the caller stands. Rejects with a problem if it has ended. */
  authenticate(caller: Caller): Promise<Principal>;
}

export interface RpcResponse {
  /** 0: another thread or process must answer the call, see `DECIDED_ELSEWHERE`. */
  status: number;
  /** JSON text. */
  body: string;
  requestId: string;
  /** Headers beyond the content type and the request id. */
  headers?: Readonly<Record<string, string>>;
  /** The problem that the body describes. */
  problem?: ProblemCode;
}

/** A request that was answered. */
export interface AnsweredRequest {
  requestId: string;
  /** Empty: it has none that is known. */
  path: string;
  status: number;
  /** Absent: the request never became a call. */
  address?: string;
  tookMs?: number;
  problem?: ProblemCode;
}

/** A call of another protocol than the one of the API, whose message is read by its handler. */
export interface ForeignCall extends Caller {
  /** Names it in metrics. */
  name: string;
}

/** What becomes of a call of another protocol that fails: a problem, and the name of the call in the log. */
export class FailedCall extends Error {
  readonly problem: Problem;
  readonly requestId: string;

  constructor(problem: Problem, requestId: string) {
    super(problem.message);
    this.name = "FailedCall";
    this.problem = problem;
    this.requestId = requestId;
  }
}

export interface RpcOptions {
  clock: Clock;
  random: Random;
  directories: CallDirectories;
  authenticator: Authenticator;
  store: Store<ReturnType<typeof operationProcedures>>;
  limiter: Limiter;
  queues: CallQueues;
  /** What second steps and metered operations get; see `usingServices`. */
  services: object;
  /** The workspace of callers without a root key. */
  defaultWorkspaceId: string;
  /** Whether keys.verifyKey requires a root key. */
  verifyAuth: "optional" | "required";
  quotas: QuotaCounts;
  /** The largest number of stored calls with an Idempotency-Key of a workspace. */
  idempotencyRecordsMax: number;
  /** Prefix of the paths of problem types; empty: they are relative. */
  publicUrl: string;
  /** Call metrics; null: metrics are off. */
  calls: CallMetrics | null;
  failedAuthentications: FailedAuthentications;
  /** Gets every answer; undefined: nobody wants them, and they cost nothing. */
  onAnswer?: ((answer: AnsweredRequest) => void) | undefined;
  /** Reports a bug or an unavailable database, with the request that failed. */
  onFailure(error: unknown, requestId: string, path: string): void;
}

/** What transports need of an `Rpc`. */
export type RpcCalls = Pick<Rpc, "call" | "recognize" | "reject" | "failed" | "plain" | "bare">;

/**
 * Answers calls. The steps of a call: authenticate, count it against the limit of its workspace, validate its body, run
 * the operation, wrap the result in the envelope. Steps that wait for nothing run without a promise.
 */
export class Rpc {
  readonly #options: RpcOptions;
  readonly #authenticator: Authenticator;
  readonly #queues: CallQueues;
  readonly #services: never;
  readonly #quotas: QuotaCounts;
  readonly #recordQuota: WorkspaceQuota;
  readonly #chunkPace = new ChunkPace(BULK_CHUNKS);
  #unavailableReportedUntil = 0;

  constructor(options: RpcOptions) {
    this.#options = options;
    this.#authenticator = options.authenticator;
    const { clock, store, queues } = options;
    this.#queues = queues;
    // Each operation says which services it needs, and the program checks that it has them.
    this.#services = options.services as never;
    this.#quotas = options.quotas;
    this.#recordQuota = new WorkspaceQuota({
      clock,
      max: options.idempotencyRecordsMax,
      count: (workspaceId, limit) => store.read("countIdempotencyRecords", { workspaceId, limit }),
    });
  }

  /** Answers a call; never throws or rejects. Without a promise if the call waits for nothing. */
  call(operation: Operation, request: RpcRequest): RpcResponse | Promise<RpcResponse> {
    const { calls, clock, onAnswer } = this.#options;
    const startedAt = clock.monotonic();
    const response = this.#authenticate(operation, request, startedAt);
    if (calls === null && onAnswer === undefined) return response;
    if (!(response instanceof Promise)) {
      if (response.status !== DECIDED_ELSEWHERE) this.#record(operation, request, response, startedAt);
      return response;
    }
    return response.then((settled) => {
      if (settled.status !== DECIDED_ELSEWHERE) this.#record(operation, request, settled, startedAt);
      return settled;
    });
  }

  #record({ name }: Operation, { path, address }: RpcRequest, response: RpcResponse, startedAt: Milliseconds): void {
    const { calls, clock, onAnswer } = this.#options;
    const tookMs = clock.monotonic() - startedAt;
    calls?.record(name, response.status, tookMs);
    onAnswer?.(answered(response, path, { address, tookMs }));
  }

  /**
   * Runs a call of another protocol, whose caller needs a root key: authenticates it, counts it against the limit of its
   * workspace, and gives what `handle` gives. Without a promise if the call waits for nothing.
   *
   * @throws {FailedCall} or rejects with it; {DecidedElsewhere} if another process must answer it.
   */
  run<T>(
    call: ForeignCall,
    handle: (context: MeteredContext<never> & { readonly principal: Principal }) => T | Promise<T>,
  ): T | Promise<T> {
    const { clock, random } = this.#options;
    const startedAt = clock.monotonic();
    const requestId = newRequestId(random);
    const now = clock.now();
    let isRefused = true;
    const admitted = (principal: Principal, at = now): T | Promise<T> =>
      handle({
        now: at,
        clock,
        startedAt,
        principal,
        workspaceId: principal.workspaceId,
        idempotent: undefined,
        address: call.address,
        requestId,
        fail,
      });
    const identified = (principal: Principal | null): T | Promise<T> => {
      if (principal === null) missingRootKey();
      isRefused = false;
      if (principal.requestsPerMinute === null) return admitted(principal);
      const admission = admit(principal, principal.requestsPerMinute, this.#options.limiter);
      const proceed = ({ rejection }: Admission, current: Principal, at?: Instant) => {
        if (rejection) throw rejection;
        return admitted(current, at);
      };
      if (!(admission instanceof Promise)) return proceed(admission, principal);
      return admission.then((settled) => this.#afterWait(principal, (...current) => proceed(settled, ...current)));
    };
    const succeed = (result: T): T => {
      this.#recordForeign(call, { status: 200, requestId }, startedAt);
      return result;
    };
    const failed = (error: unknown): never => {
      if (error instanceof DecidedElsewhere) throw error;
      const problem = this.problemOf(error, requestId, call.name);
      if (isRefused)
        this.#options.failedAuthentications.add(problem, { address: call.address, path: call.name }, requestId);
      const { status } = problems[problem.code];
      this.#recordForeign(call, { status, requestId, problem: problem.code }, startedAt);
      throw new FailedCall(problem, requestId);
    };
    let result: T | Promise<T>;
    try {
      result = then(this.#identify(call, now, startedAt), identified);
    } catch (error) {
      return failed(error);
    }
    return result instanceof Promise ? result.then(succeed, failed) : succeed(result);
  }

  #recordForeign(
    { name, address }: ForeignCall,
    response: Pick<RpcResponse, "status" | "requestId" | "problem">,
    startedAt: Milliseconds,
  ): void {
    const { calls, clock, onAnswer } = this.#options;
    const tookMs = clock.monotonic() - startedAt;
    calls?.record(name, response.status, tookMs);
    onAnswer?.(answered(response, name, { address, tookMs }));
  }

  /** The workspace of the caller, or null if authentication will reject the call. Never rejects. */
  async recognize(caller: Caller): Promise<string | null> {
    const { clock } = this.#options;
    try {
      const principal = await this.#identify(caller, clock.now(), clock.monotonic());
      return principal?.workspaceId ?? null;
    } catch {
      return null;
    }
  }

  /** The root keys that made calls since the last call of this method. */
  takeRootKeyUses(): RootKeyUse[] {
    return this.#authenticator.takeUses();
  }

  /** Records the uses of root keys in other threads. */
  recordRootKeyUses(uses: readonly RootKeyUse[]): void {
    for (const { rootKeyId, at } of uses) this.#authenticator.recordUse(rootKeyId, instantAt(at));
  }

  /**
   * The answer to a request that is rejected before it becomes a call. `path`: of a route, empty if there is none. `address`:
   * given if the problem may be that of its credential.
   */
  reject(problem: Problem, path = "", address?: string): RpcResponse {
    const requestId = newRequestId(this.#options.random);
    if (address !== undefined) this.#options.failedAuthentications.add(problem, { address, path }, requestId);
    return this.#outside(this.#problem(problem, requestId), path);
  }

  /** The answer to a request whose handling failed outside of a call. */
  failed(error: unknown, path: string): RpcResponse {
    return this.#outside(this.#failure(error, newRequestId(this.#options.random), path), path);
  }

  /** A success outside of any operation. */
  plain(data: unknown, path = ""): RpcResponse {
    return this.#outside(success(newRequestId(this.#options.random), `"data":${JSON.stringify(data)}`), path);
  }

  /** An answer without the envelope, outside of any operation. */
  bare(status: number, body: object, path: string): RpcResponse {
    return this.#outside({ status, requestId: newRequestId(this.#options.random), body: JSON.stringify(body) }, path);
  }

  #outside(response: RpcResponse, path: string): RpcResponse {
    this.#options.onAnswer?.(answered(response, path));
    return response;
  }

  #identify(caller: Caller, now: Instant, monotonic: Milliseconds): Principal | null | Promise<Principal> {
    return caller.authentication === undefined
      ? this.#authenticator.authenticate(caller.credentials, caller.address, now, monotonic)
      : caller.authentication.authenticate(caller);
  }

  #authenticate(
    operation: Operation,
    request: RpcRequest,
    startedAt: Milliseconds,
  ): RpcResponse | Promise<RpcResponse> {
    const { random, clock } = this.#options;
    const requestId = newRequestId(random);
    const now = clock.now();
    try {
      const principal = this.#identify(request, now, startedAt);
      if (!(principal instanceof Promise)) return this.#countRequest(operation, request, principal, now, requestId);
      return principal
        .then((settled) => this.#countRequest(operation, request, settled, clock.now(), requestId))
        .catch((error) => this.#refuse(error, request, requestId));
    } catch (error) {
      return this.#refuse(error, request, requestId);
    }
  }

  /** The answer to a caller that was not authenticated. */
  #refuse(error: unknown, request: RpcRequest, requestId: string): RpcResponse {
    if (error instanceof Problem) this.#options.failedAuthentications.add(error, request, requestId);
    return this.#failure(error, requestId, request.path);
  }

  /** Counts the call against the limit of its workspace, if there is one, before its body is read. */
  #countRequest(
    operation: Operation,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
    requestId: string,
  ): RpcResponse | Promise<RpcResponse> {
    const { admission: admitted } = request;
    if (admitted !== undefined) {
      const response = this.#validateAndRun(operation, request, principal, now, requestId);
      return then(response, (settled) => withHeaders(settled, admitted));
    }
    if (principal === null || principal.requestsPerMinute === null) {
      return this.#validateAndRun(operation, request, principal, now, requestId);
    }
    const proceed = ({ headers, rejection }: Admission, current: Principal, at: Instant) => {
      if (rejection) return withHeaders(this.#problem(rejection, requestId), headers);
      const response = this.#validateAndRun(operation, request, current, at, requestId);
      return then(response, (settled) => withHeaders(settled, headers));
    };
    const admission = admit(principal, principal.requestsPerMinute, this.#options.limiter);
    if (!(admission instanceof Promise)) return proceed(admission, principal, now);
    return admission
      .then((settled) => this.#afterWait(principal, (...current) => proceed(settled, ...current)))
      .catch((error) => this.#failure(error, requestId, request.path));
  }

  /** Goes on with the caller as it is after a wait. Rejects if its root key may make no calls any more. */
  #afterWait<T>(principal: Principal, next: (principal: Principal, now: Instant) => T | Promise<T>): T | Promise<T> {
    const now = this.#options.clock.now();
    return then(principal.atPresent(now), (settled) => next(settled, now));
  }

  #validateAndRun(
    operation: Operation,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
    requestId: string,
  ): RpcResponse | Promise<RpcResponse> {
    try {
      if (operation.kind !== "metered") {
        return this.#runStored(operation, request, principal, now, requestId).then(
          (members) => success(requestId, members),
          (error) => this.#failure(error, requestId, request.path),
        );
      }
      const answer = this.#runMetered(operation, request, principal, now, requestId);
      if (!(answer instanceof Promise)) return meteredSuccess(requestId, answer);
      return answer.then(
        (settled) => meteredSuccess(requestId, settled),
        (error) => this.#failure(error, requestId, request.path),
      );
    } catch (error) {
      return this.#failure(error, requestId, request.path);
    }
  }

  #runMetered(
    operation: Metered,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
    requestId: string,
  ): MeteredAnswer | Promise<MeteredAnswer> {
    const { anonymousCaller, isPublic } = operation;
    if (principal === null && !isPublic && !(anonymousCaller && this.#options.verifyAuth === "optional")) {
      missingRootKey();
    }
    requireJson(request.contentType, request.contentEncoding);
    if (request.body === null) throw notUtf8();
    const { body, path } = request;
    // Only a route of its own takes that much, for callers with a root key.
    if (body.length > SHORT_BODY_LENGTH_MAX && principal !== null) {
      const { input, permissions } = operation.declaration;
      principal.authorizeSome(permissions);
      const parsed = this.#queues.longBodies.run(principal.workspaceId, () =>
        parseLongBody(compiledSchema(input), body, path),
      );
      return parsed.then((read) =>
        this.#afterWait(principal, (current, at) =>
          this.#handleMetered(operation, read, request, current, at, requestId),
        ),
      );
    }
    const input = readBody(compiledSchema(operation.declaration.input), body, path, false);
    return this.#handleMetered(operation, input, request, principal, now, requestId);
  }

  #handleMetered(
    operation: Metered,
    input: unknown,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
    requestId: string,
  ): MeteredAnswer | Promise<MeteredAnswer> {
    const { anonymousCaller } = operation;
    const workspaceId = principal?.workspaceId ?? this.#options.defaultWorkspaceId;
    const context: MeteredContext<ProblemCode> = {
      now,
      clock: this.#options.clock,
      startedAt: this.#options.clock.monotonic(),
      principal,
      workspaceId,
      idempotent:
        request.idempotencyKey === undefined || !operation.declaration.idempotent
          ? undefined
          : this.#withinQuota(
              idempotentCall(
                request.idempotencyKey,
                workspaceId,
                operation.name,
                principal?.rootKeyId ?? anonymousCaller!(input as never),
                input as object,
              ),
            ),
      address: request.address,
      requestId,
      fail,
    };
    return operation.handle(input as never, this.#services, context);
  }

  async #runStored(
    operation: Exclude<Operation, Metered>,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
    requestId: string,
  ): Promise<string> {
    if (principal === null) missingRootKey();
    // No route leads here with the wrong kind of caller.
    if (operation.declaration.audience !== principal.session?.audience) throw new Problem("insufficient_permissions");
    requireJson(request.contentType, request.contentEncoding);
    const input = await this.#readStoredInput(operation, request, principal);
    const call = {
      operation: operation.name,
      aliased: request.path !== pathOf(operation.name),
      input,
      principal: principal.plain(),
      now,
      idempotent:
        request.idempotencyKey === undefined || !operation.declaration.idempotent
          ? undefined
          : sealedCall(
              this.#withinQuota(
                idempotentCall(
                  request.idempotencyKey,
                  principal.workspaceId,
                  operation.name,
                  principal.rootKeyId,
                  input,
                ),
              ),
              request.idempotencyKey,
              request.credentials.authorization ?? request.session!,
            ),
    };
    if (operation.kind === "query") return this.#runQuery(operation, call, request, principal);
    if (operation.kind === "bulk") return this.#runBulk(operation, call, requestId, request.path);
    if (operation.admit !== undefined) await operation.admit(principal, this.#services);
    return this.#runMutation(call, { isUrgent: operation.narrowsAccess });
  }

  /** Counts the call although it may fail and store no record: the next count of the quota corrects it. */
  #withinQuota(call: IdempotentCall): IdempotentCall {
    if (!this.#recordQuota.hasCapacity(call.workspaceId)) return { ...call, isOverQuota: true };
    this.#recordQuota.record(call.workspaceId);
    return call;
  }

  /** A call whose root key or session was changed or revoked meanwhile is decided again. */
  async #runQuery(
    operation: Query,
    call: OperationCall,
    request: RpcRequest,
    caller: Principal,
    attempt = 1,
  ): Promise<string> {
    const { store, clock } = this.#options;
    const { workspaceId } = call.principal;
    let principal = caller;
    const again = (renewed: Principal) => {
      if (attempt === QUERY_ATTEMPTS_MAX)
        throw new StoreUnavailable("The caller changed faster than it could be judged");
      const now = clock.now();
      return this.#runQuery(operation, { ...call, principal: renewed.plain(), now }, request, renewed, attempt + 1);
    };
    const { outcome, revealed, required } = await this.#queues.reads.run(workspaceId, async (hasWaited) => {
      if (!hasWaited) return store.read("query", call);
      const [now, monotonic] = [clock.now(), clock.monotonic()];
      // A session is not counted again.
      principal =
        caller.session === undefined
          ? ((await this.#identify(request, now, monotonic)) ?? missingRootKey())
          : await caller.renew(now);
      return store.read("query", { ...call, principal: principal.plain(), now });
    });
    const afterRead = await principal.renewIfChanged(clock.now());
    if (afterRead !== principal) return again(afterRead);
    if (revealed.length > 0) {
      const recorded = await this.#queues.writes.run(workspaceId, () =>
        store.transact("recordReveal", { call: { ...call, now: clock.now() }, revealed, required }),
      );
      if ("problem" in recorded) throw problemFrom(recorded.problem);
      if (recorded.taken) this.#quotas.note(workspaceId, recorded.taken);
    }
    if (!("subject" in outcome)) return unwrap(outcome);
    const answer = await this.#answer(operation, outcome.subject, { ...call, principal: principal.plain() }, request);
    const atEnd = await principal.renewIfChanged(clock.now());
    return atEnd === principal ? answer : again(atEnd);
  }

  /** Runs the second step of a query. */
  async #answer(operation: Query, subject: unknown, call: OperationCall, { address }: RpcRequest): Promise<string> {
    const principal = new Principal(call.principal);
    const { workspaceId } = principal;
    const { clock } = this.#options;
    const context = { now: instantAt(call.now), clock, principal, workspaceId, address, fail };
    const answer = await operation.answer!(subject, this.#services, context);
    if (operation.paged) return textsBody(answer as Page<string>);
    return `"data":${typeof answer === "string" ? answer : JSON.stringify(answer)}`;
  }

  /** Validates the body. A long one takes CPU time, so the caller needs some grant for the operation first. */
  #readStoredInput(operation: Exclude<Operation, Metered>, { body, path }: RpcRequest, principal: Principal): unknown {
    const { input, permissions } = operation.declaration;
    if (body === null) throw notUtf8();
    const list = operation.kind === "bulk" ? operation.list : undefined;
    if (body.length <= SHORT_BODY_LENGTH_MAX) {
      const isDivided = list !== undefined && body.length > SHORT_LIST_LENGTH_MAX;
      return isDivided ? parseLongBody(input, body, path, list) : readBody(input, body, path, true);
    }
    principal.authorizeSome(permissions);
    return this.#queues.longBodies.run(principal.workspaceId, () => parseLongBody(input, body, path, list));
  }

  /** The call counts as made when it leaves the queue: a root key that expired by then is rejected. */
  async #runMutation(call: OperationCall, queued: QueuedWork): Promise<string> {
    return (await this.#commit(call, queued)).body;
  }

  async #commit(call: OperationCall, queued: QueuedWork, onStart = () => {}) {
    const { store, directories, clock } = this.#options;
    const { workspaceId } = call.principal;
    const start = () => {
      onStart();
      return store.transact("mutation", { ...call, now: clock.now() });
    };
    const { outcome, change, taken } = await this.#queues.writes.run(workspaceId, start, queued);
    if (change) applyOwnChange(directories, change);
    if (taken) this.#quotas.note(workspaceId, taken);
    return { body: unwrap(outcome), hasChanged: change !== undefined };
  }

  /**
   * Runs the chunks of a bulk operation one after the other, so that other changes run in between. If others wait after a
   * chunk, the next one follows after as long: the operation then uses at most half of the database's time.
   */
  async #runBulk(operation: Bulk, call: OperationCall, requestId: string, path: string): Promise<string> {
    const { clock, store } = this.#options;
    const answers: unknown[] = [];
    const left: unknown[] = [];
    let reason: ProblemRecord | undefined;
    let rest: Milliseconds = 0;
    for (const { input, rows } of operation.split(call.input as never, () => this.#chunkPace.size)) {
      // After a chunk failed, the following ones would fail for the same reason.
      if (left.length > 0) {
        left.push(input);
        continue;
      }
      await pause(clock, rest);
      let startedAt = 0;
      const onStart = () => {
        startedAt = clock.monotonic();
      };
      try {
        const isContinuation = answers.length > 0;
        const { body, hasChanged } = await this.#commit({ ...call, input }, { isContinuation }, onStart);
        answers.push(JSON.parse(`{${body}}`).data);
        const took = clock.monotonic() - startedAt;
        // A chunk that changes nothing, such as one of a dry run, says nothing about others.
        if (hasChanged) this.#chunkPace.record(rows, took);
        rest = store.writesInFlight > 0 ? took : 0;
      } catch (error) {
        // If no chunk succeeded, the call fails; otherwise it returns the partial result.
        if (answers.length === 0) throw error;
        reason = this.#shown(this.problemOf(error, requestId, path));
        left.push(input);
      }
    }
    return `"data":${JSON.stringify(operation.join(answers as never, left as never, reason))}`;
  }

  #failure(error: unknown, requestId: string, path: string): RpcResponse {
    if (error instanceof DecidedElsewhere) return { status: DECIDED_ELSEWHERE, requestId, body: "" };
    return this.#problem(this.problemOf(error, requestId, path), requestId);
  }

  /** What a caller is told of an error. Bugs and failures of the database are reported. */
  problemOf(error: unknown, requestId: string, path: string): Problem {
    if (error instanceof Problem) return error;
    if (isOverloaded(error)) return overloadProblem(error);
    if (error instanceof StoreUnavailable) {
      this.#reportUnavailable(error, requestId, path);
      return unavailable(undefined, 1);
    }
    this.#options.onFailure(error, requestId, path);
    if (isMasterKeyMissing(error)) return unavailable(MASTER_KEY_MISSING, 1);
    return new Problem("unexpected_error");
  }

  /** Reports the first failure of an interval: while the database is unavailable, every call fails alike. */
  #reportUnavailable(error: StoreUnavailable, requestId: string, path: string): void {
    const now = this.#options.clock.monotonic();
    if (now < this.#unavailableReportedUntil) return;
    this.#unavailableReportedUntil = now + UNAVAILABLE_REPORT_INTERVAL;
    this.#options.onFailure(error, requestId, path);
  }

  #shown(problem: Problem): ProblemRecord {
    const { status, title, type } = problems[problem.code];
    return { title, detail: problem.message, status, type: `${this.#options.publicUrl}/errors/${type}` };
  }

  #problem(problem: Problem, requestId: string): RpcResponse {
    const record = this.#shown(problem);
    const { status } = record;
    const headers: Record<string, string> = { ...problem.headers };
    if (status === 401) headers["www-authenticate"] = "Bearer";
    return {
      status,
      requestId,
      headers,
      problem: problem.code,
      body: JSON.stringify({
        meta: { requestId },
        error: {
          ...record,
          ...((status === 400 || status === 408 || status === 413) && { errors: problem.errors }),
        },
      }),
    };
  }
}

/** How often a query is made again because the root key of its caller has changed. */
const QUERY_ATTEMPTS_MAX = 4;

/** Says nothing of the key, nor which value it seals: callers without access to the vault are told it too. */
const MASTER_KEY_MISSING =
  "This node lacks the master key of the vault, which this call needs; nothing was changed. Other nodes may have it. " +
  "The operator must give it to every node: in LATCHKEY_VAULT_KEY, or as the file vault-key in the data folder.";

/** How often calls that fail because the database is unavailable are reported. */
const UNAVAILABLE_REPORT_INTERVAL: Milliseconds = 10_000;

/**
 * Rows of a chunk of a bulk operation. Other changes on the embedded database wait for a chunk, so it stays below 20 ms. The
 * fewest take some 10 ms: fewer are little more than their commit on a slow disk.
 */
const BULK_CHUNKS = { time: 12, min: 200, max: 1_000 };

function overloadProblem({ exceeded, retryAfterSeconds, message }: Overloaded): Problem {
  switch (exceeded) {
    case "idempotency records":
      return overQuota("idempotencyRecords");
    case "counters":
      return new Problem("too_many_counters", undefined, { headers: { "retry-after": String(retryAfterSeconds) } });
    case "lookups":
      return new Problem("lookups_exhausted", undefined, { headers: { "retry-after": String(retryAfterSeconds) } });
    case "service":
      return unavailable(`${message}; nothing was charged. Try again shortly.`, retryAfterSeconds);
  }
}

/** Counts the rows of workspaces in the background. */
export function quotaCounts(
  clock: Clock,
  store: Store<ReturnType<typeof operationProcedures>>,
  maxima: QuotaMaxima,
): QuotaCounts {
  return new QuotaCounts({
    clock,
    find: (of) => store.read("findUsage", of),
    count: (step) => store.read("countRows", step),
    record: (count) => store.transact("recordCount", { ...count, max: maxima[count.quota] }),
    countNear: () => store.read("countNear", null),
  });
}

function unavailable(detail: string | undefined, retryAfterSeconds: number): Problem {
  return new Problem("service_unavailable", detail, { headers: { "retry-after": String(retryAfterSeconds) } });
}

function meteredSuccess(requestId: string, answer: MeteredAnswer): RpcResponse {
  // In one text: each part of it costs.
  const body = (data: string) => `{"meta":{"requestId":"${requestId}"},"data":${data}}`;
  if (typeof answer === "string") return { status: 200, requestId, body: body(answer) };
  return { status: 200, requestId, body: body(answer.data), headers: answer.headers };
}

function answered(
  { requestId, status, problem }: Pick<RpcResponse, "requestId" | "status" | "problem">,
  path: string,
  more: { address?: string; tookMs?: number } = {},
): AnsweredRequest {
  return { requestId, path, status, ...(problem !== undefined && { problem }), ...more };
}

function success(requestId: string, members: string): RpcResponse {
  return { status: 200, requestId, body: `{"meta":{"requestId":"${requestId}"},${members}}` };
}

function withHeaders(response: RpcResponse, headers: Readonly<Record<string, string>>): RpcResponse {
  return { ...response, headers: { ...response.headers, ...headers } };
}

function unwrap(outcome: { body: string } | { problem: Parameters<typeof problemFrom>[0] }): string {
  if ("problem" in outcome) throw problemFrom(outcome.problem);
  return outcome.body;
}

function fail(code: ProblemCode, detail?: string): never {
  throw new Problem(code, detail);
}

function missingRootKey(): never {
  throw new Problem("authentication_missing");
}

/** A page whose entries are JSON texts. */
function textsBody({ items, hasMore, cursor }: Page<string>): string {
  return `"data":[${items.join(",")}],"pagination":${JSON.stringify({ hasMore, ...(hasMore && { cursor }) })}`;
}
