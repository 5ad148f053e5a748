/** Callers that hold credits, and end their holds, race for the end, or die. */
import type { Random } from "../../../engine/src/random/random.ts";
import type { Client, Target } from "./client.ts";
import { SLOTS } from "./hold-books.ts";
import type { Journal } from "./journal.ts";

const INITIAL = 10_000_000;
/** Holds that a caller makes together: many if it dies, because each of them proves that one comes back. */
const CROWD = { dying: 30, living: 4 };
/** How long those of callers that die, and of others, last, in ms. */
const DYING_MS = [1_000, 3_000] as const;
const TTL_MS = 60_000;

interface Places {
  /** The load balancer. */
  readonly target: Target;
  readonly nodes: readonly Target[];
}

/** Keys below budgets that only holds charge. */
export class Holders {
  readonly #journal: Journal;
  readonly #places: Places;
  readonly #keys: string[] = [];

  constructor(journal: Journal, places: Places) {
    this.#journal = journal;
    this.#places = places;
  }

  /** Makes the budgets: two trees that share no root, one that runs out, and one that only counts. Some keys have slots. */
  async prepare(client: Client, apiId: string): Promise<void> {
    const node = this.#places.nodes[0]!;
    const budget = async (granted: number, more: object = {}): Promise<string> => {
      const body = { name: "holders", remaining: granted, ...more };
      const { budgetId: id } = (await client.settle(node, "budgets.createBudget", body)).data;
      this.#journal.holds.budgets.push({ id, granted, isDenying: !("onEmpty" in more) });
      return id;
    };
    const watched = await budget(0, { onEmpty: "allow" });
    const roots = [await budget(INITIAL), await budget(INITIAL), await budget(150, { parentId: watched })];
    for (const parentId of roots) {
      for (let i = 0; i < 2; i++) {
        const budgetId = await budget(INITIAL, { parentId });
        const concurrency = [{ name: "streams", limit: SLOTS }];
        const body = { apiId, budgetId, ...(i === 0 && { concurrency }) };
        const { data } = await client.settle(node, "keys.createKey", body);
        this.#keys.push(data.key);
      }
    }
    // Several first holds at once would not all be accepted.
    const body = { key: this.#keys[0], hold: { ttl: DYING_MS[0] } };
    this.#journal.holds.made.push((await client.settle(node, "keys.verifyKey", body)).data.hold.holdId);
  }

  /** Makes some holds together, and ends them or not. */
  async act(client: Client, random: Random): Promise<void> {
    const key = this.#keys[random.below(this.#keys.length)]!;
    const isDying = random.below(3) === 0;
    const length = isDying ? CROWD.dying : CROWD.living;
    await Promise.all(Array.from({ length }, () => this.#hold(client, random, { key, isDying })));
  }

  async #hold(client: Client, random: Random, { key, isDying }: { key: string; isDying: boolean }): Promise<void> {
    const { holds, denials } = this.#journal;
    const fate = random.below(10);
    const [from, to] = DYING_MS;
    const ttl = isDying ? from + random.below(to - from) : TTL_MS;
    const cost = 1 + random.below(9);
    const onExpiry = random.below(2) === 0 ? "charge" : "release";
    const body = { key, credits: { cost }, hold: { ttl, onExpiry } };
    const answer = await client.settle(this.#places.target, "keys.verifyKey", body);
    if (answer.status !== 200) return;
    if (answer.data.code === "NOT_FOUND") denials.push(answer);
    const holdId: string | undefined = answer.data.hold?.holdId;
    if (holdId === undefined) return;
    holds.made.push(holdId);
    if (isDying && fate > 0) return;
    // At the moment of its expiry, and of others at any time.
    await client.pause(0, isDying ? to : 300);
    if (fate < 4) await this.#end(client, holdId, "holds.extendHold", { ttl });
    const amount = () => random.below(cost + 3);
    const ends = [this.#end(client, holdId, "holds.settleHold", { credits: amount() })];
    // A caller that repeats itself, and one that changed its mind, at the same time.
    if (fate === 6) ends.push(this.#end(client, holdId, "holds.settleHold", { credits: amount() }));
    if (fate === 7) ends.push(this.#end(client, holdId, "holds.releaseHold", {}));
    await Promise.all(ends);
  }

  /** Changes a hold at any node until the outcome is clear, and writes down what it was told. */
  async #end(client: Client, holdId: string, operation: string, more: object): Promise<void> {
    const { target } = this.#places;
    const { status, data } = await client.settle(target, operation, { holdId, ...more }, { mayConflict: true });
    if (status !== 200 || operation === "holds.extendHold") return;
    this.#journal.holds.ends.push({ holdId, state: data.state, charged: data.charged });
  }
}
