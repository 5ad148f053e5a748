/**
 * Callers in a process of their own. Their calls arrive at random (Poisson), independently of each other and of the
 * answers. The latency of a call counts from the moment at which it was due, so a late call is measured in full. The
 * process sleeps between calls.
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
  /** Calls per second. Omitted: each call follows the previous answer, and the window ends after the last one. */
  perSecond?: number;
}

/** The calls of one window. */
export interface CallWindow {
  url: string;
  seconds: number;
  calls: Calls;
}

export interface CallerLoad extends Load {
  p999Ms: number;
}

/** The failure of a window in which the callers needed more than their core. It says nothing about the service. */
export const CALLERS_BUSY = "The callers need more than their core";

/** The answer of the process. */
export type WindowResult = CallerLoad | { failure: string };

/** @throws if a call was rejected. */
export function successful<L extends Load>(load: L): L {
  if (load.rejected > 0) throw new Error(`${load.rejected} of ${load.requests} calls were rejected`);
  return load;
}

export class Callers {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #url: string;

  constructor(url: string, core = CORE_DEFAULT) {
    const program = fileURLToPath(new URL("callers-process.ts", import.meta.url));
    // A large young generation, so that no garbage collection falls into a window.
    const [command, ...args] = pinned(core, [process.execPath, "--max-semi-space-size=256", program]);
    this.#child = spawn(command!, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    this.#exited = once(this.#child, "exit");
    this.#url = url;
  }

  /** Runs one window of at most this many seconds. */
  async run(seconds: number, calls: Calls): Promise<CallerLoad> {
    const window: CallWindow = { url: this.#url, seconds, calls };
    const ended = this.#exited.then((): WindowResult => ({ failure: "The callers have ended" }));
    const answered = new Promise<WindowResult>((resolve) => this.#child.once("message", resolve));
    this.#child.send(window);
    const result = await Promise.race([answered, ended]);
    if ("failure" in result) throw new Error(result.failure);
    return result;
  }

  /** Ends the current window. */
  end(): void {
    this.#child.send("end");
  }

  async close(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }
}
