/** A service with worker threads in this process, and many connections to it, so that every thread has some. */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { systemClock } from "../../src/clock/system.ts";
import { readConfig } from "../../src/config/config.ts";
import { readSecrets } from "../../src/config/secrets.ts";
import { systemRandom } from "../../src/random/system.ts";
import { openService, type Service } from "../../src/service/service.ts";
import { ROOT_KEY } from "../process.ts";

/** The system spreads connections over the threads by chance: one of four threads has none of these once in 10^7 runs. */
export const CONNECTIONS = 64;

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

export class ThreadedService {
  readonly logged: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  readonly agents = Array.from({ length: CONNECTIONS }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  service!: Service;
  address!: AddressInfo;
  readonly #threads = new Set<Worker>();
  #undo = () => {};
  readonly #folder: string;
  readonly #settings: Record<string, string>;

  private constructor(folder: string, settings: Record<string, string>) {
    this.#folder = folder;
    this.#settings = settings;
  }

  static async start(settings: Record<string, string>): Promise<ThreadedService> {
    const threaded = new ThreadedService(mkdtempSync(join(tmpdir(), "latchkey-test-")), settings);
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
      ...{ clock: systemClock, random: systemRandom },
      log: { info: record("info"), warn: record("warn"), error: record("error") },
    });
    this.address = await this.service.listen();
  }

  async stop(): Promise<void> {
    this.#undo();
    const stopped = this.service.stop();
    for (const agent of this.agents) agent.destroy();
    await stopped;
  }

  /** Stops, and deletes the data. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The worker threads that run. */
  get workers(): Worker[] {
    return [...this.#threads].filter(({ threadName }) => threadName?.startsWith("worker-"));
  }

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
      const request = sendRequest({ host: this.address.address, port: this.address.port, ...options }, (response) => {
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

  async metrics(): Promise<string> {
    return (await this.fetch(0, "GET", "/metrics"))!.body;
  }
}

/** The sum of all samples of a metric whose labels contain `labels`. */
export function sumOf(metrics: string, name: string, labels = ""): number {
  const lines = metrics.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.filter((line) => line.includes(labels)).reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}
