/** A worker thread: answers calls from its caches and the shared counters, and leaves everything else to the main thread. */

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { type Clock, type Instant, instantAt, type Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import { systemClockOf } from "../../../../engine/src/clock/system.ts";
import { startTimeout } from "../../../../engine/src/clock/timeout.ts";
import { BloomFilter } from "../../../../engine/src/crypto/bloom-filter.ts";
import { isCurrentAt, LATE_WAIT_MAX } from "../../../../engine/src/directory/changes-follower.ts";
import {
  type CallDirectories,
  type DirectorySource,
  RecordCaches,
} from "../../../../engine/src/directory/directories.ts";
import { Generations } from "../../../../engine/src/directory/generations.ts";
import { decideByCall } from "../../../../engine/src/errors/decided-elsewhere.ts";
import { Overloaded } from "../../../../engine/src/errors/overloaded.ts";
import type { Counters } from "../../../../engine/src/limits/counters.ts";
import { Limiter } from "../../../../engine/src/limits/limiter.ts";
import { MemoryCounters } from "../../../../engine/src/limits/memory-counters.ts";
import { MemoryTable } from "../../../../engine/src/limits/memory-table.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import { addressList } from "../../../../engine/src/rules/address.ts";
import { jsonAnswers } from "../../../../engine/src/verification/answers.ts";
import { Namespaces } from "../../../../engine/src/verification/namespaces.ts";
import { Verification } from "../../../../engine/src/verification/verification.ts";
import { rowsPerMinute } from "../../features/analytics/decision-log.ts";
import { Recorder } from "../../features/analytics/recorder.ts";
import { extendHold } from "../../features/holds/extendHold.ts";
import { releaseHold } from "../../features/holds/releaseHold.ts";
import { settleHold } from "../../features/holds/settleHold.ts";
import { type PackedKey, unpackAnyKey, unpackKey } from "../../features/keys/packed-key.ts";
import { verifyKey } from "../../features/keys/verifyKey.ts";
import { limit } from "../../features/ratelimits/limit.ts";
import { multiLimit } from "../../features/ratelimits/multiLimit.ts";
import type { Services } from "../../features/services.ts";
import { CallMetrics } from "../../metrics/calls.ts";
import { ConnectionCounts } from "../../platform/http/connection-counts.ts";
import { LaneServer } from "../../platform/http/threads/lane-server.ts";
import { collectStartGarbage } from "../../platform/memory/collect-garbage.ts";
import { Authenticator } from "../../platform/rpc/authenticate.ts";
import { CallQueues } from "../../platform/rpc/call-queues.ts";
import { FailedAuthentications } from "../../platform/rpc/failed-authentications.ts";
import type { Operation } from "../../platform/rpc/operation.ts";
import type { Principal } from "../../platform/rpc/principal.ts";
import type { Problem } from "../../platform/rpc/problems.ts";
import {
  DECIDED_ELSEWHERE,
  quotaCounts,
  Rpc,
  type RpcOptions,
  type RpcRequest,
  type RpcResponse,
} from "../../platform/rpc/server.ts";
import { asError, plainError } from "../../platform/store/plain-error.ts";
import { unavailablePolicy } from "../unavailable-policy.ts";
import { countsOf } from "./counts.ts";
import { FollowingClock, SharedMainState } from "./main-state.ts";
import {
  type FromWorker,
  type LimitedLookups,
  Outgoing,
  type Question,
  type RecordQuery,
  type ToWorker,
  type WorkerStart,
} from "./messages.ts";
import { SharedNumbers } from "./shared-numbers.ts";

/** Questions without an answer. Beyond this number, calls that need the main thread get 503. */
const QUESTIONS_MAX = 10_000;

const REPORT_INTERVAL: Milliseconds = 1_000;

/** The questions of this thread to the main thread. */
class MainThread {
  readonly #outgoing: Outgoing<FromWorker>;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #asked = 0;

  constructor(outgoing: Outgoing<FromWorker>) {
    this.#outgoing = outgoing;
  }

  /** Asks, and gives the answer with the number of the question. Rejects with the error of the main thread. */
  async ask<R>(question: Question): Promise<{ answer: R; id: number }> {
    if (this.#pending.size >= QUESTIONS_MAX) throw new Overloaded("The main thread has too many calls to answer");
    const id = ++this.#asked;
    const pending = Promise.withResolvers<unknown>();
    this.#pending.set(id, pending);
    this.#outgoing.send(["ask", id, question]);
    return { answer: (await pending.promise) as R, id };
  }

  settle(id: number): PromiseWithResolvers<unknown> {
    const pending = this.#pending.get(id)!;
    this.#pending.delete(id);
    return pending;
  }
}

/** The rate limit of look-ups, which the main thread keeps for all threads. */
class SharedLookups {
  readonly #main: MainThread;
  readonly #lookups: LimitedLookups;
  readonly #outgoing: Outgoing<FromWorker>;

  constructor(main: MainThread, lookups: LimitedLookups, outgoing: Outgoing<FromWorker>) {
    this.#main = main;
    this.#lookups = lookups;
    this.#outgoing = outgoing;
  }

  async spend<R>(source: string, lookup: () => Promise<R | null>): Promise<R | null> {
    const { id } = await this.#main.ask(["lookUp", this.#lookups, source]);
    let isUnknown = false;
    try {
      const found = await lookup();
      isUnknown = found === null;
      return found;
    } finally {
      this.#outgoing.send(["lookedUp", id, isUnknown]);
    }
  }
}

/** Whether this thread may serve from its caches: see the states of `ChangesFollower`, which is in the main thread. */
class SharedChanges {
  readonly #main: MainThread;
  readonly #state: SharedMainState;
  readonly #clock: Clock;
  readonly #staleMax: Milliseconds;
  /** The question in progress, which all calls share. */
  #asked: Promise<boolean> | undefined;

  constructor(main: MainThread, state: SharedMainState, clock: Clock, staleMax: Milliseconds) {
    this.#main = main;
    this.#state = state;
    this.#clock = clock;
    this.#staleMax = staleMax;
  }

  mayServe(now: Instant, monotonic: Milliseconds): boolean | Promise<boolean> {
    const { readAtMonotonic } = this.#state;
    if (isCurrentAt(readAtMonotonic, this.#state.readAtWall, now, monotonic)) return true;
    if (!this.#state.databaseReachable) return monotonic - readAtMonotonic <= this.#staleMax;
    return this.#askBeforeServing(monotonic);
  }

  /** A main thread that does not answer counts like a database that does not. */
  async #askBeforeServing(monotonic: Milliseconds): Promise<boolean> {
    const late = startTimeout(this.#clock, LATE_WAIT_MAX);
    this.#asked ??= this.#ask();
    const stale = late.expired.then(() => monotonic - this.#state.readAtMonotonic <= this.#staleMax);
    try {
      return await Promise.race([this.#asked, stale]);
    } finally {
      late.cancel();
    }
  }

  async #ask(): Promise<boolean> {
    try {
      return (await this.#main.ask<boolean>(["mayServe"])).answer;
    } finally {
      this.#asked = undefined;
    }
  }

  get readAt() {
    const { readAtMonotonic, readAtWall } = this.#state;
    return { monotonic: readAtMonotonic, wall: instantAt(readAtWall) };
  }

  get reachable(): boolean {
    return this.#state.databaseReachable;
  }

  recordOwn(): void {
    throw new Error("Only the main thread changes records");
  }
}

/** Charges counters of the main thread. */
function mainCounters(main: MainThread): Counters {
  return {
    charge: async (charges) => (await main.ask<never>(["charge", charges])).answer,
    peek: async (charges) => (await main.ask<never>(["peek", charges])).answer,
    adjust: decideByCall,
  };
}

/** Charges the shared counters while the main thread has published that this process may, otherwise those of the main thread. */
class SharedCounters implements Counters {
  readonly #mayCount: () => boolean;
  readonly #shared: Counters;
  readonly #main: Counters;

  constructor(mayCount: () => boolean, shared: Counters, main: Counters) {
    this.#mayCount = mayCount;
    this.#shared = shared;
    this.#main = main;
  }

  charge(charges: Parameters<Counters["charge"]>[0]): ReturnType<Counters["charge"]> {
    return (this.#mayCount() ? this.#shared : this.#main).charge(charges);
  }

  peek(charges: Parameters<Counters["peek"]>[0]): ReturnType<Counters["peek"]> {
    return (this.#mayCount() ? this.#shared : this.#main).peek(charges);
  }

  adjust(...args: Parameters<Counters["adjust"]>): ReturnType<Counters["adjust"]> {
    return this.#main.adjust(...args);
  }
}

/** Answers calls in this thread if it can, otherwise in the main thread. */
class Calls {
  readonly #rpc: Rpc;
  readonly #main: MainThread;

  constructor(rpc: Rpc, main: MainThread) {
    this.#rpc = rpc;
    this.#main = main;
  }

  call(operation: Operation, request: RpcRequest): RpcResponse | Promise<RpcResponse> {
    // Their records are in the main thread.
    if (request.idempotencyKey !== undefined) return this.#callMainThread(operation, request);
    const answer = this.#rpc.call(operation, request);
    if (answer instanceof Promise) return answer.then((settled) => this.#complete(operation, request, settled));
    return this.#complete(operation, request, answer);
  }

  reject(problem: Problem): RpcResponse {
    return this.#rpc.reject(problem);
  }

  #complete(operation: Operation, request: RpcRequest, answer: RpcResponse): RpcResponse | Promise<RpcResponse> {
    if (answer.status !== DECIDED_ELSEWHERE) return answer;
    return this.#callMainThread(operation, { ...request, admission: answer.headers });
  }

  async #callMainThread(operation: Operation, request: RpcRequest): Promise<RpcResponse> {
    try {
      return (await this.#main.ask<RpcResponse>(["call", operation.name, request])).answer;
    } catch (error) {
      return this.#rpc.failed(error, request.path);
    }
  }
}

/** The parts of a call that only the main thread has. */
const missing = {
  ledger: { spend: decideByCall },
  balances: { read: decideByCall },
  openHolds: { add: decideByCall, remove: decideByCall },
  replays: { isInDatabase: false, find: decideByCall, once: decideByCall },
  singleCalls: { chargeOnce: decideByCall, spendOnce: decideByCall, find: decideByCall },
  store: { read: decideByCall, transact: decideByCall },
  upstreams: { ask: decideByCall },
};

/** The operations that a worker answers, and the services that they use. */
const operations = [verifyKey, limit, multiLimit, settleHold, releaseHold, extendHold];
type ServiceOfWorker = "verification" | "limiter" | "recorder" | "replays" | "namespaces" | "holdSubjects";

function openWorker(start: WorkerStart, port: MessagePort): void {
  const { config, thread } = start;
  const clock = systemClockOf(start.clockOrigin);
  const outgoing = new Outgoing<FromWorker>(port);
  const main = new MainThread(outgoing);
  const state = new SharedMainState(new SharedNumbers(start.mainState));
  const directories = openDirectories(start, clock, state, main, outgoing);
  const filterOfKeys = start.keyFilter && new BloomFilter(start.keyFilter);
  const limiter = openLimiter(start, clock, state, main);
  let reportSoon = () => {};
  const loggedPerMinute = rowsPerMinute(config.analytics.decisions.rowsPerWorkspace / config.workers);
  const recorder = config.analytics.enabled ? new Recorder(clock, () => reportSoon(), loggedPerMinute) : null;
  const verification = new Verification({
    form: jsonAnswers,
    clock,
    directories,
    limiter,
    recorder,
    random: systemRandom,
    ...missing,
    prepareBalances: decideByCall,
    recordFirstUses: async (uses) => void (await main.ask(["recordFirstUses", uses])),
  });
  const calls = new CallMetrics(start.counted.operations, start.counted.statuses);
  const namespaces = new Namespaces<Principal>({ directories, create: decideByCall });
  const failedAuthentications = new FailedAuthentications();
  const services: Pick<Services, ServiceOfWorker> = {
    verification,
    limiter,
    recorder,
    replays: missing.replays,
    holdSubjects: { find: decideByCall, remove: decideByCall },
    namespaces: {
      find: (nameOrId, workspaceId) => namespaces.find(nameOrId, workspaceId),
      // For each caller: it must not wait for the call of another one, which leaves this thread too.
      create: decideByCall,
    },
  };
  const rpc = new Rpc({
    clock,
    random: systemRandom,
    directories,
    limiter,
    services,
    queues: new CallQueues(),
    ...missing,
    authenticator: new Authenticator(directories),
    store: missing.store as unknown as RpcOptions["store"],
    defaultWorkspaceId: start.defaultWorkspaceId,
    quotas: quotaCounts(clock, missing.store as unknown as RpcOptions["store"], config.perWorkspace),
    idempotencyRecordsMax: config.idempotencyRecordsMax,
    verifyAuth: config.verifyAuth,
    publicUrl: config.publicUrl,
    calls: config.metrics === "off" ? null : calls,
    failedAuthentications,
    onAnswer: start.logsAnswers ? (answer) => outgoing.send(["answered", answer]) : undefined,
    onFailure: (error, requestId, path) => outgoing.send(["failed", plainError(error), requestId, path]),
  });
  const server = new LaneServer({
    operations,
    clock,
    rpc: new Calls(rpc, main),
    limits: config,
    trustedProxies: addressList(config.trustedProxies),
    otherThreads: {
      counts: new ConnectionCounts(start.connections, thread),
      makeRoom: async (network) => {
        try {
          return (await main.ask<boolean>(["makeRoom", network])).answer;
        } catch {
          // The main thread has too many questions to answer.
          return false;
        }
      },
    },
    send: (message) => outgoing.send(message),
  });
  const report = () => {
    const counts = countsOf({ calls, verification, directories, limiter });
    const decisions = recorder?.decisions.take() ?? [];
    const analytics = recorder?.drain();
    const [exceeded, rootKeyUses] = [limiter.exceeded.take(), rpc.takeRootKeyUses()];
    const failed = failedAuthentications.take();
    outgoing.send(["report", { counts, analytics, decisions, exceeded, rootKeyUses, failedAuthentications: failed }]);
    // At once: the numbers change with the next call.
    outgoing.flush();
  };
  reportSoon = () => void clock.schedule(0, report);
  every(clock, REPORT_INTERVAL, async () => report());
  port.on("message", (messages: ToWorker[]) => {
    for (const message of messages) handle(message);
  });

  function handle(message: ToWorker): void {
    switch (message[0]) {
      case "answer":
        main.settle(message[1]).resolve(message[2]);
        return;
      case "error":
        main.settle(message[1]).reject(asError(message[2]));
        return;
      case "collect":
        report();
        outgoing.send(["collected", message[1]]);
        return;
      case "makeRoom":
        outgoing.send(["room", message[1], server.makeRoom(message[2])]);
        return;
      case "filterIsComplete":
        directories.keyFilter = filterOfKeys;
        return;
      case "drain":
        server.drain();
        return;
      case "closeServer":
        void server.close().then(() => outgoing.send(["closed"]));
        return;
      case "destroy":
        server.destroy();
        return;
      case "finish":
        recorder?.log.endMinute();
        report();
        port.close();
        return;
      default:
        server.receive(message);
    }
  }

  void listen(server, start.addresses).then(() => outgoing.send(["ready"]));
  collectStartGarbage({ clock });
}

/** A rejection ends the thread with its error. */
async function listen(server: LaneServer, addresses: WorkerStart["addresses"]): Promise<void> {
  for (const { address, port } of addresses) await server.listen(address, port);
}

function openDirectories(
  { config, generations, cachesBytesMax: bytesMax }: WorkerStart,
  clock: Clock,
  state: SharedMainState,
  main: MainThread,
  outgoing: Outgoing<FromWorker>,
): CallDirectories {
  const load =
    <T = never>(query: RecordQuery) =>
    async (names: readonly unknown[]): Promise<T[]> =>
      (await main.ask<T[]>(["load", query, names])).answer;
  const loadKeysAt = load<PackedKey>("keysAt");
  const loadKeysByIds = load<PackedKey>("keysByIds");
  const source: Omit<DirectorySource, "changes"> = {
    keysAt: async (locations) => (await loadKeysAt(locations)).map(unpackAnyKey),
    keysByIds: async (ids) => (await loadKeysByIds(ids)).map(unpackKey),
    derivedKeysAt: load("derivedKeysAt"),
    rootKeysByHashes: load("rootKeysByHashes"),
    plans: load("plansByIds"),
    workspaces: load("workspacesByIds"),
    keyMigrations: load("keyMigrationsByReferences"),
    namespaces: load("namespacesByReferences"),
    sessions: decideByCall,
    portalSessions: decideByCall,
  };
  const caches = new RecordCaches({ clock, source, generations: new Generations(generations), bytesMax });
  return Object.assign(caches, {
    changes: new SharedChanges(main, state, clock, config.staleMax),
    keyLookups: new SharedLookups(main, "keyLookups", outgoing),
    rootKeyLookups: new SharedLookups(main, "rootKeyLookups", outgoing),
    sessionLookups: { spend: decideByCall },
    linkLookups: { spend: decideByCall },
  });
}

function openLimiter(start: WorkerStart, clock: Clock, state: SharedMainState, main: MainThread): Limiter {
  const counting = new FollowingClock(clock, state);
  const remote = mainCounters(main);
  const table = start.counters && new MemoryTable(start.counters, start.lockOwner, [0, 0]);
  const mayCount = () => clock.monotonic() < state.countUntil;
  const counters = table ? new SharedCounters(mayCount, new MemoryCounters(table, counting), remote) : remote;
  return new Limiter(counters, unavailablePolicy(start.config), counting);
}

openWorker(workerData as WorkerStart, parentPort!);
