import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { Events } from "../../log/events.ts";
import type { HeldLeaseOptions } from "../../platform/store/held-lease.ts";
import { LeasedWork } from "../../platform/store/leased-work.ts";
import type { Store } from "../../platform/store/store.ts";
import type { eventProcedures } from "./procedures.ts";
import type { UnusedStep } from "./statements/unused-sweep.ts";

/** Interval between two passes, and between two attempts to take the lease. */
const INTERVAL: Milliseconds = 30_000;

/** The pause between two steps is this multiple of the duration of a step. */
const PAUSE_PER_STEP = 2;

/** Steps without events between two that are stored, which also renew the lease: it lasts for a minute. */
const UNSTORED_MAX = 20;

export interface EventSweepOptions extends Pick<HeldLeaseOptions, "clock" | "holder" | "formerHolders"> {
  store: Pick<Store<ReturnType<typeof eventProcedures>>, "read" | "transact"> & HeldLeaseOptions["store"];
  events: Pick<Events, "eventSweepFailed">;
}

/**
 * Records the events that no call makes: of keys that expire, have expired, or are not used any more. Each step records its
 * events and where the sweep continues in one transaction, so a crash or a change of the node neither repeats nor loses an
 * event.
 */
export class EventSweep {
  readonly #options: EventSweepOptions;
  readonly #work: LeasedWork;

  constructor(options: EventSweepOptions) {
    const { events, ...rest } = options;
    this.#options = options;
    this.#work = new LeasedWork({
      ...rest,
      name: "events",
      interval: INTERVAL,
      pausePerStep: PAUSE_PER_STEP,
      pass: async () => {
        await this.#sweepExpiries();
        await this.#sweepUnused();
      },
      onFailed: events.eventSweepFailed,
    });
  }

  /** Gives the lease back. */
  stop(): Promise<void> {
    return this.#work.stop();
  }

  #sweepExpiries(): Promise<void> {
    const { store, clock } = this.#options;
    return this.#work.steps(async (lease) => {
      const step = await store.read("findExpiryStep", clock.now());
      if (step === null) return false;
      await store.transact("recordExpiries", { step, lease, now: clock.now() });
      return step.at !== null;
    });
  }

  #sweepUnused(): Promise<void> {
    const { store, clock } = this.#options;
    let before: UnusedStep | null = null;
    let unstored = 0;
    return this.#work.steps(async (lease) => {
      const step: UnusedStep | null = await store.read("findUnusedStep", { now: clock.now(), before });
      if (step === null) return false;
      // Not every step that found nothing is stored.
      if (step.found.length > 0 || step.next.after === null || ++unstored === UNSTORED_MAX) {
        await store.transact("recordUnused", { step, lease, now: clock.now() });
        unstored = 0;
      }
      before = step;
      return step.next.after !== null;
    });
  }
}
