import type { Clock, Milliseconds } from "../clock/clock.ts";
import { every } from "../clock/every.ts";
import type { Events } from "../log/events.ts";
import type { UnusedStep } from "../store/events/unused-sweep.ts";
import type { Lease } from "../store/lease.ts";
import type { AppStore } from "./app-store.ts";
import { HeldLease } from "./held-lease.ts";

/** Interval between two passes, and between two attempts to take the lease. */
const INTERVAL: Milliseconds = 30_000;

/** The pause between two steps is this multiple of the duration of a step. */
const PAUSE_PER_STEP = 2;
const PAUSE_MAX: Milliseconds = 1_000;

/** Steps without events between two that are stored, which also renew the lease: it lasts for a minute. */
const UNSTORED_MAX = 20;

export interface EventSweepOptions {
  store: Pick<AppStore, "read" | "transact" | "dialect">;
  clock: Clock;
  events: Pick<Events, "eventSweepFailed">;
  /** The name of this process. */
  holder: string;
}

/**
 * Records the events that no call makes: of keys that expire, have expired, or are not used any more. Runs on the node that
 * has the lease, in small steps with pauses. Each step records its events and where the sweep continues in one transaction,
 * which also renews the lease, so a crash or a change of the node neither repeats nor loses an event.
 */
export class EventSweep {
  readonly #options: EventSweepOptions;
  readonly #held: HeldLease;
  readonly #timer: { cancel(): void };
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;
  #endPause = () => {};

  constructor(options: EventSweepOptions) {
    const { store, clock, holder } = options;
    this.#options = options;
    this.#held = new HeldLease({ store, clock, holder, name: "events" });
    this.#timer = every(clock, INTERVAL, () => {
      this.#running = this.#pass();
      return this.#running;
    });
  }

  /** Ends after the step in progress, and gives the lease back. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer.cancel();
    this.#endPause();
    await this.#running.catch(() => {});
    await this.#held.release();
  }

  async #pass(): Promise<void> {
    try {
      const lease = await this.#held.take();
      if (lease === undefined) return;
      await this.#sweepExpiries(lease);
      await this.#sweepUnused(lease);
    } catch (error) {
      // The embedded database returns errors of its thread by name.
      if ((error as Error).name === "LeaseLost") this.#held.lose();
      else this.#options.events.eventSweepFailed(error);
    }
  }

  async #sweepExpiries(lease: Lease): Promise<void> {
    const { store, clock } = this.#options;
    while (!this.#isStopped) {
      const startedAt = clock.monotonic();
      const step = await store.read("findExpiryStep", clock.now());
      if (step === null) break;
      await store.transact("recordExpiries", { step, lease, now: clock.now() });
      if (step.at === null) break;
      await this.#pause(clock.monotonic() - startedAt);
    }
  }

  async #sweepUnused(lease: Lease): Promise<void> {
    const { store, clock } = this.#options;
    let before: UnusedStep | null = null;
    let unstored = 0;
    while (!this.#isStopped) {
      const startedAt = clock.monotonic();
      const step: UnusedStep | null = await store.read("findUnusedStep", { now: clock.now(), before });
      if (step === null) break;
      // Not every step that found nothing is stored.
      if (step.found.length > 0 || step.next.after === null || ++unstored === UNSTORED_MAX) {
        await store.transact("recordUnused", { step, lease, now: clock.now() });
        unstored = 0;
      }
      if (step.next.after === null) break;
      before = step;
      await this.#pause(clock.monotonic() - startedAt);
    }
  }

  #pause(took: Milliseconds): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#options.clock.schedule(Math.min(PAUSE_MAX, took * PAUSE_PER_STEP), resolve);
      this.#endPause = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}
