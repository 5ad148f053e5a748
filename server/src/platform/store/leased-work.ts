import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import { HeldLease, type HeldLeaseOptions } from "./held-lease.ts";
import type { Lease } from "./lease.ts";

const PAUSE_MAX: Milliseconds = 1_000;

export interface LeasedWorkOptions extends HeldLeaseOptions {
  /** Interval between two passes, and between two attempts to take the lease. */
  interval: Milliseconds;
  /** The pause between two steps is this multiple of the duration of a step, at most a second. */
  pausePerStep: number;
  /** Looks once for everything that there is to do, and does it in `steps`. */
  pass: () => Promise<void>;
  /** Another node has taken the lease. */
  onLost?: () => void;
  /** A pass failed. Not called if the database does not answer, which is reported elsewhere. */
  onFailed: (error: unknown) => void;
}

/** The work was stopped while something was waited for. */
class Stopped extends Error {}

/**
 * Periodic work that one node does at a time, in small steps with pauses.
 *
 * A node without the lease asks for it at each interval, and gets it when the former holder stopped, ended or froze. Each
 * step renews the lease in its own transaction, so the steps of a former holder change nothing.
 */
export class LeasedWork {
  readonly #options: LeasedWorkOptions;
  readonly #held: HeldLease;
  readonly #timer: { cancel(): void };
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  /** Ends the wait for the step or the pause in progress. */
  #interrupt = () => {};

  constructor(options: LeasedWorkOptions) {
    this.#options = options;
    this.#held = new HeldLease(options);
    this.#timer = every(options.clock, options.interval, () => {
      this.#running = this.#run();
      return this.#running;
    });
  }

  /** The lease, as far as this node knows. */
  get lease(): Lease | undefined {
    return this.#held.lease;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /**
   * Gives the lease back. The database does that after the transaction in progress, because both need the row of the lease.
   * A step in progress is not waited for: its next statement may never be answered, and changes nothing without the lease.
   */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer.cancel();
    this.#interrupt();
    await this.#running;
    await this.#held.release();
  }

  /** Repeats a step, with pauses, until it returns that there is no further one, or the work is stopped. */
  async steps(step: (lease: Lease) => Promise<boolean>): Promise<void> {
    const { clock, pausePerStep } = this.#options;
    try {
      while (!this.#isStopped) {
        const startedAt = clock.monotonic();
        if (!(await this.#unlessStopped(step(this.#held.lease!)))) return;
        await this.#pause(Math.min(PAUSE_MAX, (clock.monotonic() - startedAt) * pausePerStep));
      }
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    }
  }

  async #run(): Promise<void> {
    try {
      if ((await this.#unlessStopped(this.#held.take())) !== undefined) await this.#options.pass();
    } catch (error) {
      if (this.#isStopped) return;
      // The embedded database returns errors of its thread by name.
      const { name } = error as Error;
      if (name === "LeaseLost") {
        this.#held.lose();
        this.#options.onLost?.();
      } else if (name !== "StoreUnavailable") this.#options.onFailed(error);
    }
  }

  async #pause(length: Milliseconds): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.clock.schedule(length, resolve);
    await this.#unlessStopped(promise).finally(() => timer.cancel());
  }

  /** What is waited for. Rejects when the work is stopped before. */
  #unlessStopped<T>(awaited: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#interrupt = () => reject(new Stopped());
      if (this.#isStopped) this.#interrupt();
      awaited.then(resolve, reject);
    });
  }
}
