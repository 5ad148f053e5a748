import type { MessagePort, Worker } from "node:worker_threads";
import type { BloomFilterState } from "../../../../engine/src/crypto/bloom-filter.ts";
import type { Charge } from "../../../../engine/src/limits/counters.ts";
import type { ExceededLimit } from "../../../../engine/src/limits/exceeded-limits.ts";
import type { ImportedKeyUse } from "../../../../engine/src/verification/stored.ts";
import type { Decision } from "../../features/analytics/decisions.ts";
import type { DrainedCounts } from "../../features/analytics/recorder.ts";
import type { Config } from "../../platform/config/config.ts";
import type { TunnelMessage, TunnelOpening } from "../../platform/http/threads/tunnel.ts";
import type { FailedAuthenticationsFrom } from "../../platform/rpc/failed-authentications.ts";
import type { AnsweredRequest, RpcRequest } from "../../platform/rpc/server.ts";
import type { RootKeyUse } from "../../platform/store/access/root-key-usage.ts";
import type { PlainError } from "../../platform/store/plain-error.ts";
import type { ThreadCounts } from "./counts.ts";

/** The start parameters of a worker thread. */
export interface WorkerStart {
  config: Config;
  /** The index of this thread; the main thread has 0. */
  thread: number;
  /** Memory of its caches, in bytes. */
  cachesBytesMax: number;
  /** The operations and statuses that all threads count. */
  counted: { operations: readonly string[]; statuses: readonly number[] };
  /** Identifies this thread as an owner of locks. */
  lockOwner: number;
  /** The origin of the main thread's monotonic clock. */
  clockOrigin: number;
  defaultWorkspaceId: string;
  /** Whether the main thread logs every answer. */
  logsAnswers: boolean;
  generations: SharedArrayBuffer;
  mainState: SharedArrayBuffer;
  /** Undefined: there is no filter of all keys. */
  keyFilter: BloomFilterState | undefined;
  /** The counters; undefined: the main thread charges them. */
  counters: SharedArrayBuffer | undefined;
  /** Open connections by thread. */
  connections: Int32Array<SharedArrayBuffer>;
  addresses: readonly { address: string; port: number }[];
}

/** The names of the queries that load records. */
export type RecordQuery =
  | "keysAt"
  | "keysByIds"
  | "derivedKeysAt"
  | "rootKeysByHashes"
  | "plansByIds"
  | "workspacesByIds"
  | "keyMigrationsByReferences"
  | "namespacesByReferences";

/** The rate limits of look-ups that workers use. */
export type LimitedLookups = "keyLookups" | "rootKeyLookups";

/** What a worker asks the main thread. */
export type Question =
  /** A call that the worker cannot answer alone; the answer is an `RpcResponse`. */
  | readonly [kind: "call", operation: string, request: RpcRequest]
  | readonly [kind: "load", query: RecordQuery, names: readonly unknown[]]
  /** Admits a look-up. A message `lookedUp` with the number of this question says when it has ended. */
  | readonly [kind: "lookUp", lookups: LimitedLookups, source: string]
  | readonly [kind: "mayServe"]
  /** Ends an unused connection of another thread; the answer is whether it did. */
  | readonly [kind: "makeRoom", network: string]
  | readonly [kind: "charge" | "peek", charges: readonly Charge[]]
  | readonly [kind: "recordFirstUses", uses: readonly ImportedKeyUse[]];

/** What a worker counted since its last report, and `counts` since its start. */
export interface Report {
  counts: ThreadCounts;
  analytics: DrainedCounts | undefined;
  decisions: readonly Decision[];
  exceeded: readonly ExceededLimit[];
  rootKeyUses: readonly RootKeyUse[];
  failedAuthentications: readonly FailedAuthenticationsFrom[];
}

export type FromWorker =
  | TunnelOpening
  | TunnelMessage
  | readonly [kind: "ask", id: number, question: Question]
  | readonly [kind: "lookedUp", id: number, isUnknown: boolean]
  | readonly [kind: "report", report: Report]
  /** Answers `collect`, after its report. */
  | readonly [kind: "collected", id: number]
  /** Answers `makeRoom`. */
  | readonly [kind: "room", id: number, isMade: boolean]
  | readonly [kind: "answered", answer: AnsweredRequest]
  | readonly [kind: "failed", error: PlainError, requestId: string, path: string]
  | readonly [kind: "ready" | "closed"];

export type ToWorker =
  | TunnelMessage
  | readonly [kind: "answer", id: number, value: unknown]
  | readonly [kind: "error", id: number, error: PlainError]
  | readonly [kind: "collect", id: number]
  /** Ends an unused connection, if that makes room for one of this network. */
  | readonly [kind: "makeRoom", id: number, network: string]
  | readonly [kind: "filterIsComplete" | "drain" | "closeServer" | "destroy" | "finish"];

/** Sends messages to another thread. Those of one turn of the event loop are batched: each `postMessage` costs microseconds. */
export class Outgoing<M> {
  readonly #port: MessagePort | Worker;
  #messages: M[] = [];

  constructor(port: MessagePort | Worker) {
    this.#port = port;
  }

  send(message: M): void {
    if (this.#messages.push(message) === 1) setImmediate(() => this.flush());
  }

  /** Sends what there is at once. */
  flush(): void {
    if (this.#messages.length === 0) return;
    const messages = this.#messages;
    this.#messages = [];
    this.#port.postMessage(messages);
  }
}
