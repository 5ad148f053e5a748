/** Callers of edges who can say afterwards what each of their calls must have done. */
import { systemClock } from "../../../engine/src/clock/system.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import type { Client, Target } from "./client.ts";
import {
  admit,
  closeSpend,
  demand,
  ENDLESS_MS,
  type Journal,
  type JournalLimit,
  type JournalPool,
  newBalance,
  newLimit,
  recordSpend,
  sendSpend,
} from "./journal.ts";

/** Keys that one edge alone verifies, for each edge. */
const COUNTED = 3;
const INITIAL = 100_000;
/** Limits that are wide enough for an edge to get a part of them, and calls that are sent to them together. */
const LIMITS = {
  short: { limit: 120, duration: 5_000 },
  // Longer than a lease, so that what is returned can be used in the same window.
  long: { limit: 2_000, duration: 20_000 },
  endless: { limit: 1_500, duration: ENDLESS_MS },
} as const;
/** How many times an endless limit it is called before another one is. */
const OVERRUN = 1.3;
const CROWD = 12;
/**
 * How long clients call one edge, or the limit is busy at none. When they come back to it, its leases have ended and are
 * returned, if there are three edges.
 */
const PLACE_MS = 5_000;
/** How long they call one key. */
const KEY_MS = 6_000;

interface Places {
  /** The load balancer. */
  readonly target: Target;
  readonly edges: readonly Target[];
}

interface LimitedKey {
  key: string;
  limit: JournalLimit;
}

export class EdgeCallers {
  readonly #journal: Journal;
  readonly #places: Places;
  /** The balance of each client. */
  readonly #pools = new Map<Client, JournalPool>();
  readonly #limits = new Map<keyof typeof LIMITS, Promise<LimitedKey | undefined>>();
  /** Those with endless limits of which nothing is left, but for what edges may return later. */
  readonly #usedUp: LimitedKey[] = [];
  #apiId = "";

  constructor(journal: Journal, places: Places) {
    this.#journal = journal;
    this.#places = places;
  }

  async prepare(client: Client, apiId: string): Promise<void> {
    this.#apiId = apiId;
    for (const { edge } of this.#places.edges) {
      for (let i = 0; i < COUNTED; i++) {
        const { keyId, key } = (await client.settle(this.#places.target, "keys.createKey", { apiId })).data;
        this.#journal.edges.counted.push({ keyId, key, edge: edge!, answeredAt: [], open: 0 });
      }
    }
  }

  /** Verifies a key for which an edge needs nobody. */
  async verify(client: Client, random: Random): Promise<void> {
    const { counted } = this.#journal.edges;
    const one = counted[random.below(counted.length)]!;
    const answer = await client.once(this.#places.edges[one.edge]!, "keys.verifyKey", { key: one.key });
    const { status, node, data, answeredAt } = answer;
    if (status === 200 && data.code !== "VALID") this.#journal.denials.push(answer);
    else if (status === 200 && node === undefined) one.answeredAt.push(answeredAt);
    else if (status === 200 || status === 0) one.open++;
  }

  /** Spends from a balance of which nobody else knows. The one whose call has no known outcome is left alone. */
  async spend(client: Client, random: Random): Promise<void> {
    const { edges, target } = this.#places;
    const pool = this.#pools.get(client) ?? (await this.#newPool(client, target));
    if (pool === undefined) return;
    const cost = 1 + random.below(9);
    sendSpend(pool, cost);
    const place = edges[random.below(edges.length)]!;
    const { status, data } = await client.once(place, "keys.verifyKey", { key: pool.key, credits: { cost } });
    if (status !== 200) {
      this.#pools.delete(client);
      return;
    }
    closeSpend(pool, cost);
    if (data.code === "VALID") recordSpend(pool, cost, data.credits);
  }

  /**
   * Calls the key with the long limit so often that edges get parts of it, and until nothing is left. What an edge returns comes
   * back when its lease has ended: the calls that it admits then are the last ones of the window.
   */
  async crowdLong(client: Client): Promise<void> {
    await this.#crowd(client, await this.#limitedKey(client, "long"));
  }

  /** The same of keys with other limits, in turn. */
  async crowd(client: Client, random: Random): Promise<void> {
    const kind = (["short", "endless", "usedUp"] as const)[turnOf(KEY_MS) % 3]!;
    const one =
      kind === "usedUp" ? this.#usedUp[random.below(this.#usedUp.length)] : await this.#limitedKey(client, kind);
    await this.#crowd(client, one);
  }

  async #crowd(client: Client, one: LimitedKey | undefined): Promise<void> {
    if (one === undefined) return;
    const { edges } = this.#places;
    const place = edges[turnOf(PLACE_MS) % edges.length]!;
    const { key, limit } = one;
    const call = async () => {
      const answer = await client.once(place, "keys.verifyKey", { key });
      limit.calls++;
      if (answer.status !== 200) return;
      const { code, ratelimits = [] } = answer.data;
      const [state] = ratelimits;
      if (state === undefined) return;
      const counted = { ...answer, reset: state.reset };
      if (code === "VALID" || state.exceeded) demand(limit, 1, counted);
      if (code === "VALID") admit(limit, 1, counted);
    };
    await Promise.all(Array.from({ length: CROWD }, call));
  }

  /** The present key with such a limit. One client makes it for all. */
  async #limitedKey(client: Client, kind: keyof typeof LIMITS): Promise<LimitedKey | undefined> {
    const present = this.#limits.get(kind);
    const known = await present;
    const isUsedUp = known !== undefined && kind === "endless" && known.limit.calls > OVERRUN * known.limit.limit;
    if (known !== undefined && !isUsedUp) return known;
    if (this.#limits.get(kind) === present) {
      if (known !== undefined) this.#usedUp.push(known);
      this.#limits.set(kind, this.#newLimitedKey(client, kind));
    }
    return this.#limits.get(kind);
  }

  async #newLimitedKey(client: Client, kind: keyof typeof LIMITS): Promise<LimitedKey | undefined> {
    const { limit, duration } = LIMITS[kind];
    const ratelimits = [{ name: "crowd", limit, duration, autoApply: true }];
    const { status, data } = await client.settle(this.#places.target, "keys.createKey", {
      apiId: this.#apiId,
      ratelimits,
    });
    if (status !== 200) return undefined;
    const one = { key: data.key, limit: newLimit(`crowd of ${data.keyId}`, limit, duration) };
    this.#journal.limits.push(one.limit);
    return one;
  }

  async #newPool(client: Client, target: Target): Promise<JournalPool | undefined> {
    const body = { apiId: this.#apiId, credits: { remaining: INITIAL } };
    const { status, data } = await client.settle(target, "keys.createKey", body);
    if (status !== 200) return undefined;
    const pool = { ...newBalance(data.keyId, INITIAL, true), key: data.key, limit: undefined };
    this.#journal.edges.pools.push(pool);
    this.#pools.set(client, pool);
    return pool;
  }
}

/** The number of the present turn. */
function turnOf(ms: number): number {
  return Math.floor(systemClock.monotonic() / ms);
}
