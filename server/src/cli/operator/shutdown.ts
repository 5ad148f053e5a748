import { systemClock } from "../../../../engine/src/clock/system.ts";
import type { openEvents } from "../../log/events.ts";
import type { LogOutput } from "../../log/output.ts";

/** How long a stopping service still serves, so that load balancers leave it out. On a terminal it stops at once. */
const DRAIN_DEFAULT = 5_000;
/** How long a stop takes at most after the drain. */
const STOP_MAX = 10_000;
/** How long an end waits for the output to take the log. */
const LOG_MAX = 1_000;

/** What is stopped: the service, or an edge. */
interface Stoppable {
  stop(drain?: number): Promise<void>;
}

/** Terminals and supervisors signal a process group and its parent, so one stop can arrive as two signals. */
const SAME_SIGNAL_MS = 500;

/**
 * Stops the service: at a signal, or after a fatal error.
 *
 * The first signal drains and finishes open requests. A second one, later than `SAME_SIGNAL_MS`, ends the process at once.
 */
export class Shutdown {
  /** The exit code of the process. */
  code = 0;
  service: Stoppable | undefined;
  readonly #drain: number;
  readonly #events: ReturnType<typeof openEvents>;
  readonly #output: LogOutput;
  readonly #starting: AbortController;
  #stoppingSince: number | undefined;

  /** @param drain how long to serve after the signal; undefined: the default. */
  constructor(
    drain: number | undefined,
    parts: { events: ReturnType<typeof openEvents>; output: LogOutput; starting: AbortController },
  ) {
    this.#drain = drain ?? (process.stdout.isTTY ? 0 : DRAIN_DEFAULT);
    this.#events = parts.events;
    this.#output = parts.output;
    this.#starting = parts.starting;
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => this.#end(signal));
  }

  /** Prints the error and stops without a drain; the process exits with 1. */
  fail(error: Error): void {
    console.error(`latchkey: ${error.message}`);
    this.code = 1;
    this.#stop(0);
  }

  /** Exits when the log is written, or after a second if nobody reads it. */
  exit(code: number): void {
    systemClock.schedule(LOG_MAX, () => process.exit(code));
    void this.#output.written().then(() => process.exit(code));
  }

  #end(signal: "SIGTERM" | "SIGINT"): void {
    if (this.#stoppingSince !== undefined) {
      if (systemClock.monotonic() - this.#stoppingSince > SAME_SIGNAL_MS) process.exit(signal === "SIGINT" ? 130 : 143);
      return;
    }
    this.#stoppingSince = systemClock.monotonic();
    this.#events.stopping(signal, this.#drain);
    this.#stop(this.#drain);
  }

  #stop(drain: number): void {
    this.#starting.abort();
    systemClock.schedule(drain + STOP_MAX, () => {
      this.#events.forcedStop();
      this.exit(1);
    });
    this.service?.stop(drain).then(
      () => {
        if (this.code === 0) this.#events.stopped();
        this.exit(this.code);
      },
      (error: unknown) => {
        console.error(error);
        this.exit(1);
      },
    );
  }
}
