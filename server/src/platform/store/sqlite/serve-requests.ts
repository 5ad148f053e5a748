import type { MessagePort } from "node:worker_threads";
import { systemClock } from "../../../../../engine/src/clock/system.ts";
import { WRITES_STOPPED } from "../move/marks.ts";
import { type PlainError, plainError } from "../plain-error.ts";
import { type Procedures, Rollback } from "../store.ts";
import { CpuYield, type Durability, openSqliteConnection, type SqliteConnection } from "./connection.ts";
import { lowerThreadPriority } from "./thread-priority.ts";
import { SyncMark } from "./write-health.ts";

/** `low`: other threads of the process run first when they share a core. */
export type ThreadPriority = "normal" | "low";

/** The start parameters of a database thread. */
export interface ThreadData {
  file: string;
  mode: "read" | "write";
  durability: Durability;
  priority: ThreadPriority;
  /** Shared memory of a `SyncMark`. */
  syncs: SharedArrayBuffer;
  /** The module whose default export opens the procedures, and the argument for it. */
  procedures: { module: string; options: unknown };
}

export interface ThreadRequest {
  id: number;
  name: string;
  argument: unknown;
}

/** The caller's answer to a question of a procedure during its transaction. */
export type ThreadAnswer = { answerTo: number; value: unknown } | { answerTo: number; failure: string };

export type ThreadReply =
  | { id: number; value: unknown; ranMs: number }
  | { id: number; error: PlainError; ranMs: number }
  | { id: number; question: unknown };

/** SQLite's codes of errors for which a later retry may succeed: BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN. */
const UNAVAILABLE: ReadonlySet<number> = new Set([5, 6, 7, 8, 10, 13, 14]);

/** SQLite's code of an error that a trigger raises. */
const RAISED = 1811;

function failure(error: unknown): PlainError {
  const plain = plainError(error);
  const { errcode, message } = plain;
  // Extended codes carry the primary one in their lowest byte.
  const isUnavailable =
    errcode !== undefined && (UNAVAILABLE.has(errcode & 0xff) || (message === WRITES_STOPPED && errcode === RAISED));
  if (!isUnavailable) return plain;
  return { ...plain, name: "StoreUnavailable", message: `The embedded database cannot be used: ${message}` };
}

/**
 * Opens the database and answers the requests of `port`: one connection and one procedure at a time, in the order of
 * arrival. The first message is "ready".
 *
 * @throws when the procedures or the file cannot be opened.
 */
export async function serveRequests(
  port: MessagePort,
  { file, mode, durability, priority, syncs, procedures }: ThreadData,
): Promise<void> {
  const { default: openProcedures } = (await import(procedures.module)) as { default(options: unknown): Procedures };
  const { reading, writing, functions } = openProcedures(procedures.options);
  const table = mode === "write" ? writing : reading;
  const cpuYield = new CpuYield();
  const open = () => openSqliteConnection(file, mode, { durability, cpuYield, functions, syncs: new SyncMark(syncs) });
  // The reader opens the file at its first request: the writer, which starts at the same time, may not have created it yet.
  let opened: SqliteConnection | undefined = mode === "write" ? open() : undefined;

  async function run({ id, name, argument }: ThreadRequest): Promise<unknown> {
    const procedure = table[name]!;
    const ask = (question: unknown) => {
      pendingQuestion = Promise.withResolvers();
      port.postMessage({ id, question } satisfies ThreadReply);
      return pendingQuestion.promise;
    };
    opened ??= open();
    const connection = opened;
    if (mode === "read") return procedure(connection.sql, argument, ask);
    const result = await connection.transaction((sql) => procedure(sql, argument, ask));
    return result instanceof Rollback ? result.value : result;
  }

  /** The pending question. There is at most one, because there is at most one transaction. */
  let pendingQuestion: PromiseWithResolvers<unknown> | undefined;

  let keepsPriority = priority === "normal";
  let last: Promise<void> = Promise.resolve();
  port.on("message", (request: ThreadRequest | ThreadAnswer | "close") => {
    if (typeof request === "object" && "answerTo" in request) {
      if ("failure" in request) pendingQuestion!.reject(new Error(request.failure));
      else pendingQuestion!.resolve(request.value);
      return;
    }
    last = last.then(async () => {
      if (request === "close") {
        opened?.close();
        port.close();
        return;
      }
      cpuYield.begin();
      const startedAt = systemClock.monotonic();
      const ranMs = () => systemClock.monotonic() - startedAt;
      try {
        port.postMessage({ id: request.id, value: await run(request), ranMs: ranMs() } satisfies ThreadReply);
      } catch (error) {
        port.postMessage({ id: request.id, error: failure(error), ranMs: ranMs() } satisfies ThreadReply);
      }
      if (mode === "write") opened!.checkpoint();
      // Not before the first request, for which the start of the service waits.
      if (keepsPriority) return;
      keepsPriority = true;
      lowerThreadPriority();
    });
  });
  port.postMessage("ready");
}
