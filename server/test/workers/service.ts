/** A service with worker threads in this process or in another one, and many connections to it, so that every thread has some. */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request as sendRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import { readConfig } from "../../src/platform/config/config.ts";
import { readSecrets } from "../../src/platform/config/secrets.ts";
import { openService, type Service } from "../../src/service/service.ts";
import { ROOT_KEY } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { sharedRedis } from "../services/redis.ts";

/** The system spreads connections over the threads by chance: one of four threads has none of these once in 10^7 runs. */
export const CONNECTIONS = 64;

/** Where a service stores its records and counts its limits. */
export const backends = ["the embedded database", "PostgreSQL", "PostgreSQL and Redis"] as const;
export type Backend = (typeof backends)[number];

/** An answer; undefined: the connection broke before it. */
export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
  body: any;
}

export interface CallOptions {
  headers?: Record<string, string>;
  /** Null: without a root key. */
  rootKey?: string | null;
}

/** Connections to a service, each with one call at a time. */
export class Connections {
  readonly agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  /** The port of the service on this machine. */
  port = 0;

  /** Sends a call on one of the connections. Undefined if the connection breaks. */
  send(connection: number, operation: string, body: unknown, options: CallOptions = {}): Promise<Answer | undefined> {
    const { headers = {}, rootKey = ROOT_KEY } = options;
    return this.fetch(connection, "POST", `/v2/${operation}`, JSON.stringify(body), {
      "content-type": "application/json",
      ...(rootKey !== null && { authorization: `Bearer ${rootKey}` }),
      ...headers,
    });
  }

  fetch(
    connection: number,
    method: string,
    path: string,
    body: string | Buffer = "",
    headers: Record<string, string> = {},
  ): Promise<Answer | undefined> {
    return new Promise((resolve) => {
      const length = { "content-length": String(Buffer.byteLength(body)) };
      const options = { agent: this.agents[connection]!, method, path, headers: { ...headers, ...length } };
      const request = sendRequest({ host: "127.0.0.1", port: this.port, ...options }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", () => resolve(undefined));
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          const isJson = String(response.headers["content-type"]).includes("json");
          resolve({ status: response.statusCode!, headers: response.headers, body: isJson ? JSON.parse(text) : text });
        });
      });
      request.on("error", () => resolve(undefined));
      request.end(body);
    });
  }

  /** Sends a call on every connection at once. */
  async sendOnAll(operation: string, body: unknown, options?: CallOptions): Promise<Answer[]> {
    const answers = await Promise.all(this.agents.map((_, i) => this.send(i, operation, body, options)));
    return answers.map((answer) => answer ?? { status: 0, headers: {}, body: undefined });
  }

  /** The `data` of a call that succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
  async ok(operation: string, body: unknown, options?: CallOptions): Promise<any> {
    const answer = await this.send(0, operation, body, options);
    if (answer?.status !== 200) throw new Error(`${operation} answered ${JSON.stringify(answer)}`);
    return answer.body.data;
  }

  /** Closes the connections. Calls open new ones. */
  disconnect(): void {
    for (const agent of this.agents) agent.destroy();
  }

  /** Sends a call on each connection until one breaks, because its thread ends. Returns how many were answered with 200. */
  async sendUntilOneBreaks(operation: string, body: unknown): Promise<number> {
    for (let i = 0; i < CONNECTIONS; i++) {
      const answer = await this.send(i, operation, body);
      if (answer === undefined) return i;
      if (answer.status !== 200) throw new Error(`${operation} answered ${JSON.stringify(answer)}`);
    }
    throw new Error("No connection broke");
  }

  async metrics(): Promise<string> {
    return (await this.fetch(0, "GET", "/metrics"))!.body;
  }
}

export class ThreadedService extends Connections {
  readonly logged: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  service!: Service;
  readonly #threads = new Set<Worker>();
  #undo = () => {};
  readonly #folder: string;
  readonly #settings: Record<string, string>;

  readonly #dropDatabase: () => Promise<void>;

  private constructor(folder: string, settings: Record<string, string>, dropDatabase: () => Promise<void>) {
    super();
    this.#folder = folder;
    this.#settings = settings;
    this.#dropDatabase = dropDatabase;
  }

  static async start(
    settings: Record<string, string>,
    backend: Backend = "the embedded database",
  ): Promise<ThreadedService> {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
    const database = backend === "the embedded database" ? undefined : await freshDatabase();
    const all = {
      ...(database && { DATABASE_URL: database.url }),
      ...(backend === "PostgreSQL and Redis" && { REDIS_URL: await sharedRedis() }),
      ...settings,
    };
    const threaded = new ThreadedService(folder, all, async () => database?.drop());
    await threaded.open();
    return threaded;
  }

  /** Starts, or starts again on the same data. */
  async open(): Promise<void> {
    const values = new Map(Object.entries({ PORT: "0", DATA_DIR: this.#folder, ROOT_KEY, ...this.#settings }));
    const record = (level: string) => (fields: object, message: string) =>
      void this.logged.push({ level, fields: fields as Record<string, unknown>, message });
    const onWorker = (worker: Worker) => this.#threads.add(worker);
    process.on("worker", onWorker);
    this.#undo = () => process.off("worker", onWorker);
    this.service = await openService(readConfig(values), readSecrets(values), {
      clock: systemClock,
      random: systemRandom,
      log: {
        info: record("info"),
        warn: record("warn"),
        error: record("error"),
        ...(this.#settings.LOG_LEVEL === "debug" && { debug: record("debug") }),
      },
    });
    this.port = (await this.service.listen()).port;
  }

  async stop(): Promise<void> {
    this.#undo();
    const stopped = this.service.stop();
    this.disconnect();
    await stopped;
  }

  /** Stops, and deletes the data. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
    await this.#dropDatabase();
  }

  /** The worker threads that run. */
  get workers(): Worker[] {
    return [...this.#threads].filter(({ threadName }) => threadName?.startsWith("worker-"));
  }
}

/** The sum of all samples of a metric whose labels contain `labels`. */
export function sumOf(metrics: string, name: string, labels = ""): number {
  const lines = metrics.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.filter((line) => line.includes(labels)).reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
