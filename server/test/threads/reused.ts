import { EventEmitter } from "node:events";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import type { ThreadData } from "../../src/platform/store/sqlite/serve-requests.ts";
import type { DatabaseWorker } from "../../src/platform/store/sqlite/store.ts";
import type { Unopened } from "./thread.ts";

/** Threads that serve no database at the moment, by priority: a low one cannot be raised. */
const idle: Record<ThreadData["priority"], Worker[]> = { normal: [], low: [] };

/**
 * Serves a database in a thread that has served another one before, if there is one: the start of a thread loads hundreds
 * of modules, which takes most of the time in which a test opens a service.
 */
export function startThread(data: ThreadData): DatabaseWorker {
  const thread = idle[data.priority].pop() ?? newThread(data.priority);
  const { port1: here, port2: there } = new MessageChannel();
  const handle = new Handle(here);
  const fail = (error: unknown) => handle.emit("error", error);
  const free = Promise.withResolvers<unknown>();
  const onExit = () => {
    here.close();
    free.resolve(undefined);
  };
  thread.once("message", free.resolve).once("error", fail).once("exit", onExit);
  here.once("close", async () => {
    await free.promise;
    thread.off("error", fail).off("exit", onExit);
    handle.emit("exit");
  });
  thread.postMessage({ data, port: there }, [there]);
  // An idle thread does not keep the process running; an open port does.
  thread.unref();
  return handle;
}

function newThread(priority: keyof typeof idle): Worker {
  const thread = new Worker(new URL("thread.ts", import.meta.url));
  // Only the thread itself can say that it serves no database: the port of one that has ended closes too.
  thread.on("message", () => idle[priority].push(thread));
  thread.once("exit", () => {
    idle[priority] = idle[priority].filter((other) => other !== thread);
  });
  return thread;
}

/** One database of a thread, as the `Worker` that would serve it alone. */
class Handle extends EventEmitter {
  readonly #port: MessagePort;

  constructor(port: MessagePort) {
    super();
    this.#port = port.on("message", (message: object) => {
      if (isUnopened(message)) this.emit("error", message.unopened);
      else this.emit("message", message);
    });
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message);
  }
}

function isUnopened(message: object): message is Unopened {
  return typeof message === "object" && "unopened" in message;
}
