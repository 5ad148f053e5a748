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
const LIMITS = { short: { limit: 120, duration: 5_000 }, endless: { limit: 400, duration: ENDLESS_MS } } as const;
const CROWD = 12;
const CROWD_MS = 2_000;

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
  readonly #limits = new Map<keyof typeof LIMITS, LimitedKey>();
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

  /** Calls a key with a limit so often that an edge gets a part of it, and further until nothing is left. */
  async crowd(client: Client, random: Random): Promise<void> {
    const { edges } = this.#places;
    const kind = random.below(2) === 0 ? "short" : "endless";
    const known = this.#limits.get(kind);
    const isUsedUp = known !== undefined && kind === "endless" && known.limit.calls > 2 * known.limit.limit;
    const one = known === undefined || isUsedUp ? await this.#newLimitedKey(client, kind) : known;
    if (one === undefined) return;
    const { key, limit } = one;
    // All go to one edge for a while, or the limit is busy at none.
    const place = edges[Math.floor(systemClock.monotonic() / CROWD_MS) % edges.length]!;
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
    this.#limits.set(kind, one);
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
