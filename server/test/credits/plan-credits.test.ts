/** Credits that plans give: random changes mint nothing, and the audit log says where each credit came from. */
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

interface Pool {
  keyId: string;
  key: string;
  spent: number;
  plan: string | null;
}

class Books {
  readonly #server: TestServer;
  readonly #random: Random;
  readonly plans: string[] = [];
  readonly pools: Pool[] = [];
  /** The credits of each version of each plan. */
  readonly #versions = new Map<string, (PlanCredits | null)[]>();
  compared = 0;
  grants = 0;

  constructor(server: TestServer, random: Random) {
    this.#server = server;
    this.#random = random;
  }

  async open(): Promise<this> {
    for (let i = 0; i < 3; i++) {
      const name = `sold-${seed}-${i}`;
      const credits = this.#credits();
      await this.#server.ok("plans.createPlan", { name, credits });
      this.plans.push(name);
      this.#versions.set(name, [credits]);
    }
    const apiId = await this.#server.createApi();
    for (let i = 0; i < 5; i++) {
      const plan = this.#any(this.plans);
      this.pools.push({ ...(await this.#server.createKey(apiId, { plan })), spent: 0, plan });
    }
    return this;
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
        await this.#server.ok("plans.updatePlan", { plan, credits });
        versions.push(credits);
        return;
      }
      case 1:
      case 2: {
        const plan = this.#any(this.plans);
        const balances = this.#random.below(2) === 0 ? "keep" : "reset";
        const reply = await this.#server.call("keys.updateKey", { keyId: pool.keyId, plan, balances });
        if (reply.status === 200) pool.plan = plan;
        else assert.match(reply.body.error.detail, /reset in this period already/);
        return;
      }
      case 3:
        await this.#server.ok("keys.updateKey", { keyId: pool.keyId, plan: null });
        pool.plan = null;
        return;
      case 4:
      case 5:
        // The wall clock alone, because a service that ran for so long without the database would refuse calls.
        this.#server.clock.step(this.#random.below(20) * (HOUR / 4));
        return;
      default: {
        if (pool.plan === null) return;
        const cost = 1 + this.#random.below(60);
        const { valid } = await this.#server.verify(pool.key, { credits: { cost } });
        if (valid) pool.spent += cost;
      }
    }
  }

  /** What each pool has spent and has left is what the log says that plans gave it, and each period was given once. */
  async compare(): Promise<void> {
    for (const pool of this.pools) {
      if (pool.plan !== null) await this.#server.verify(pool.key, { credits: { cost: 0 } });
      const grants = await this.#grantsOf(pool.keyId);
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
      if (pool.plan !== null) {
        const { credits } = await this.#server.verify(pool.key, { credits: { cost: 0 } });
        assert.equal(pool.spent + credits, given, `${pool.keyId} spent ${pool.spent} and has ${credits} of ${given}`);
      }
      this.compared++;
    }
  }

  async #grantsOf(keyId: string): Promise<Grant[]> {
    const entries = await this.#server.ok("audit.listEvents", { target: keyId, limit: 100 });
    const grants: Grant[] = entries
      .reverse()
      .flatMap(({ action, occurredAt, meta }: { action: string; occurredAt: number; meta: never }) => {
        const { granted, dueAt, plan, version, before, remaining, cause } = meta as Record<string, never>;
        if (action === "credits.refill") return [{ cause: "refill", plan, version, before, remaining, at: dueAt }];
        if (action === "credits.grant") return [{ cause, plan, version, before, remaining, at: occurredAt }];
        return granted === undefined ? [] : [{ ...(granted as object), at: occurredAt }];
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

describeOnStores("random changes of plans with credits", (server) => {
  it(`mint none, ${STEPS} steps, seed ${seed} (rule 107)`, async () => {
    const books = await new Books(server, seededRandom(seed)).open();
    for (let step = 0; step < STEPS; step++) {
      await books.step();
      if (step % 10 === 9) await books.compare();
    }
    assert(books.compared >= 50 && books.grants > 100, `${books.compared} comparisons, ${books.grants} grants`);
  });
});
