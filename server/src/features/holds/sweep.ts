import type { Instant, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { ChangeOutcome, HoldChange } from "../../../../engine/src/credits/hold.ts";
import { LedgerFailed } from "../../../../engine/src/credits/ledger.ts";
import { isOverloaded } from "../../../../engine/src/errors/overloaded.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { Events } from "../../log/events.ts";
import type { HeldLeaseOptions } from "../../platform/store/held-lease.ts";
import { LeasedWork } from "../../platform/store/leased-work.ts";
import type { Store } from "../../platform/store/store.ts";
import { heldBalanceIds } from "../credits/statements/balances.ts";
import type { ExpiryPlace, OpenHold } from "../credits/statements/holds.ts";
import type { holdProcedures } from "./procedures.ts";

/** Interval between two passes. */
const INTERVAL: Milliseconds = 1_000;

/** The pause between two steps is this multiple of the duration of a step. */
const PAUSE_PER_STEP = 0.5;

/** Holds of one step: few, so that the ledger's queue has room for other calls. */
const STEP = 200;

/** How long before the last complete pass the next one begins: a transaction that made a hold may have been slow. */
const OVERLAP: Milliseconds = 15_000;

/** Interval between two passes over all holds: a transaction may have been slower still. */
const FULL_INTERVAL: Milliseconds = 3_600_000;

/** The most holds that could not be expired of which the sweep keeps a list. */
const FAILED_MAX = 1_000;
/** A pass over all holds begins this long after more than that failed. */
const FULL_AFTER_FAILURES: Milliseconds = 60_000;

const START: ExpiryPlace = { expiresAt: 0, id: "" };

export interface HoldSweepOptions extends Pick<HeldLeaseOptions, "clock" | "holder" | "formerHolders"> {
  store: Pick<Store<typeof holdProcedures>, "read"> & HeldLeaseOptions["store"];
  ledger: { change(change: HoldChange): Promise<ChangeOutcome> };
  events: Pick<Events, "holdSweepFailed">;
}

/**
 * Lets holds expire that nobody settled or released. The ledger compares their time again in its transaction, so two nodes
 * that sweep at the same time only do some work twice. It also expires those whose credits a call lacks, before the sweep.
 */
export class HoldSweep {
  readonly #options: HoldSweepOptions;
  readonly #work: LeasedWork;
  /** Holds that end before this place are closed, so that a pass does not read all those that are kept for a while. */
  #place = START;
  /** Those before it that could not be expired, by id. The next pass tries them again. */
  readonly #failed = new Map<string, OpenHold>();
  /** Monotonic: when the next pass begins at the start. */
  #fullAt: Milliseconds = 0;

  constructor(options: HoldSweepOptions) {
    const { store, clock, holder, formerHolders, events } = options;
    this.#options = options;
    this.#work = new LeasedWork({
      store,
      clock,
      holder,
      formerHolders,
      name: "holds",
      interval: INTERVAL,
      pausePerStep: PAUSE_PER_STEP,
      pass: () => this.#pass(),
      // What another node did meanwhile is not known.
      onLost: () => {
        this.#fullAt = 0;
      },
      onFailed: events.holdSweepFailed,
    });
  }

  /** Gives the lease back. */
  stop(): Promise<void> {
    return this.#work.stop();
  }

  async #pass(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const failed = [...this.#failed.values()];
    this.#failed.clear();
    if (now >= this.#fullAt) {
      this.#place = START;
      this.#fullAt = now + FULL_INTERVAL;
    } else if (failed.length > 0) {
      await this.#work.steps(async () => {
        await this.#expireAll(failed.splice(0, STEP));
        return failed.length > 0;
      });
    }
    await this.#work.steps(() => this.#step());
  }

  /** Whether there may be another step. */
  async #step(): Promise<boolean> {
    const { store, clock } = this.#options;
    const search = { after: this.#place, now: clock.now() as Instant, limit: STEP };
    const { holds, end, at } = await store.read("findExpiredHolds", search);
    await this.#expireAll(holds.filter(({ id }) => !this.#failed.has(id)));
    this.#place = end ?? { expiresAt: at - OVERLAP, id: "" };
    return end !== null;
  }

  async #expireAll(holds: readonly OpenHold[]): Promise<void> {
    await Promise.all(holds.map((hold) => this.#expire(hold)));
  }

  /** Lets a hold expire. One that was extended meanwhile stays open, and is found again by its new time. */
  async #expire(hold: OpenHold): Promise<void> {
    const { ledger, events, clock } = this.#options;
    const { id: holdId, workspace_id: workspaceId } = hold;
    try {
      await ledger.change({ workspaceId, holdId, balances: heldBalanceIds(hold.balances), action: { kind: "expire" } });
    } catch (error) {
      if (this.#failed.size < FAILED_MAX) this.#failed.set(holdId, hold);
      else this.#fullAt = Math.min(this.#fullAt, clock.monotonic() + FULL_AFTER_FAILURES);
      if (!isOutage(error)) events.holdSweepFailed(error);
    }
  }
}

/** Whether the next pass can succeed where this one failed. A batch that was rolled back may have met a fault. */
function isOutage(error: unknown): boolean {
  return isOverloaded(error) || (error instanceof StoreUnavailable && !(error instanceof LedgerFailed));
}
