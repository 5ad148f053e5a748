/**
 * Callers in a process of their own. They come at random moments (Poisson), as callers do who know nothing of one another:
 * none waits for another's answer, and none is put off to the next tick of a timer. A call's time counts from the moment
 * at which it was due. Between calls they sleep.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { pinned } from "./machine.ts";
import type { Load } from "./wrk.ts";

const CORE_DEFAULT = 1;

/** POST requests of one kind. */
export interface Calls {
  path: string;
  headers?: Readonly<Record<string, string>>;
  /** Sent in turn. ASCII. */
  bodies: readonly string[];
  /** How many come in a second. Omitted: each comes when the one before was answered, and the last one ends the window. */
  perSecond?: number;
}

/** What a window is made of. */
export interface WindowOfCalls {
  url: string;
  seconds: number;
  calls: Calls;
}

/** What the process answers. */
export type Told = Load | { failure: string };

/** @throws when a call was refused. */
export function successful(load: Load): Load {
  if (load.refused > 0) throw new Error(`${load.refused} of ${load.requests} calls were refused`);
  return load;
}

export class Callers {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #url: string;

  constructor(url: string, core = CORE_DEFAULT) {
    const program = fileURLToPath(new URL("callers-process.ts", import.meta.url));
    // With room enough not to collect garbage in the middle of a window.
    const [command, ...args] = pinned(core, [process.execPath, "--max-semi-space-size=256", program]);
    this.#child = spawn(command!, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#exited = once(this.#child, "exit");
    this.#url = url;
  }

  /** What came of the calls in a window of so many seconds at most. */
  async run(seconds: number, calls: Calls): Promise<Load> {
    const window: WindowOfCalls = { url: this.#url, seconds, calls };
    const ended = this.#exited.then((): Told => ({ failure: "The callers have ended" }));
    const told = new Promise<Told>((resolve) => this.#child.once("message", resolve));
    this.#child.send(window);
    const result = await Promise.race([told, ended]);
    if ("failure" in result) throw new Error(result.failure);
    return result;
  }

  /** Ends the window that is open. */
  end(): void {
    this.#child.send("end");
  }

  async close(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }
}
