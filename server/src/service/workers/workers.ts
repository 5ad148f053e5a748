import { Worker } from "node:worker_threads";
import type { Milliseconds, Timer } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import { pause } from "../../../../engine/src/clock/pause.ts";
import { monotonicOrigin } from "../../../../engine/src/clock/system.ts";
import { startTimeout } from "../../../../engine/src/clock/timeout.ts";
import type { Share } from "../../../../engine/src/directory/lookup-rate-limiter.ts";
import { MAIN_THREAD } from "../../../../engine/src/limits/open-memory.ts";
import type { HttpServer } from "../../platform/http/server.ts";
import type { TunnelMessage } from "../../platform/http/threads/tunnel.ts";
import { TunnelledConnection } from "../../platform/http/threads/tunnelled-connection.ts";
import { asError, plainError } from "../../platform/store/plain-error.ts";
import type { Parts, Start } from "../open.ts";
import { operations } from "../operations.ts";
import type { Wired } from "../wire.ts";
import { addCounts, countsAfterEnd, type ThreadCounts } from "./counts.ts";
import { SharedMainState } from "./main-state.ts";
import {
  type FromWorker,
  type LimitedLookups,
  Outgoing,
  type Question,
  type Report,
  type ToWorker,
  type WorkerStart,
} from "./messages.ts";
import type { OtherThreads } from "./totals.ts";

/** How often the state of the main thread is published, and for how long counters may be charged without news. */
const PUBLISH_INTERVAL: Milliseconds = 100;
const COUNT_TIME: Milliseconds = 500;

/** How long `collect` waits for the counts of the threads. */
const COLLECT_MAX: Milliseconds = 500;

/** The pause before a thread that ended is replaced: doubled with each end, until a thread has run for `STABLE_TIME`. */
const RESTART_MIN: Milliseconds = 100;
const RESTART_MAX: Milliseconds = 10_000;
const STABLE_TIME: Milliseconds = 60_000;

/** How long a thread may take to end a connection for another thread. */
const MAKE_ROOM_MAX: Milliseconds = 500;

/** How long a thread may take to send its last counts. */
const FINISH_MAX: Milliseconds = 1_000;

/** The heap of a thread beside its caches, in MiB. A record takes up to twice its estimated memory. */
const HEAP_MB = 192;

export interface WorkersOptions
  extends Pick<Start, "config" | "clock" | "events">,
    Pick<Parts, "store" | "claim" | "workspaceId" | "directories" | "limits" | "analytics">,
    Pick<Wired, "rpc" | "counted" | "recordFirstUses" | "failedAuthentications"> {
  http: Pick<HttpServer, "accept" | "makeRoom">;
  /** Open connections by thread. */
  connections: Int32Array<SharedArrayBuffer>;
}

const operationsByName = new Map(operations.map((operation) => [operation.name as string, operation]));

/**
 * The worker threads of a service. They accept connections on the same port as the main thread, and answer metered calls
 * from their own caches and the shared counters. The main thread does everything else for them: it answers the calls that
 * they cannot answer alone, reads their connections that leave the fast lane, loads their records and merges their counts.
 *
 * A thread is *starting* until it listens, then *serving*. When it ends, its locks are released, what it asked for is
 * dropped, and it is replaced after a pause. After `close` no thread is replaced.
 */
export class Workers implements OtherThreads {
  readonly #options: WorkersOptions;
  readonly #state = new SharedMainState();
  readonly #threads: WorkerSlot[] = [];
  readonly #publishing: Timer;
  #lockOwner = MAIN_THREAD;
  #isDraining = false;

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#publish();
    this.#publishing = every(options.clock, PUBLISH_INTERVAL, async () => this.#publish());
  }

  /** Starts the threads on these addresses. Resolves when each one serves or has ended once. */
  async start(addresses: WorkerStart["addresses"]): Promise<void> {
    const options = { ...this.#options, makeRoom: (network: string) => this.makeRoom(network) };
    for (let thread = 1; thread < options.config.workers; thread++) {
      this.#threads.push(new WorkerSlot(options, thread, () => this.#startData(thread, addresses)));
    }
    await Promise.all(this.#threads.map((slot) => slot.start()));
    if (this.#isDraining) this.drain();
  }

  #startData(thread: number, addresses: WorkerStart["addresses"]): WorkerStart {
    const { config, workspaceId, directories, limits, store, connections, counted, events } = this.#options;
    return {
      config,
      thread,
      connections,
      counted,
      addresses,
      cachesBytesMax: config.directoryBytesMax / config.workers,
      lockOwner: ++this.#lockOwner,
      clockOrigin: monotonicOrigin(),
      defaultWorkspaceId: workspaceId,
      logsAnswers: events.answered !== undefined,
      generations: directories.generations.buffer,
      mainState: this.#state.buffer,
      keyFilter: store.keyFilter?.state,
      counters: limits.sharedTable,
    };
  }

  #publish(): void {
    const { clock, directories, claim, limits } = this.#options;
    const monotonic = clock.monotonic();
    this.#state.write({
      readAt: directories.changes.readAt,
      databaseReachable: directories.changes.reachable,
      countUntil: claim.mayCount ? monotonic + COUNT_TIME : 0,
      counting: { time: limits.countingClock.now(), monotonic },
    });
    if (directories.keyFilter !== undefined) for (const thread of this.#threads) thread.completeFilter();
  }

  get serving(): number {
    return this.#threads.filter(({ isServing }) => isServing).length;
  }

  get ended(): number {
    return this.#threads.reduce((sum, { ended }) => sum + ended, 0);
  }

  /** Ends an unused connection of one of the threads, if that makes room for one of this network. */
  async makeRoom(network: string): Promise<boolean> {
    for (const thread of this.#threads) if (await thread.makeRoom(network)) return true;
    return false;
  }

  /** Asks the threads for their counts. Afterwards `counts` is up to date, unless a thread does not answer. */
  async collect(): Promise<void> {
    await Promise.race([
      Promise.all(this.#threads.map((thread) => thread.collect())),
      pause(this.#options.clock, COLLECT_MAX),
    ]);
  }

  /** The counts of all threads together with those of the main thread. */
  addTo(own: ThreadCounts): ThreadCounts {
    return this.#threads.reduce((sum, { counts }) => (counts === undefined ? sum : addCounts(sum, counts)), own);
  }

  /** Ends each connection after its next answer. */
  drain(): void {
    this.#isDraining = true;
    for (const thread of this.#threads) thread.send(["drain"]);
  }

  /** Accepts no more connections. Resolves when all are closed, also those that the main thread reads. */
  async closeConnections(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.closeServer()));
  }

  /** Ends every connection at once. */
  destroyConnections(): void {
    for (const thread of this.#threads) thread.send(["destroy"]);
  }

  /** Ends the threads, with their last counts. */
  async close(): Promise<void> {
    this.#publishing.cancel();
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}

interface ThreadOptions extends WorkersOptions {
  /** Ends an unused connection of one of the threads, if that makes room for one of this network. */
  makeRoom(network: string): Promise<boolean>;
}

/** The place of one thread, with the thread that is in it at the moment. */
class WorkerSlot {
  readonly #options: ThreadOptions;
  readonly #thread: number;
  readonly #startData: () => WorkerStart;
  #current: RunningWorker | undefined;
  /** How many threads in this place have ended by themselves. */
  ended = 0;
  /** Those since the last thread that ran for `STABLE_TIME`. */
  #failures = 0;
  #restart: Timer | undefined;
  #isClosing = false;
  /** The counts of the threads that were in this place. */
  #past: ThreadCounts | undefined;

  constructor(options: ThreadOptions, thread: number, startData: () => WorkerStart) {
    this.#options = options;
    this.#thread = thread;
    this.#startData = startData;
  }

  /** Resolves when the thread serves or has ended. */
  start(): Promise<void> {
    const { clock, events, limits } = this.#options;
    const data = this.#startData();
    const startedAt = clock.monotonic();
    const worker = new RunningWorker(this.#options, data);
    this.#current = worker;
    void worker.ended.then((error) => {
      // A thread can end under a lock.
      limits.table.releaseLocksOf(data.lockOwner);
      Atomics.store(this.#options.connections, this.#thread, 0);
      const counts = this.counts;
      this.#past = counts && countsAfterEnd(counts);
      this.#current = undefined;
      if (this.#isClosing) return;
      this.ended++;
      if (clock.monotonic() - startedAt > STABLE_TIME) this.#failures = 0;
      const restartInMs = Math.min(RESTART_MAX, RESTART_MIN * 2 ** this.#failures++);
      events.workerEnded(this.#thread, error, restartInMs);
      this.#restart = clock.schedule(restartInMs, () => void this.start());
    });
    return Promise.race([worker.ready, worker.ended.then(() => {})]);
  }

  get isServing(): boolean {
    return this.#current?.isServing ?? false;
  }

  get counts(): ThreadCounts | undefined {
    const latest = this.#current?.counts;
    return latest && this.#past ? addCounts(latest, this.#past) : (latest ?? this.#past);
  }

  send(message: ToWorker): void {
    this.#current?.send(message);
  }

  completeFilter(): void {
    this.#current?.completeFilter();
  }

  async collect(): Promise<void> {
    await this.#current?.collect();
  }

  async makeRoom(network: string): Promise<boolean> {
    return (await this.#current?.makeRoom(network)) ?? false;
  }

  async closeServer(): Promise<void> {
    this.#isClosing = true;
    this.#restart?.cancel();
    await this.#current?.closeServer();
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#restart?.cancel();
    await this.#current?.close();
  }
}

/** A thread, seen from the main thread. */
class RunningWorker {
  /** Resolves when it listens. */
  readonly ready: Promise<void>;
  /** Resolves when it has ended, with the error that ended it. */
  readonly ended: Promise<unknown>;
  isServing = false;
  counts: ThreadCounts | undefined;
  readonly #options: ThreadOptions;
  readonly #worker: Worker;
  readonly #outgoing: Outgoing<ToWorker>;
  readonly #connections = new Map<number, TunnelledConnection>();
  /** Look-ups in progress by the number of their question. */
  readonly #lookUps = new Map<number, { lookups: LimitedLookups; share: Share }>();
  readonly #collects = new Map<number, () => void>();
  readonly #rooms = new Map<number, (isMade: boolean) => void>();
  #asked = 0;
  #isFilterComplete = false;
  #isEnded = false;
  readonly #closed = Promise.withResolvers<void>();

  constructor(options: ThreadOptions, start: WorkerStart) {
    this.#options = options;
    const heapMb = HEAP_MB + Math.ceil((2 * start.cachesBytesMax) / 1024 ** 2);
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), {
      workerData: start,
      name: `worker-${start.thread}`,
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    });
    this.#outgoing = new Outgoing(this.#worker);
    const ready = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.#worker.on("message", (messages: FromWorker[]) => {
      for (const message of messages) {
        if (message[0] === "ready") {
          this.isServing = true;
          ready.resolve();
        } else this.#handle(message);
      }
    });
    let cause: unknown;
    this.#worker.once("error", (error) => {
      cause = error;
    });
    this.ended = new Promise((resolve) => {
      this.#worker.once("exit", (code) => {
        this.#end();
        resolve(cause ?? new Error(`The thread has ended with the code ${code}`));
      });
    });
  }

  send(message: ToWorker): void {
    if (!this.#isEnded) this.#outgoing.send(message);
  }

  completeFilter(): void {
    if (this.#isFilterComplete) return;
    this.#isFilterComplete = true;
    this.send(["filterIsComplete"]);
  }

  /** Resolves when its counts are up to date or it has ended. */
  collect(): Promise<void> {
    if (!this.isServing) return Promise.resolve();
    const id = ++this.#asked;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#collects.set(id, resolve);
    this.send(["collect", id]);
    return promise;
  }

  /** Whether it has ended an unused connection. */
  async makeRoom(network: string): Promise<boolean> {
    if (!this.isServing) return false;
    const id = ++this.#asked;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#rooms.set(id, resolve);
    this.send(["makeRoom", id, network]);
    const late = startTimeout(this.#options.clock, MAKE_ROOM_MAX);
    try {
      return await Promise.race([promise, late.expired.then(() => false)]);
    } finally {
      late.cancel();
      this.#rooms.delete(id);
    }
  }

  /** Resolves when all its connections are closed. */
  closeServer(): Promise<void> {
    this.send(["closeServer"]);
    return this.#closed.promise;
  }

  async close(): Promise<void> {
    this.send(["finish"]);
    await Promise.race([this.ended, pause(this.#options.clock, FINISH_MAX)]);
    await this.#worker.terminate();
  }

  #end(): void {
    this.#isEnded = true;
    this.isServing = false;
    this.#closed.resolve();
    for (const connection of this.#connections.values()) connection.destroy();
    for (const resolve of this.#collects.values()) resolve();
    this.#collects.clear();
    for (const resolve of this.#rooms.values()) resolve(false);
    // What they would have found is unknown, and look-ups that wait for them must not wait for ever.
    for (const id of [...this.#lookUps.keys()]) this.#endLookUp(id, false);
  }

  #handle(message: FromWorker): void {
    switch (message[0]) {
      case "ask":
        void this.#answer(message[1], message[2]);
        return;
      case "lookedUp":
        this.#endLookUp(message[1], message[2]);
        return;
      case "report":
        this.#adopt(message[1]);
        return;
      case "collected":
        this.#collects.get(message[1])?.();
        this.#collects.delete(message[1]);
        return;
      case "room":
        this.#rooms.get(message[1])?.(message[2]);
        return;
      case "answered":
        this.#options.events.answered?.(message[1]);
        return;
      case "failed":
        this.#options.events.requestFailed(asError(message[1]), message[2], message[3]);
        return;
      case "open":
        this.#accept(message[1], message[2]);
        return;
      case "ready":
        return;
      case "closed":
        this.#closed.resolve();
        return;
      default:
        this.#connections.get(message[1])?.receive(message);
    }
  }

  async #answer(id: number, question: Question): Promise<void> {
    try {
      this.send(["answer", id, await this.#find(id, question)]);
    } catch (error) {
      this.send(["error", id, plainError(error)]);
    }
  }

  #find(id: number, question: Question): unknown {
    const { rpc, store, directories, limits, clock, recordFirstUses, http } = this.#options;
    switch (question[0]) {
      case "call":
        return rpc.call(operationsByName.get(question[1])!, question[2]);
      case "load":
        return store.read(question[1], question[2] as never);
      case "lookUp":
        return this.#beginLookUp(id, question[1], question[2]);
      case "mayServe":
        return directories.changes.mayServe(clock.now(), clock.monotonic());
      case "makeRoom":
        return http.makeRoom(question[1]) || this.#options.makeRoom(question[1]);
      case "charge":
        return limits.counters.charge(question[1]);
      case "peek":
        return limits.counters.peek(question[1]);
      case "recordFirstUses":
        return recordFirstUses(question[1]);
    }
  }

  async #beginLookUp(id: number, lookups: LimitedLookups, source: string): Promise<void> {
    const share = await this.#options.directories[lookups].begin(source);
    this.#lookUps.set(id, { lookups, share });
    if (this.#isEnded) this.#endLookUp(id, false);
  }

  #endLookUp(id: number, isUnknown: boolean): void {
    const lookUp = this.#lookUps.get(id);
    this.#lookUps.delete(id);
    if (lookUp) this.#options.directories[lookUp.lookups].end(lookUp.share, isUnknown);
  }

  #adopt({ counts, analytics, decisions, exceeded, rootKeyUses, failedAuthentications }: Report): void {
    this.counts = counts;
    this.#options.limits.limiter.exceeded.adopt(exceeded);
    this.#options.analytics.recorder.decisions.adopt(decisions);
    if (analytics) this.#options.analytics.adopt(analytics);
    this.#options.rpc.recordRootKeyUses(rootKeyUses);
    this.#options.failedAuthentications.adopt(failedAuthentications);
  }

  #accept(id: number, address: string): void {
    const send = (message: TunnelMessage) => this.send(message);
    const connection = new TunnelledConnection(id, address, this.#options.clock, send);
    this.#connections.set(id, connection);
    connection.once("close", () => this.#connections.delete(id));
    // The event "close" follows an error.
    connection.on("error", () => {});
    this.#options.http.accept(connection);
  }
}
