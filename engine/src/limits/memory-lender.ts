import type { Clock, Milliseconds } from "../clock/clock.ts";
import type { Charge, Counters, LimitDecision, Receipt, ReceiptCharge } from "./counters.ts";
import type { KeptReceipt, Lender, LentCharge } from "./lender.ts";

/** Receipts in memory: of one owner, and of all. Each takes about 650 bytes. */
const RECEIPTS_MAX = { perOwner: 20_000, all: 100_000 };

export interface MemoryLenderOptions {
  /** Counters in the memory of this process, which give receipts. */
  readonly counters: Counters;
  readonly clock: Pick<Clock, "monotonic">;
  /** Resolves when everything that was counted before is where the next process finds it. */
  flush(): Promise<void>;
  readonly receiptsMax?: typeof RECEIPTS_MAX;
}

/** A receipt without what its name says: the counters. */
interface Kept {
  readonly charges: readonly Pick<ReceiptCharge, "cost" | "epoch" | "window">[];
  readonly until: Milliseconds;
}

/**
 * Lends from counters in memory. The counts are in their journal, the receipts only here: what was lent before a restart
 * stays counted until its windows end, as does what is lent beyond the bounds, of which the oldest receipts are dropped.
 */
export class MemoryLender implements Lender {
  readonly #options: MemoryLenderOptions;
  readonly #max: typeof RECEIPTS_MAX;
  /** By owner and by name, the oldest first. */
  readonly #kept = new Map<string, Map<string, Kept>>();
  #count = 0;

  constructor(options: MemoryLenderOptions) {
    this.#options = options;
    this.#max = options.receiptsMax ?? RECEIPTS_MAX;
  }

  /** The receipts in memory. */
  get receipts(): number {
    return this.#count;
  }

  async lend(charges: readonly Charge[], receipt: KeptReceipt): Promise<LimitDecision | undefined> {
    const { counters, flush } = this.#options;
    const result = await counters.charge(charges, true);
    if (result.outcome !== "decided") return undefined;
    const { receipt: charged, ...decision } = result;
    if (!decision.allowed) return decision;
    if (charged === undefined) throw new Error("Counters without receipts cannot lend");
    try {
      await flush();
    } catch {
      await counters.adjust(
        charged,
        charged.charges.map(() => 0),
      );
      return undefined;
    }
    this.#keep(ownerOf(charges), receipt, charged);
    return decision;
  }

  async settle(
    name: string,
    charges: readonly LentCharge[],
    costs: readonly number[],
  ): Promise<readonly boolean[] | undefined> {
    const ofOwner = this.#kept.get(ownerOf(charges));
    const kept = ofOwner?.get(name);
    if (ofOwner === undefined || kept === undefined) return undefined;
    this.#drop(ownerOf(charges), ofOwner, name);
    if (kept.until <= this.#options.clock.monotonic()) return undefined;
    const receipt = {
      charges: charges.flatMap((charge, i) => (kept.charges[i] ? { ...charge, ...kept.charges[i] } : [])),
    };
    const lower = receipt.charges.map(({ cost }, i) => Math.min(cost, costs[i] ?? cost));
    return this.#options.counters.adjust(receipt, lower);
  }

  #keep(owner: string, { name, life }: KeptReceipt, receipt: Receipt): void {
    const now = this.#options.clock.monotonic();
    const before = this.#kept.get(owner);
    if (before !== undefined) {
      for (const [oldest, { until }] of before) {
        if (until > now && before.size < this.#max.perOwner) break;
        this.#drop(owner, before, oldest);
      }
    }
    if (this.#count >= this.#max.all) this.#makeRoom();
    const ofOwner = this.#kept.get(owner) ?? new Map<string, Kept>();
    this.#kept.set(owner, ofOwner);
    const charges = receipt.charges.map(({ cost, epoch, window = 0 }) => ({ cost, epoch, window }));
    ofOwner.set(name, { charges, until: now + life });
    this.#count++;
  }

  /** Drops the oldest receipt of the owner with the most. */
  #makeRoom(): void {
    let largest: [owner: string, receipts: Map<string, Kept>] | undefined;
    for (const one of this.#kept) if (one[1].size > (largest?.[1].size ?? 0)) largest = one;
    if (largest === undefined) return;
    const [owner, receipts] = largest;
    for (const oldest of receipts.keys()) {
      this.#drop(owner, receipts, oldest);
      break;
    }
  }

  #drop(owner: string, receipts: Map<string, Kept>, name: string): void {
    receipts.delete(name);
    this.#count--;
    if (receipts.size === 0) this.#kept.delete(owner);
  }
}

function ownerOf(charges: readonly LentCharge[]): string {
  return charges[0]?.owner ?? "";
}
