import { randomUUID } from "node:crypto";
import { type Latchkey, LatchkeyError, type Secret } from "@latchkey/sdk";
import { free, type Pack, type Plan, pro, refillOf } from "./plans.ts";

/** Keys of one customer that work at the same time, because an old one stays valid for a day after a rotation. */
const KEYS_MAX = 5;
const DAYS_SHOWN = 14;
const DAY_MS = 86_400_000;

/** A customer with the keys that work, the newest first. */
export interface Customer {
  readonly id: string;
  readonly name: string;
  readonly plan: Plan;
  readonly credits: number;
  readonly keys: readonly CustomerKey[];
}

export interface CustomerKey {
  readonly keyId: string;
  /** The readable beginning of the key string. */
  readonly start: string;
  /** Unix time in milliseconds; undefined: it does not expire. */
  readonly expires: number | undefined;
}

/** One day, in UTC. */
export interface DayOfUsage {
  /** Unix time in milliseconds. */
  readonly time: number;
  readonly credits: number;
  readonly accepted: number;
  readonly rejected: number;
}

/** A new key. Its string is shown to the customer once, and stored nowhere. */
export interface IssuedKey {
  readonly key: Secret;
}

/**
 * The customers of this business. All data about one is in Latchkey: the keys whose `externalId` is the id of the
 * customer. Every function takes that id from the session, so no customer reaches the keys of another.
 */
export class Customers {
  readonly #latchkey: Latchkey;
  readonly #apiId: string;

  constructor(latchkey: Latchkey, apiId: string) {
    this.#latchkey = latchkey;
    this.#apiId = apiId;
  }

  /** Creates a customer with a key of the free plan. */
  async signUp(name: string): Promise<IssuedKey & { id: string }> {
    const id = `customer_${randomUUID()}`;
    const { data } = await this.#latchkey.keys.createKey({
      apiId: this.#apiId,
      externalId: id,
      name,
      plan: free.name,
      credits: { remaining: free.credits, refill: refillOf(free) },
    });
    return { id, key: data.key };
  }

  /** The id of the customer to whom a key belongs; undefined if the key does not work. */
  async ownerOf(key: string): Promise<string | undefined> {
    // A cost of 0 checks without charging.
    const { data } = await this.#latchkey.keys.verifyKey({
      key,
      keyspaces: [this.#apiId],
      credits: { cost: 0 },
      ratelimits: [{ name: "requests", cost: 0 }],
    });
    return data.valid ? data.identity?.externalId : undefined;
  }

  /** Undefined if the customer has no key that works. */
  async find(id: string): Promise<Customer | undefined> {
    const { data: keys } = await this.#latchkey.apis.listKeys({
      apiId: this.#apiId,
      externalId: id,
      state: "active",
      order: "desc",
    });
    const [newest] = keys;
    if (!newest) return undefined;
    return {
      id,
      name: newest.name ?? id,
      plan: newest.plan === pro.name ? pro : free,
      credits: newest.credits?.remaining ?? 0,
      keys: keys.map(({ keyId, start, expires }) => ({ keyId, start, expires })),
    };
  }

  /** The last days, the oldest first. */
  async usage({ id }: Customer): Promise<DayOfUsage[]> {
    const now = Date.now();
    const { data } = await this.#latchkey.analytics.getIdentityStats({
      identity: id,
      start: now - (DAYS_SHOWN - 1) * DAY_MS,
      end: now,
      granularity: "day",
    });
    return data.series.map(({ time, total, valid, creditsSpent }) => ({
      time,
      credits: creditsSpent,
      accepted: valid,
      rejected: total - valid,
    }));
  }

  /**
   * Replaces a key. The old one stays valid for `overlapMs`; 0: it ends at once.
   *
   * @returns undefined if it is not the newest key of the customer, or if the customer has too many keys that work.
   */
  async rotate(customer: Customer, keyId: string, overlapMs: number): Promise<IssuedKey | undefined> {
    if (customer.keys[0]?.keyId !== keyId || (overlapMs > 0 && customer.keys.length >= KEYS_MAX)) return undefined;
    const { data } = await this.#latchkey.keys.rerollKey({ keyId, expiration: overlapMs });
    return { key: data.key };
  }

  /** Ends an older key before its time. Returns whether it is one of the customer. */
  async endKey(customer: Customer, keyId: string): Promise<boolean> {
    if (!customer.keys.slice(1).some((key) => key.keyId === keyId)) return false;
    await this.#latchkey.keys.updateKey({ keyId, enabled: false });
    return true;
  }

  /** Adds what was paid. A payment that arrives twice adds its credits once. */
  async addCredits(customer: Customer, paymentId: string, { credits }: Pack): Promise<void> {
    await this.#increment(customer, credits, `${customer.id}.${paymentId}`);
  }

  /** Moves the keys of a customer to the pro plan, and adds what it has more than the free one. Repeating it is safe. */
  async upgrade(customer: Customer): Promise<void> {
    if (customer.plan === pro) return;
    await this.#increment(customer, pro.credits - free.credits, `${customer.id}.${pro.name}`);
    // Keys that replaced one another share their plan and their balance, so one call is enough.
    const { keyId } = customer.keys[0]!;
    await this.#latchkey.keys.updateKey({ keyId, plan: pro.name, credits: { refill: refillOf(pro) } });
  }

  async #increment({ keys }: Customer, value: number, idempotencyKey: string): Promise<void> {
    try {
      // The keys of a customer share one balance.
      await this.#latchkey.keys.updateCredits(
        { keyId: keys[0]!.keyId, operation: "increment", value },
        { idempotencyKey },
      );
    } catch (error) {
      // The same payment has been added by way of a key that was rotated since.
      if (error instanceof LatchkeyError && error.type === "application/idempotency_mismatch") return;
      throw error;
    }
  }
}
