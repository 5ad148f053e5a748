import type { EventEmitter } from "node:events";
import { type ResourceLimits, Worker } from "node:worker_threads";
import type { Clock } from "../../../../../engine/src/clock/clock.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import { asError } from "../plain-error.ts";
import type { Procedures, Store, StoreObserver } from "../store.ts";
import { FileClaim } from "./claim.ts";
import type { Durability } from "./connection.ts";
import type { ThreadAnswer, ThreadData, ThreadPriority, ThreadReply } from "./serve-requests.ts";
import { SyncMark, ThreadWriteHealth } from "./write-health.ts";

export interface ProcedureModule {
  /** The URL of a module whose default export takes `options` and returns the procedures. */
  module: string;
  /** A clonable value. */
  options: unknown;
}

/** What the store needs of a `Worker`. */
export type DatabaseWorker = EventEmitter & Pick<Worker, "postMessage">;

/** Starts a thread that serves a database. */
export type StartThread = (data: ThreadData) => DatabaseWorker;

export interface SqliteOptions {
  clock: Clock;
  observe?: StoreObserver | undefined;
  durability?: Durability;
  /** The priority of the writing thread. Low only if no call waits for a write. */
  writePriority?: ThreadPriority;
  /** The reading thread starts at the first read. Saves time at the start, and memory until then. */
  readsRarely?: boolean;
  /** Reading procedures that take long. They have a thread of their own, which starts at the first of them. */
  longReads?: readonly string[];
  /** Default: a new `Worker`. */
  startThread?: StartThread | undefined;
}

/**
 * The embedded database, with one writing and one reading thread, and one for long reads if there are some, so that no SQL
 * runs on the event loop.
 *
 * @throws when a thread cannot open the file.
 */
export async function openSqliteStore<P extends Procedures>(
  file: string,
  procedures: ProcedureModule,
  options: SqliteOptions,
): Promise<Store<P>> {
  const { clock, observe = () => {}, durability = "full", writePriority = "normal", readsRarely = false } = options;
  const { startThread = startWorker, longReads = [] } = options;
  const mark = new SyncMark();
  const writes = new ThreadWriteHealth(clock, mark);
  const open = (mode: ThreadData["mode"]) => {
    const priority = mode === "write" ? writePriority : "normal";
    const data = { file, mode, durability, priority, procedures, syncs: mark.buffer };
    return DatabaseThread.open(startThread(data), clock, observe, mode === "write" ? writes : undefined);
  };
  const openReader = async () => (readsRarely ? new LateThread(() => open("read")) : open("read"));
  const [writing, reading] = await Promise.allSettled([open("write"), openReader()]);
  if (writing.status === "rejected" || reading.status === "rejected") {
    for (const thread of [writing, reading]) if (thread.status === "fulfilled") await thread.value.close();
    throw writing.status === "rejected" ? writing.reason : (reading as PromiseRejectedResult).reason;
  }
  const [writer, reader] = [writing.value, reading.value];
  const longReader = new LateThread(() => open("read"));
  return {
    isEmbedded: true,
    monthlyTables: [],
    read: (name, argument) => (longReads.includes(name) ? longReader : reader).run(name, argument) as never,
    transact: (name, argument, answer) => writer.run(name, argument, answer as Answerer) as never,
    claim: async () => FileClaim.take(file),
    writes,
    get writesInFlight() {
      return writer.pending;
    },
    get failure() {
      return writer.hasFailed || reader.hasFailed || longReader.hasFailed
        ? "the thread of the embedded database has ended; restart"
        : undefined;
    },
    listen: () => {},
    async close() {
      await Promise.all([longReader.close(), reader.close()]);
      await writer.close();
    },
  };
}

/** Answers the questions of a procedure. */
type Answerer = ((question: unknown) => unknown) | undefined;

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
  answer: Answerer;
  name: string;
  askedAt: number;
}

/**
 * The limits of a thread's heap, in MiB. A procedure needs memory for its argument and its rows, which the bounds on bodies
 * and pages keep far below. Without a limit the young generation grows to a hundred MiB, and no procedure is faster with it.
 */
const HEAP: ResourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 12 };

function startWorker(data: ThreadData): Worker {
  return new Worker(new URL("./thread.ts", import.meta.url), {
    workerData: data,
    name: `sqlite-${data.mode}`,
    resourceLimits: HEAP,
  });
}

/** A thread with its own connection, and its pending requests. */
class DatabaseThread {
  readonly #worker: DatabaseWorker;
  readonly #clock: Clock;
  readonly #observe: StoreObserver;
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #failure: Error | undefined;
  readonly #exited: Promise<void>;

  static open(
    worker: DatabaseWorker,
    clock: Clock,
    observe: StoreObserver,
    writes: ThreadWriteHealth | undefined,
  ): Promise<DatabaseThread> {
    return new Promise((resolve, reject) => {
      worker.once("error", reject);
      worker.once("message", () => {
        worker.off("error", reject);
        resolve(new DatabaseThread(worker, clock, observe, writes));
      });
    });
  }

  private constructor(
    worker: DatabaseWorker,
    clock: Clock,
    observe: StoreObserver,
    writes: ThreadWriteHealth | undefined,
  ) {
    this.#worker = worker;
    this.#clock = clock;
    this.#observe = observe;
    worker.on("message", (reply: ThreadReply) => {
      const request = this.#pending.get(reply.id)!;
      if ("question" in reply) {
        void this.#answer(reply.id, reply.question, request.answer);
        return;
      }
      this.#pending.delete(reply.id);
      const tookMs = this.#clock.monotonic() - request.askedAt;
      // The clocks of two threads may differ.
      this.#observe(request.name, Math.max(0, tookMs - reply.ranMs), reply.ranMs);
      if ("error" in reply) {
        writes?.refuse(reply.error.errcode);
        request.reject(asError(reply.error));
      } else request.resolve(reply.value);
    });
    worker.on("error", (error) => this.#fail(error as Error));
    this.#exited = new Promise((resolve) => {
      worker.once("exit", () => {
        this.#fail(new Error("The database thread has ended"));
        resolve();
      });
    });
  }

  async #answer(id: number, question: unknown, answer: Answerer): Promise<void> {
    try {
      this.#worker.postMessage({ answerTo: id, value: await answer!(question) } satisfies ThreadAnswer);
    } catch (error) {
      this.#worker.postMessage({ answerTo: id, failure: String(error) } satisfies ThreadAnswer);
    }
  }

  run(name: string, argument: unknown, answer?: Answerer): Promise<unknown> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const askedAt = this.#clock.monotonic();
      this.#worker.postMessage({ id, name, argument });
      this.#pending.set(id, { resolve, reject, answer, name, askedAt });
    });
  }

  /** The number of requests without a reply. */
  get pending(): number {
    return this.#pending.size;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  async close(): Promise<void> {
    if (!this.#failure) this.#worker.postMessage("close");
    await this.#exited;
  }

  #fail(cause: Error): void {
    this.#failure = new StoreUnavailable("The embedded database has stopped", { cause });
    for (const request of this.#pending.values()) request.reject(this.#failure);
    this.#pending.clear();
  }
}

/** A thread that starts at its first request. If the start fails, the next request tries again. */
class LateThread {
  readonly #open: () => Promise<DatabaseThread>;
  #opening: Promise<DatabaseThread> | undefined;
  #opened: DatabaseThread | undefined;
  #isClosed = false;

  constructor(open: () => Promise<DatabaseThread>) {
    this.#open = open;
  }

  async run(name: string, argument: unknown): Promise<unknown> {
    if (this.#isClosed) throw new StoreUnavailable("The embedded database has stopped");
    this.#opened ??= await this.#start();
    return this.#opened.run(name, argument);
  }

  get hasFailed(): boolean {
    return this.#opened?.hasFailed ?? false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = await this.#opening?.catch(() => undefined);
    await thread?.close();
  }

  #start(): Promise<DatabaseThread> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw new StoreUnavailable("The embedded database cannot start its thread", { cause: error });
    });
    return this.#opening;
  }
}
