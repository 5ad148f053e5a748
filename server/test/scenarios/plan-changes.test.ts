/** Random changes of plans, of who has them and of what owners have themselves: a model says what each key must have. */
import assert from "node:assert/strict";
import { it } from "node:test";
import type { Random } from "../../../engine/src/random/random.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { describeOnStores, type TestServer } from "../harness.ts";

const seed = Number(process.env.SEED ?? 53);
const STEPS = 150;
const MINUTE = 60_000;

const names = ["a", "b", "c"];
const slugs = ["one", "two", "three", "four"];

type Limits = Map<string, number>;

interface Owner {
  /** The index of its plan; null: none. */
  plan: number | null;
  limits: Limits;
}

interface Key extends Owner {
  /** The keys of its reroll chain share the plan. */
  chain: { plan: number | null };
  owner: Owner | null;
  permissions: Set<string>;
  keyId: string;
  key: string;
}

interface Plan {
  name: string;
  limits: Limits;
  permissions: Set<string>;
}

class Model {
  readonly plans: Plan[] = [];
  readonly owners: { externalId: string; owner: Owner }[] = [];
  readonly keys: Key[] = [];
  /** Comparisons of a key with the model. */
  compared = 0;
  readonly #server: TestServer;
  readonly #random: Random;

  constructor(server: TestServer, random: Random) {
    this.#server = server;
    this.#random = random;
  }

  async open(): Promise<this> {
    const apiId = await this.#server.createApi();
    for (let i = 0; i < 3; i++) {
      const name = `plan-${seed}-${i}`;
      await this.#server.ok("plans.createPlan", { name });
      this.plans.push({ name, limits: new Map(), permissions: new Set() });
    }
    for (let i = 0; i < 3; i++) {
      const externalId = `owner-${seed}-${i}`;
      await this.#server.ok("identities.createIdentity", { externalId });
      this.owners.push({ externalId, owner: { plan: null, limits: new Map() } });
    }
    for (let i = 0; i < 8; i++) {
      const of = i < 5 ? this.owners[i % 3]! : null;
      const created = await this.#server.createKey(apiId, of ? { externalId: of.externalId } : {});
      const own = { plan: null, limits: new Map(), permissions: new Set<string>() };
      this.keys.push({ ...created, ...own, chain: { plan: null }, owner: of?.owner ?? null });
    }
    return this;
  }

  async step(): Promise<void> {
    const server = this.#server;
    switch (this.#random.below(7)) {
      case 0:
      case 1: {
        const plan = this.#any(this.plans);
        const [limits, permissions] = [this.#limits(), this.#permissions()];
        const given = this.#random.below(3);
        await server.ok("plans.updatePlan", {
          plan: plan.name,
          ...(given !== 1 && { ratelimits: bodyOf(limits) }),
          ...(given !== 2 && { permissions: [...permissions] }),
        });
        if (given !== 1) plan.limits = limits;
        if (given !== 2) plan.permissions = permissions;
        return;
      }
      case 2: {
        const key = this.#any(this.keys);
        const plan = this.#plan();
        await server.ok("keys.updateKey", { keyId: key.keyId, plan: plan === null ? null : this.plans[plan]!.name });
        key.chain.plan = plan;
        return;
      }
      case 3: {
        const key = this.#any(this.keys);
        const [limits, permissions] = [this.#limits(), this.#permissions()];
        await server.ok("keys.updateKey", {
          keyId: key.keyId,
          ratelimits: bodyOf(limits),
          permissions: [...permissions],
        });
        key.limits = limits;
        key.permissions = permissions;
        return;
      }
      case 4: {
        const { externalId, owner } = this.#any(this.owners);
        const plan = this.#plan();
        await server.ok("identities.updateIdentity", {
          identity: externalId,
          plan: plan === null ? null : this.plans[plan]!.name,
        });
        owner.plan = plan;
        return;
      }
      case 5: {
        const { externalId, owner } = this.#any(this.owners);
        const limits = this.#limits();
        await server.ok("identities.updateIdentity", { identity: externalId, ratelimits: bodyOf(limits) });
        owner.limits = limits;
        return;
      }
      default: {
        if (this.keys.length >= 20) return;
        const key = this.#any(this.keys);
        const rerolled = await server.ok("keys.rerollKey", { keyId: key.keyId, expiration: null });
        this.keys.push({ ...key, ...rerolled, limits: new Map(key.limits), permissions: new Set(key.permissions) });
      }
    }
  }

  /** Each key has its own limits and those of its plan that it lacks, and so has its identity. */
  async compare(server: TestServer): Promise<void> {
    for (const key of this.keys) {
      const verified = await server.verify(key.key, { credits: { cost: 0 } });
      const plan = key.chain.plan === null ? undefined : this.plans[key.chain.plan];
      const ofOwner = key.owner && this.#effective(key.owner.limits, key.owner.plan);
      const expected = [...this.#effective(key.limits, key.chain.plan), ...(ofOwner ?? [])].sort();
      const shown = (verified.ratelimits ?? []).map(({ name, limit }: { name: string; limit: number }) => [
        name,
        limit,
      ]);
      assert.deepEqual(shown.sort(), expected, `limits of ${key.keyId}`);
      const permissions = [...new Set([...key.permissions, ...(plan?.permissions ?? [])])].sort();
      assert.deepEqual(verified.permissions ?? [], permissions, `permissions of ${key.keyId}`);
      assert.equal(verified.plan, plan?.name);
      this.compared++;
    }
  }

  #effective(own: Limits, plan: number | null): [string, number][] {
    return [...new Map([...(plan === null ? [] : this.plans[plan]!.limits), ...own])];
  }

  #any<T>(list: readonly T[]): T {
    return list[this.#random.below(list.length)]!;
  }

  #plan(): number | null {
    const plan = this.#random.below(this.plans.length + 1);
    return plan === this.plans.length ? null : plan;
  }

  #limits(): Limits {
    return new Map(
      names.filter(() => this.#random.below(2) === 0).map((name) => [name, 1_000 + this.#random.below(9_000)]),
    );
  }

  #permissions(): Set<string> {
    return new Set(slugs.filter(() => this.#random.below(2) === 0).sort());
  }
}

function bodyOf(limits: Limits) {
  return [...limits].map(([name, limit]) => ({ name, limit, duration: MINUTE, autoApply: true }));
}

describeOnStores("after random changes of plans", (server) => {
  it(`each key has its own before that of its plan, ${STEPS} steps, seed ${seed} (rules 102, 103)`, async () => {
    const model = await new Model(server, seededRandom(seed)).open();
    for (let step = 0; step < STEPS; step++) {
      await model.step();
      await model.compare(server);
    }
    assert(model.compared > 1_000, `${model.compared} comparisons`);
  });
});

describeOnStores("while a plan changes", (server) => {
  it("each call sees a change whole or not at all (rule 104)", async () => {
    const apiId = await server.createApi();
    // In every version the limit and the permission have the same number.
    const version = (n: number) => ({
      ratelimits: [{ name: "requests", limit: 1_000_000 + n, duration: MINUTE, autoApply: true }],
      permissions: [`version.${n}`],
    });
    await server.ok("plans.createPlan", { name: "whole", ...version(0) });
    const keys = await Promise.all(Array.from({ length: 10 }, () => server.createKey(apiId, { plan: "whole" })));
    let acknowledged = 0;
    let compared = 0;
    const calls: Promise<void>[] = [];
    for (let n = 1; n <= 20; n++) {
      const change = server.ok("plans.updatePlan", { plan: "whole", ...version(n) });
      for (const { key } of keys) {
        const before = acknowledged;
        calls.push(
          server.verify(key).then(({ permissions, ratelimits }) => {
            const [seen] = permissions.map((slug: string) => Number(slug.split(".")[1]));
            assert.deepEqual([permissions.length, ratelimits[0].limit], [1, 1_000_000 + seen]);
            assert(seen >= before, `a call that began after version ${before} saw version ${seen}`);
            compared++;
          }),
        );
      }
      await change;
      acknowledged = n;
    }
    await Promise.all(calls);
    assert.equal(compared, 200);
  });
});
