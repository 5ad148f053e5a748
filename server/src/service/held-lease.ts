import type { Clock } from "../clock/clock.ts";
import type { Lease } from "../store/lease.ts";
import type { AppStore } from "./app-store.ts";

export interface HeldLeaseOptions {
  store: Pick<AppStore, "transact" | "dialect">;
  clock: Clock;
  name: Lease["name"];
  /** The name of this process. */
  holder: string;
}

/** A lease of this process, for work that one node does at a time. Each step of that work renews it in its transaction. */
export class HeldLease {
  readonly #options: HeldLeaseOptions;
  #lease: Lease | undefined;

  constructor(options: HeldLeaseOptions) {
    this.#options = options;
  }

  /** The lease, as far as this process knows. */
  get lease(): Lease | undefined {
    return this.#lease;
  }

  /** Renews the lease, or asks for it. Undefined while another process has it. */
  async take(onLost: () => void = () => {}): Promise<Lease | undefined> {
    const { store, clock, name, holder } = this.#options;
    if (this.#lease !== undefined && store.dialect === "postgres") {
      await store.transact("renewLease", { lease: this.#lease, now: clock.now() }).catch((error: Error) => {
        this.lose();
        onLost();
        if (error.name !== "LeaseLost") throw error;
      });
    }
    this.#lease ??= await store.transact("takeLease", { name, holder, now: clock.now() });
    return this.#lease;
  }

  /** Another process has taken the lease. */
  lose(): void {
    this.#lease = undefined;
  }

  /** Lets another process take the lease at once. Without the database it expires. */
  async release(): Promise<void> {
    if (this.#lease !== undefined) await this.#options.store.transact("releaseLease", this.#lease).catch(() => {});
  }
}
