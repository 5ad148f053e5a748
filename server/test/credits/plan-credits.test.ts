/** Credits and budgets that plans give: random changes mint nothing, and the audit log says where each credit came from. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { instantAt } from "../../../engine/src/clock/clock.ts";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { type PlanCredits, refillOfPlan } from "../../../engine/src/rules/plan-credits.ts";
import { nextDue } from "../../../engine/src/rules/refill.ts";
import { describeOnStores, type TestServer } from "../harness.ts";

const seed = Number(process.env.SEED ?? 54);
const STEPS = 120;
const HOUR = 3_600_000;

interface Grant {
  cause: "granted" | "reset" | "kept" | "moved" | "refill";
  plan: string;
  version: number;
  before: number | null;
  remaining: number;
  /** When it counts from. */
  at: number;
}

/** An entry of the audit log. */
interface Entry {
  id: string;
  action: string;
  occurredAt: number;
  meta: Omit<Grant, "at"> & { granted?: Omit<Grant, "at">; dueAt: number };
}

/** Keys with plans that have credits, or identities with plans that have a budget. */
type Kind = "credits" | "budget";

interface Pool {
  keyId: string;
  key: string;
  spent: number;
  plan: string | null;
  /** The owner of the key: it has the plan if plans have a budget. */
  externalId: string;
  /** What entries of the audit log name. */
  targets: string[];
  /** Whether a budget of its own has the place of that of the plan. */
  hasOwn: boolean;
}

class Books {
  readonly #server: TestServer;
  readonly #random: Random;
  readonly #kind: Kind;
  #ownBudget = "";
  readonly plans: string[] = [];
  readonly pools: Pool[] = [];
  /** The credits of each version of each plan. */
  readonly #versions = new Map<string, (PlanCredits | null)[]>();
  compared = 0;
  grants = 0;

  constructor(server: TestServer, random: Random, kind: Kind) {
    this.#server = server;
    this.#kind = kind;
    this.#random = random;
  }

  async open(): Promise<this> {
    for (let i = 0; i < 3; i++) {
      const name = `sold-${this.#kind}-${seed}-${i}`;
      const credits = this.#credits();
      await this.#server.ok("plans.createPlan", { name, [this.#kind]: credits });
      this.plans.push(name);
      this.#versions.set(name, [credits]);
    }
    const apiId = await this.#server.createApi();
    const own = await this.#server.ok("budgets.createBudget", { name: "own", remaining: 1_000_000 });
    this.#ownBudget = own.budgetId;
    for (let i = 0; i < 5; i++) {
      const plan = this.#any(this.plans);
      const externalId = `owner-${this.#kind}-${seed}-${i}`;
      const ofIdentity = this.#kind === "budget" ? { plan } : {};
      const { identityId } = await this.#server.ok("identities.createIdentity", { externalId, ...ofIdentity });
      const ofKey = this.#kind === "credits" ? { plan } : {};
      const { key, keyId } = await this.#server.createKey(apiId, { externalId, ...ofKey });
      const { budgets = [] } = await this.#server.verify(key, { credits: { cost: 0 } });
      const targets = this.#kind === "credits" ? [keyId] : [identityId, budgets[0].budgetId];
      this.pools.push({ key, keyId, externalId, targets, spent: 0, plan, hasOwn: false });
    }
    return this;
  }

  #change({ keyId, externalId }: Pool, body: object) {
    return this.#kind === "credits"
      ? this.#server.call("keys.updateKey", { keyId, ...body })
      : this.#server.call("identities.updateIdentity", { identity: externalId, ...body });
  }

  /** What is left of what plans gave. */
  async #left({ key }: Pool): Promise<number> {
    const { credits, budgets } = await this.#server.verify(key, { credits: { cost: 0 } });
    return this.#kind === "credits" ? credits : budgets[0].remaining;
  }

  async step(): Promise<void> {
    const pool = this.#any(this.pools);
    // Entries of one time have no order.
    this.#server.clock.step(1);
    switch (this.#random.below(8)) {
      case 0: {
        const plan = this.#any(this.plans);
        const credits = this.#credits();
        const versions = this.#versions.get(plan)!;
        if (JSON.stringify(versions.at(-1)) === JSON.stringify(credits)) return;
        await this.#server.ok("plans.updatePlan", { plan, [this.#kind]: credits });
        versions.push(credits);
        return;
      }
      case 1:
      case 2: {
        const plan = this.#any(this.plans);
        const balances = this.#random.below(2) === 0 ? "keep" : "reset";
        const reply = await this.#change(pool, { plan, balances });
        if (reply.status === 200) pool.plan = plan;
        else if (!pool.hasOwn) assert.match(reply.body.error.detail, /reset in this period already/);
        return;
      }
      case 3:
        if (this.#kind === "budget" && this.#random.below(2) === 0) {
          pool.hasOwn = !pool.hasOwn;
          await this.#change(pool, { budgetId: pool.hasOwn ? this.#ownBudget : null });
          return;
        }
        await this.#change(pool, { plan: null });
        pool.plan = null;
        return;
      case 4:
      case 5:
        // The wall clock alone, because a service that ran for so long without the database would refuse calls.
        this.#server.clock.step(this.#random.below(20) * (HOUR / 4));
        return;
      default: {
        if (pool.plan === null || pool.hasOwn) return;
        const cost = 1 + this.#random.below(60);
        const { valid } = await this.#server.verify(pool.key, { credits: { cost } });
        if (valid) pool.spent += cost;
      }
    }
  }

  /** What each pool has spent and has left is what the log says that plans gave it, and each period was given once. */
  async compare(): Promise<void> {
    for (const pool of this.pools) {
      const isGiven = pool.plan !== null && !pool.hasOwn;
      if (isGiven) await this.#left(pool);
      const grants = await this.#grantsOf(pool);
      let given = 0;
      let until = 0;
      let resetUntil = 0;
      for (const { cause, plan, version, before, remaining, at } of grants) {
        const credits = this.#versions.get(plan)![version - 1]!;
        const due = refillOfPlan(credits);
        const next = due ? nextDue(due, instantAt(at)) : Number.POSITIVE_INFINITY;
        given += remaining - (before ?? 0);
        if (cause === "granted" || cause === "refill") {
          assert(
            at >= until,
            `${pool.keyId} got a period at ${at} that it had until ${until}: ${JSON.stringify(grants)}`,
          );
          assert.equal(remaining, credits.amount);
          until = endOf(next, at);
        } else if (cause === "reset") {
          assert(at >= resetUntil, `${pool.keyId} was reset twice in a period`);
          assert.equal(remaining, credits.amount);
          resetUntil = Math.max(next, until);
          until = endOf(next, at);
        } else assert.equal(remaining, before, `${cause} changed the balance`);
        this.grants++;
      }
      if (isGiven) {
        const left = await this.#left(pool);
        assert.equal(pool.spent + left, given, `${pool.keyId} spent ${pool.spent} and has ${left} of ${given}`);
      }
      this.compared++;
    }
  }

  async #grantsOf({ targets }: Pool): Promise<Grant[]> {
    const entries = new Map<string, Entry>();
    for (const target of targets) {
      const found: Entry[] = await this.#server.ok("audit.listEvents", { target, limit: 100 });
      for (const entry of found.reverse()) entries.set(entry.id, entry);
    }
    const grants = [...entries.values()].flatMap(({ action, occurredAt, meta }): Grant[] => {
      const { granted, dueAt, plan, version, before, remaining, cause } = meta;
      const given = { plan, version, before, remaining };
      if (action.endsWith(".refill")) return [{ ...given, cause: "refill", at: dueAt }];
      if (action.endsWith(".grant")) return [{ ...given, cause, at: occurredAt }];
      return granted === undefined ? [] : [{ ...granted, at: occurredAt }];
    });
    // A refill that a change applies is logged with it, and was due before.
    return grants.toSorted((a, b) => a.at - b.at);
  }

  #credits(): PlanCredits {
    const amount = 50 + this.#random.below(100);
    const interval = (["hourly", "daily", "monthly"] as const)[this.#random.below(4)];
    return interval === undefined ? { amount } : { amount, refill: { interval } };
  }

  #any<T>(list: readonly T[]): T {
    return list[this.#random.below(list.length)]!;
  }
}

/** When a schedule may begin after what was given at a time: a plan without refills leaves it to the next one. */
function endOf(next: number, at: number): number {
  return next === Number.POSITIVE_INFINITY ? at : next;
}

describeOnStores("random changes of plans", (server) => {
  const rules = { credits: "rule 107", budget: "rule 135" };
  for (const kind of ["credits", "budget"] as const) {
    it(`with ${kind} mint none, ${STEPS} steps, seed ${seed} (${rules[kind]})`, async () => {
      const books = await new Books(server, seededRandom(seed), kind).open();
      for (let step = 0; step < STEPS; step++) {
        await books.step();
        if (step % 10 === 9) await books.compare();
      }
      assert(books.compared >= 50 && books.grants > 100, `${books.compared} comparisons, ${books.grants} grants`);
    });
  }
});
