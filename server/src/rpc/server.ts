import type { Level } from "../analytics/levels.ts";
import type { Recorder } from "../analytics/recorder.ts";
import type { StatsQuery } from "../analytics/rollups.ts";
import { type Clock, type Instant, instantAt, type Milliseconds } from "../clock/clock.ts";
import { LedgerOverloaded } from "../credits/ledger.ts";
import { hashSecret } from "../crypto/hash.ts";
import { LookupsExhausted } from "../directory/budget.ts";
import type { Directories } from "../directory/directories.ts";
import { CounterShareExceeded, type Limiter, LimiterUnavailable } from "../limits/limiter.ts";
import { type ReplayStore, ReplayStoreFull } from "../limits/replay-store.ts";
import type { CallMetrics } from "../metrics/calls.ts";
import { newRequestId, type Random } from "../random/random.ts";
import type { CountedTable } from "../store/administration/workspace-counts.ts";
import { IdempotencyFull, IdempotencyQuotaExceeded } from "../store/idempotency.ts";
import { type Store, StoreUnavailable } from "../store/store.ts";
import type { Verification } from "../verification/verification.ts";
import { Authenticator } from "./authenticate.ts";
import { notUtf8, readBody, requireJson } from "./body.ts";
import type { OperationCall, operationProcedures } from "./execute.ts";
import { FairQueue, type QueuedWork } from "./fair-queue.ts";
import { type IdempotentCall, idempotentCall, sealedCall } from "./idempotency.ts";
import { readLongBody, SHORT_BODY_LENGTH_MAX } from "./long-body.ts";
import { Namespaces } from "./namespaces.ts";
import {
  type Analyzed,
  type Bulk,
  type Metered,
  type MeteredAnswer,
  type MeteredContext,
  type Operation,
  pathOf,
} from "./operation.ts";
import type { Principal } from "./principal.ts";
import { Problem, type ProblemCode, problemFrom, problems } from "./problems.ts";
import { type Admission, admit } from "./workspace-limit.ts";
import { countInSteps, overQuota, WorkspaceQuota } from "./workspace-quota.ts";

/** A call as it arrives, whoever carried it. */
export interface RpcRequest {
  /** As it was asked for, for messages: `/v2/keys.verifyKey`. */
  path: string;
  authorization: string | undefined;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  /** The header of that name. */
  idempotencyKey: string | undefined;
  /** Null: bytes that are not UTF-8. */
  body: string | null;
  /** The caller's address, as far as it can be trusted. */
  address: string;
}

export interface RpcResponse {
  status: number;
  /** JSON text. */
  body: string;
  requestId: string;
  /** Headers beyond the content type and the request id. */
  headers?: Readonly<Record<string, string>>;
}

export interface RpcOptions {
  clock: Clock;
  random: Random;
  directories: Directories;
  store: Store<ReturnType<typeof operationProcedures>>;
  verification: Verification;
  limiter: Limiter;
  replays: ReplayStore;
  /** Counts what is decided; null: nobody asks. */
  recorder: Recorder | null;
  analytics: {
    /** Answers with the JSON text of the members that are counts. */
    stats(question: StatsQuery): Promise<string>;
    /** Beginning of the oldest bucket that is kept. */
    oldest(level: Level, now: Instant): number;
  };
  /** Where callers without a root key find their keys. */
  defaultWorkspaceId: string;
  /** Whether keys.verifyKey asks for a root key. */
  verifyAuth: "optional" | "required";
  /** What a workspace may have at most. */
  perWorkspace: { keys: number; namespaces: number; idempotencyRecords: number };
  /** Put before the paths of problem types; empty: they stay relative. */
  publicUrl: string;
  /** Counts calls; null: nobody asks. */
  calls: CallMetrics | null;
  /** Told of what was a bug or a broken world, with the request it happened to. */
  onFailure(error: unknown, requestId: string, path: string): void;
}

// Together the 8 connections to PostgreSQL that these calls have.
const READING = { runningMax: 3, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 1_000 };
const WRITING = { runningMax: 5, runningPerWorkspaceMax: 3, waitingPerWorkspaceMax: 1_000 };
const READING_BODIES = { runningMax: 2, runningPerWorkspaceMax: 1, waitingPerWorkspaceMax: 20 };

/** Answers calls: authenticates, validates, runs, and puts the answer into its envelope. */
export class Rpc {
  readonly #options: RpcOptions;
  readonly #authenticator: Authenticator;
  readonly #namespaces: Namespaces;
  readonly #reads = new FairQueue(READING);
  readonly #writes = new FairQueue(WRITING);
  readonly #longBodies = new FairQueue(READING_BODIES);
  readonly #keyQuota: WorkspaceQuota;
  readonly #recordQuota: WorkspaceQuota;
  #unavailableReportedUntil = 0;

  constructor(options: RpcOptions) {
    this.#options = options;
    this.#authenticator = new Authenticator(options.directories);
    this.#namespaces = new Namespaces(
      options.directories,
      options.store,
      this.#writes,
      quotaOf(options, "ratelimit_namespaces", options.perWorkspace.namespaces),
    );
    this.#keyQuota = quotaOf(options, "keys", options.perWorkspace.keys);
    this.#recordQuota = quotaOf(options, "idempotency_records", options.perWorkspace.idempotencyRecords);
  }

  /** Answers a call; never throws. At once where nothing had to be waited for. */
  call(operation: Operation, request: RpcRequest): RpcResponse | Promise<RpcResponse> {
    const { calls, clock } = this.#options;
    if (calls === null) return this.#call(operation, request);
    const startedAt = clock.monotonic();
    const response = this.#call(operation, request);
    if (!(response instanceof Promise)) {
      calls.record(operation.name, response.status, clock.monotonic() - startedAt);
      return response;
    }
    return response.then((settled) => {
      calls.record(operation.name, settled.status, clock.monotonic() - startedAt);
      return settled;
    });
  }

  /** The workspace of who calls; null when the call is going to be refused because of who makes it. Never rejects. */
  async recognize(authorization: string | undefined, address: string): Promise<string | null> {
    try {
      const principal = await this.#authenticator.authenticate(authorization, address, this.#options.clock.now());
      return principal?.workspaceId ?? null;
    } catch {
      return null;
    }
  }

  #call(operation: Operation, request: RpcRequest): RpcResponse | Promise<RpcResponse> {
    const { random, clock } = this.#options;
    const requestId = newRequestId(random);
    const now = clock.now();
    try {
      const principal = this.#authenticator.authenticate(request.authorization, request.address, now);
      if (!(principal instanceof Promise)) return this.#admit(operation, request, principal, now, requestId);
      return principal
        .then((known) => this.#admit(operation, request, known, now, requestId))
        .catch((error) => this.#failure(error, requestId, request.path));
    } catch (error) {
      return this.#failure(error, requestId, request.path);
    }
  }

  /** Before anything else is done with a call, its workspace's own limit counts it, where there is one. */
  #admit(
    operation: Operation,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
    requestId: string,
  ): RpcResponse | Promise<RpcResponse> {
    if (principal === null || principal.requestsPerMinute === null) {
      return this.#run(operation, request, principal, now, requestId);
    }
    const counted = admit(principal, principal.requestsPerMinute, this.#options.limiter);
    const go = ({ headers, refusal }: Admission): RpcResponse | Promise<RpcResponse> => {
      if (refusal) return withHeaders(this.#problem(refusal, requestId), headers);
      const response = this.#run(operation, request, principal, now, requestId);
      return response instanceof Promise
        ? response.then((settled) => withHeaders(settled, headers))
        : withHeaders(response, headers);
    };
    if (!(counted instanceof Promise)) return go(counted);
    return counted.then(go).catch((error) => this.#failure(error, requestId, request.path));
  }

  #run(
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
      const answer = this.#runMetered(operation, request, principal, now);
      if (!(answer instanceof Promise)) return meteredSuccess(requestId, answer);
      return answer.then(
        (settled) => meteredSuccess(requestId, settled),
        (error) => this.#failure(error, requestId, request.path),
      );
    } catch (error) {
      return this.#failure(error, requestId, request.path);
    }
  }

  /** The answer to a request that never became a call. */
  refuse(problem: Problem): RpcResponse {
    return this.#problem(problem, newRequestId(this.#options.random));
  }

  /** The answer to a request whose handling broke. */
  broken(error: unknown, path: string): RpcResponse {
    return this.#failure(error, newRequestId(this.#options.random), path);
  }

  /** An answer made outside of any operation. */
  plain(data: unknown): RpcResponse {
    return success(newRequestId(this.#options.random), `"data":${JSON.stringify(data)}`);
  }

  #runMetered(
    operation: Metered,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
  ): MeteredAnswer | Promise<MeteredAnswer> {
    if (principal === null && !(operation.anonymous && this.#options.verifyAuth === "optional")) missingRootKey();
    requireJson(request.contentType, request.contentEncoding);
    if (request.body === null) throw notUtf8();
    const input = readBody(operation.declaration.input, request.body, request.path, false);
    const workspaceId = principal?.workspaceId ?? this.#options.defaultWorkspaceId;
    const context: MeteredContext<ProblemCode> = {
      now,
      startedAt: this.#options.clock.monotonic(),
      recorder: this.#options.recorder,
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
                principal?.rootKeyId ?? hashSecret((input as { key: string }).key),
                input,
              ),
            ),
      address: request.address,
      verification: this.#options.verification,
      limiter: this.#options.limiter,
      replays: this.#options.replays,
      namespaces: this.#namespaces,
      fail,
    };
    return operation.handle(input as never, context);
  }

  async #runStored(
    operation: Exclude<Operation, Metered>,
    request: RpcRequest,
    principal: Principal | null,
    now: Instant,
    requestId: string,
  ): Promise<string> {
    if (principal === null) missingRootKey();
    requireJson(request.contentType, request.contentEncoding);
    const input = await this.#readStored(operation, request, principal);
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
              request.authorization!,
            ),
    };
    if (operation.kind === "query") return this.#look(call, request);
    if (operation.kind === "bulk") return this.#runBulk(operation, call, requestId, request.path);
    if (operation.createsKey) this.#requireRoomForKeys(call);
    const members = await this.#change(call, { isUrgent: operation.narrowsAccess });
    if (operation.createsKey) this.#keyQuota.record(principal.workspaceId);
    return members;
  }

  /** Whether it will be remembered is not known yet; the next count says how many were. */
  #withinQuota(call: IdempotentCall): IdempotentCall {
    if (!this.#recordQuota.hasCapacity(call.workspaceId)) return { ...call, isOverQuota: true };
    this.#recordQuota.record(call.workspaceId);
    return call;
  }

  #requireRoomForKeys({ principal: { workspaceId } }: OperationCall): void {
    if (!this.#keyQuota.hasCapacity(workspaceId)) throw overQuota("keys");
  }

  async #look(call: OperationCall, request: RpcRequest): Promise<string> {
    const { store, clock } = this.#options;
    const { workspaceId } = call.principal;
    const { outcome, revealed, required } = await this.#reads.run(workspaceId, async (hasWaited) => {
      if (!hasWaited) return store.read("query", call);
      const now = clock.now();
      const principal = await this.#authenticator.authenticate(request.authorization, request.address, now);
      return store.read("query", { ...call, principal: principal!.plain(), now });
    });
    if ("question" in outcome) return this.#analyze(outcome, instantAt(call.now));
    if (revealed.length > 0) {
      const recorded = await this.#writes.run(workspaceId, () =>
        store.transact("recordReveal", { call: { ...call, now: clock.now() }, revealed, required }),
      );
      if ("problem" in recorded) throw problemFrom(recorded.problem);
    }
    return unwrap(outcome);
  }

  /** A long body takes time to read, so it is read only for a caller with some grant for the operation. */
  #readStored(operation: Exclude<Operation, Metered>, { body, path }: RpcRequest, principal: Principal): unknown {
    const { input, permissions } = operation.declaration;
    if (body === null) throw notUtf8();
    if (body.length <= SHORT_BODY_LENGTH_MAX) return readBody(input, body, path, true);
    principal.authorizeSome(permissions);
    const list = operation.kind === "bulk" ? operation.list : undefined;
    return this.#longBodies.run(principal.workspaceId, () => readLongBody(input, body, path, list));
  }

  async #analyze({ echo, question }: Analyzed, now: Instant): Promise<string> {
    const { analytics } = this.#options;
    const { level, start } = question;
    const oldest = analytics.oldest(level, now);
    if (start < oldest) {
      throw new Problem(
        "invalid_input",
        `Counts by the ${level} are kept from ${oldest} on (${new Date(oldest).toISOString()}): begin there or ` +
          "later, or ask for a coarser granularity.",
      );
    }
    return `"data":{${JSON.stringify(echo).slice(1, -1)},${await analytics.stats(question)}}`;
  }

  /** The call counts as made when its turn comes: a root key that has expired by then makes it no more. */
  async #change(call: OperationCall, queued: QueuedWork): Promise<string> {
    const { store, directories, clock } = this.#options;
    const { outcome, change } = await this.#writes.run(
      call.principal.workspaceId,
      () => store.transact("mutation", { ...call, now: clock.now() }),
      queued,
    );
    if (change) {
      // Before the answer: whoever has it must find the change in effect.
      directories.generations.bump(change.tags);
      directories.changes.recordOwn(change.sequence);
    }
    return unwrap(outcome);
  }

  /** One piece after the other, so that whoever wants to change something else gets his turn in between. */
  async #runBulk(operation: Bulk, call: OperationCall, requestId: string, path: string): Promise<string> {
    const { clock } = this.#options;
    const answers: unknown[] = [];
    const left: unknown[] = [];
    let startedAt = clock.monotonic();
    for (const piece of operation.split(call.input as never)) {
      // After one that failed, the others would only find the same.
      if (left.length > 0) {
        left.push(piece);
        continue;
      }
      // As long a pause as the piece before took: a list has half of the database, however long it is.
      if (answers.length > 0) await pause(clock, clock.monotonic() - startedAt);
      startedAt = clock.monotonic();
      try {
        this.#requireRoomForKeys(call);
        const isContinuation = answers.length > 0;
        answers.push(JSON.parse(`{${await this.#change({ ...call, input: piece }, { isContinuation })}}`).data);
        this.#keyQuota.record(call.principal.workspaceId, (piece as Record<string, unknown[]>)[operation.list]!.length);
      } catch (error) {
        // With nothing taken in the call as a whole is refused; else it is answered with what was.
        if (answers.length === 0) throw error;
        if (!(error instanceof Problem)) this.#options.onFailure(error, requestId, path);
        left.push(piece);
      }
    }
    return `"data":${JSON.stringify(operation.join(answers as never, left as never))}`;
  }

  #failure(error: unknown, requestId: string, path: string): RpcResponse {
    if (error instanceof Problem) return this.#problem(error, requestId);
    if (error instanceof IdempotencyQuotaExceeded) return this.#problem(overQuota("idempotency_records"), requestId);
    if (error instanceof CounterShareExceeded) {
      return this.#problem(
        new Problem("too_many_counters", undefined, { headers: { "retry-after": "10" } }),
        requestId,
      );
    }
    if (overloads.some((overload) => error instanceof overload)) {
      return this.#problem(
        unavailable(`${(error as Error).message}; nothing was charged. Try again shortly.`),
        requestId,
      );
    }
    if (error instanceof StoreUnavailable) {
      this.#reportUnavailable(error, requestId, path);
      return this.#problem(unavailable(), requestId);
    }
    this.#options.onFailure(error, requestId, path);
    return this.#problem(new Problem("unexpected_error"), requestId);
  }

  /** Not for every call: while the database is away they all fail alike. */
  #reportUnavailable(error: StoreUnavailable, requestId: string, path: string): void {
    const now = this.#options.clock.monotonic();
    if (now < this.#unavailableReportedUntil) return;
    this.#unavailableReportedUntil = now + UNAVAILABLE_REPORT_INTERVAL;
    this.#options.onFailure(error, requestId, path);
  }

  #problem(problem: Problem, requestId: string): RpcResponse {
    const { status, title, type } = problems[problem.code];
    const headers: Record<string, string> = { ...problem.headers };
    if (status === 401) headers["www-authenticate"] = "Bearer";
    return {
      status,
      requestId,
      headers,
      body: JSON.stringify({
        meta: { requestId },
        error: {
          title,
          detail: problem.message,
          status,
          type: `${this.#options.publicUrl}/errors/${type}`,
          ...((status === 400 || status === 408 || status === 413) && { errors: problem.errors }),
        },
      }),
    };
  }
}

/** Bounds that hold: the caller is told, the log is not. */
/** How often calls that fail because the database is away are reported. */
const UNAVAILABLE_REPORT_INTERVAL: Milliseconds = 10_000;
const overloads = [LimiterUnavailable, LookupsExhausted, LedgerOverloaded, ReplayStoreFull, IdempotencyFull];

function quotaOf({ clock, store }: RpcOptions, table: CountedTable, max: number): WorkspaceQuota {
  return new WorkspaceQuota({
    clock,
    max,
    count: (workspaceId, limit) => countInSteps(table, workspaceId, limit, (step) => store.read("countRecords", step)),
  });
}

function unavailable(detail?: string): Problem {
  return new Problem("service_unavailable", detail, { headers: { "retry-after": "1" } });
}

function meteredSuccess(requestId: string, answer: MeteredAnswer): RpcResponse {
  if (typeof answer === "string") return success(requestId, `"data":${answer}`);
  return { ...success(requestId, `"data":${answer.data}`), headers: answer.headers };
}

function success(requestId: string, members: string): RpcResponse {
  return { status: 200, requestId, body: `{"meta":{"requestId":"${requestId}"},${members}}` };
}

function withHeaders(response: RpcResponse, headers: Readonly<Record<string, string>>): RpcResponse {
  return { ...response, headers: { ...response.headers, ...headers } };
}

function pause(clock: Clock, length: Milliseconds): Promise<void> {
  return length <= 0 ? Promise.resolve() : new Promise((resolve) => void clock.schedule(length, resolve));
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
