import { isDeepStrictEqual } from "node:util";
import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { LEASE_LENGTH, type Lease, type LeaseOfOther, type leaseProcedures } from "./lease.ts";
import type { Store } from "./store.ts";

/** Interval between two attempts to take a lease, and the age at which it is renewed. */
const INTERVAL: Milliseconds = 10_000;

export interface HeldLeaseOptions {
  store: Pick<Store<typeof leaseProcedures>, "transact" | "isEmbedded">;
  clock: Clock;
  name: Lease["name"];
  /** The name of this process. */
  holder: string;
  /** Names of earlier processes on this data folder. All of them have ended. */
  formerHolders: readonly string[];
}

/**
 * A lease of this process, for work that one node does at a time. Each transaction of that work renews it, so those of a
 * former holder change nothing. The only process that has an embedded database keeps its leases until it ends.
 */
export class HeldLease {
  readonly #options: HeldLeaseOptions;
  #lease: Lease | undefined;
  #until: Milliseconds = 0;
  #askedAt: Milliseconds = Number.NEGATIVE_INFINITY;
  #isReleased = false;
  /** What another process has, and the monotonic time since when it has not renewed it. */
  #other: { readonly lease: LeaseOfOther; readonly since: Milliseconds } | undefined;

  constructor(options: HeldLeaseOptions) {
    this.#options = options;
  }

  /** The lease, as far as this process knows. */
  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** The monotonic time until which this process has the lease at least. */
  get until(): Milliseconds {
    return this.#until;
  }

  /**
   * Renews the lease, or asks for it, at most once in 10 seconds. Undefined while another process has it.
   *
   * @throws {LeaseLost} when another process has taken the lease.
   * @throws {StoreUnavailable}
   */
  async take(): Promise<Lease | undefined> {
    const { store, clock, name, holder, formerHolders } = this.#options;
    const startedAt = clock.monotonic();
    if (startedAt - this.#askedAt < INTERVAL) return this.#lease;
    this.#askedAt = startedAt;
    const now = clock.now();
    if (this.#lease === undefined) {
      const abandoned = this.#abandoned(startedAt);
      const found = await store.transact("takeLease", { name, holder, formerHolders, abandoned, now });
      const lease = found !== undefined && "holder" in found ? found : undefined;
      this.#see(found !== undefined && "expiresAt" in found ? found : undefined);
      if (this.#isReleased) {
        if (lease !== undefined) await store.transact("releaseLease", lease);
        return undefined;
      }
      this.#lease = lease;
    } else if (!store.isEmbedded) await store.transact("renewLease", { lease: this.#lease, now });
    this.#until = store.isEmbedded ? Number.POSITIVE_INFINITY : startedAt + LEASE_LENGTH;
    return this.#lease;
  }

  #see(lease: LeaseOfOther | undefined): void {
    if (lease === undefined) this.#other = undefined;
    else if (!isDeepStrictEqual(lease, this.#other?.lease))
      this.#other = { lease, since: this.#options.clock.monotonic() };
  }

  /**
   * What another process has not renewed for as long as a lease lasts. It has ended, although the lease may expire hours later: the
   * clock was set back since.
   */
  #abandoned(now: Milliseconds): LeaseOfOther | undefined {
    return this.#other !== undefined && now - this.#other.since > LEASE_LENGTH ? this.#other.lease : undefined;
  }

  /** Another process has taken the lease. */
  lose(): void {
    this.#lease = undefined;
  }

  /** Lets another process take the lease at once, for good. Without the database it expires. */
  async release(): Promise<void> {
    this.#isReleased = true;
    if (this.#lease !== undefined) await this.#options.store.transact("releaseLease", this.#lease).catch(() => {});
  }
}
