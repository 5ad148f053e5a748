/**
 * What holders can do with derived keys: no sequence of changes gives one anything that its parent lacks at that moment.
 *
 * Changes of the key at the top, of roles, of plans and of derived keys follow one another by a seed. After each, derived keys
 * are verified with permissions and addresses, and compared with the key at the top and with a model of what they narrow
 * down. What they spend, and what they count, the key at the top must have spent and counted too.
 */
import assert from "node:assert/strict";
import { it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { compilePermissions, holds } from "../../../engine/src/rules/permissions.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const HOUR = 3_600_000;
const SEEDS = [1, 2, 3];
const CHANGES = 25;

const slugs = ["a.read", "a.write", "b.read", "b.own.read", "c"] as const;
const grants = ["a.read", "a.write", "a.*", "b.*", "b.own.*", "c", "*"] as const;
const addresses = ["192.0.2.1", "198.51.100.1"] as const;
const networks = ["192.0.2.0/24", "198.51.100.0/24"] as const;

interface Node {
  keyId: string;
  key: string;
  parent: Node | undefined;
  permissions?: string[];
  allowedIps?: string[];
  expires: number;
  ended: boolean;
}

interface Answer {
  ratelimits?: { name: string; limit: number; remaining: number }[];
}

/** A key, and everything that is derived of it. */
class Family {
  readonly #server: TestServer;
  readonly #pick: (count: number) => number;
  readonly #apiId: string;
  /** The name of a role, of the identity, and the start of the names of plans. */
  readonly #name: string;
  readonly #plans: readonly string[];
  readonly top: Node;
  readonly derived: Node[] = [];
  compared = 0;
  /** Verifications with limits and credits that were compared. */
  charged = 0;

  constructor(server: TestServer, apiId: string, name: string, top: Node, pick: (count: number) => number) {
    this.#server = server;
    this.#apiId = apiId;
    this.#name = name;
    this.#plans = [0, 1].map((i) => `${name}-${i}`);
    this.top = top;
    this.#pick = pick;
  }

  #one<T>(of: readonly T[]): T {
    return of[this.#pick(of.length)]!;
  }

  #some<T>(of: readonly T[]): T[] {
    return of.filter(() => this.#pick(2) === 0);
  }

  async open(): Promise<this> {
    for (const name of this.#plans) await this.#server.ok("plans.createPlan", { name });
    return this;
  }

  /** A limit that no test uses up. */
  #limit(name: string) {
    return { name, limit: 1_000_000 + this.#pick(1_000), duration: 60_000, autoApply: true };
  }

  #changePlan(): Promise<unknown> {
    const ratelimits = this.#some(["requests", "exports"]).map((name) => this.#limit(name));
    const permissions = this.#some(grants);
    return this.#server.ok("plans.updatePlan", { plan: this.#one(this.#plans), permissions, ratelimits });
  }

  async change(): Promise<void> {
    const { keyId } = this.top;
    const update = (fields: object) => this.#server.ok("keys.updateKey", { keyId, ...fields });
    const now = this.#server.clock.now();
    // Otherwise the key at the top is invalid most of the time.
    if (this.#pick(3) === 0) {
      await update({ enabled: true, expires: null, allowedIps: null });
      await this.#server.ok("apis.updateApi", { apiId: this.#apiId, allowedIps: null });
    }
    const changes: (() => Promise<unknown>)[] = [
      () => this.#derive(),
      () => this.#derive(),
      () => this.#derive(),
      () => this.#server.ok("keys.setPermissions", { keyId, permissions: this.#some(grants) }),
      () => this.#server.ok("keys.setPermissions", { keyId, permissions: this.#some(grants) }),
      () => this.#server.ok("keys.setRoles", { keyId, roles: this.#some([this.#name]) }),
      () => this.#server.ok("permissions.setRolePermissions", { role: this.#name, permissions: this.#some(slugs) }),
      () => this.#changePlan(),
      () => this.#changePlan(),
      () => update({ plan: this.#one([null, ...this.#plans]) }),
      () => update({ plan: this.#one(this.#plans) }),
      () => {
        const plan = this.#one([null, ...this.#plans]);
        return this.#server.ok("identities.updateIdentity", { identity: this.#name, plan });
      },
      () => update({ ratelimits: this.#some(["requests"]).map((name) => this.#limit(name)) }),
      () => update({ enabled: this.#pick(3) > 0 }),
      () => update({ expires: this.#one([null, now + 1, now + HOUR]) }),
      () => update({ allowedIps: this.#one([null, [this.#one(networks)], [...networks]]) }),
      () => update({ meta: { mark: this.#pick(1_000) }, name: `name ${this.#pick(1_000)}` }),
      () => this.#server.ok("apis.updateApi", { apiId: this.#apiId, allowedIps: this.#one([null, [networks[0]]]) }),
      () => this.#server.pass(this.#one([1, 2, 400])),
      () => this.#end(),
      async () => {
        await this.#server.ok("keys.deleteKey", { keyId });
        await this.compare();
        await this.#server.ok("keys.restoreKey", { keyId });
      },
    ];
    await this.#one(changes)();
  }

  async #derive(): Promise<void> {
    const parent = this.#one([this.top, ...this.derived]);
    const permissions = this.#pick(3) === 0 ? undefined : this.#some(grants);
    const allowedIps = this.#pick(3) > 0 ? undefined : [this.#one(networks)];
    const body = { keyId: parent.keyId, ttl: 60_000 * (1 + this.#pick(3)), permissions, allowedIps };
    const { status, body: answer } = await this.#server.call("keys.deriveKey", body);
    if (status !== 200) return;
    const { keyId, key } = answer.data;
    const expires = this.#server.clock.now() + body.ttl;
    const more = { ...(permissions && { permissions }), ...(allowedIps && { allowedIps }) };
    this.derived.push({ keyId, key, parent, expires, ended: false, ...more });
  }

  async #end(): Promise<void> {
    if (this.derived.length === 0) return;
    const node = this.#one(this.derived);
    const { status } = await this.#server.call("keys.deleteKey", { keyId: node.keyId });
    if (status === 200) node.ended = true;
  }

  /** Compares every derived key with the key at the top, as that is verified at this moment. */
  async compare(): Promise<void> {
    const now = this.#server.clock.now();
    for (const node of this.derived.slice(-6)) {
      for (const clientIp of addresses) {
        for (const permissions of slugs) {
          const asked = { permissions, clientIp, credits: { cost: 0 } };
          const ofTop = await this.#server.verify(this.top.key, asked);
          const answer = await this.#server.verify(node.key, asked);
          const levels: Node[] = [];
          for (let one: Node | undefined = node; one?.parent; one = one.parent) levels.push(one);
          const isWithin = levels.every(
            (level) =>
              !level.ended &&
              now < level.expires &&
              (!level.permissions || holds(compilePermissions(level.permissions), permissions)) &&
              (!level.allowedIps || level.allowedIps.some((network) => network.slice(0, 7) === clientIp.slice(0, 7))),
          );
          this.compared++;
          assert.equal(answer.valid, ofTop.valid && isWithin, `${node.keyId} with ${permissions} from ${clientIp}`);
          if (answer.code === "NOT_FOUND") continue;
          assert.deepEqual([answer.meta, answer.name, answer.identity], [ofTop.meta, ofTop.name, ofTop.identity]);
          const has = compilePermissions(ofTop.permissions ?? []);
          for (const slug of answer.permissions ?? []) assert(holds(has, slug), `${slug} is not of the key at the top`);
          assert.equal(answer.plan, ofTop.plan);
          if (answer.valid) this.#compareCounts(ofTop, answer);
        }
      }
      await this.#compareSpending(node);
    }
  }

  /** Between the two verifications no time passes, so each limit of the first one has counted the second one. */
  #compareCounts(ofTop: Answer, answer: Answer): void {
    const left = ({ ratelimits = [] }: Answer, counted: number) =>
      ratelimits.map(({ name, limit, remaining }) => [name, limit, remaining - counted]);
    assert.deepEqual(left(answer, 0), left(ofTop, 1));
    this.charged++;
  }

  async #compareSpending({ key, keyId }: Node): Promise<void> {
    const left = async () =>
      (await this.#server.ok("keys.getKey", { keyId: this.top.keyId, deleted: true })).credits.remaining;
    const before = await left();
    const { valid } = await this.#server.verify(key, { clientIp: addresses[0], credits: { cost: 2 } });
    assert.equal(await left(), before - (valid ? 2 : 0), `${keyId} spends what the key at the top has`);
  }
}

describeOnStores("derived keys under changes by a seed", (server) => {
  for (const seed of SEEDS) {
    it(`never have what their parents lack (rule 109, seed ${seed})`, async () => {
      const random = seededRandom(seed);
      const apiId = await server.createApi();
      const name = `seeded${seed}`;
      await server.createRole(name);
      const made = await server.createKey(apiId, {
        permissions: ["a.*"],
        externalId: name,
        credits: { remaining: 100_000 },
      });
      const top: Node = { ...made, parent: undefined, expires: Number.POSITIVE_INFINITY, ended: false };
      const family = await new Family(server, apiId, name, top, (count) => random.below(count)).open();
      for (let i = 0; i < CHANGES; i++) {
        await family.change();
        await family.compare();
      }
      assert(family.compared > 100, `${family.compared} comparisons say little`);
      assert(family.charged >= 10, `${family.charged} comparisons of counts say little`);
    });
  }
});

describeOnStores("a holder", (server, store) => {
  it("spends no more with many derived keys than with the key itself", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "open", ownKeyDerivation: true });
    const limit = { name: "requests", limit: 7, duration: 60_000, autoApply: true };
    const { key, keyId } = await server.createKey(apiId, { credits: { remaining: 5 }, ratelimits: [limit] });
    const strings = [key];
    for (let i = 0; i < 6; i++) {
      const from = strings[Math.floor(i / 3)]!;
      const body = {
        key: from,
        ttl: HOUR,
        credits: { max: 1_000 },
        ratelimits: [{ name: "requests", limit: 1_000, duration: 1_000 }],
      };
      strings.push((await server.ok("keys.deriveOwnKey", body, { as: null })).key);
    }
    const codes = await Promise.all([...strings, ...strings].map(async (one) => (await server.verify(one)).code));
    assert.equal(codes.filter((code) => code === "VALID").length, 5);
    assert.equal((await server.getKey(keyId)).credits.remaining, 0);
  });

  it("derives only so many, however it derives", async (t) => {
    const bounded = await openTestServer({
      store,
      settings: { DERIVED_KEYS_PER_KEY: "4", DERIVED_KEYS_PER_MINUTE: "20" },
    });
    t.after(() => bounded.close());
    const { apiId } = await bounded.ok("apis.createApi", { name: "open", ownKeyDerivation: true });
    const { key } = await bounded.createKey(apiId, { externalId: "owner" });
    const strings = [key];
    const problems: (string | undefined)[] = [];
    for (let i = 0; i < 40; i++) {
      const reply = await bounded.call(
        "keys.deriveOwnKey",
        { key: strings[i % strings.length], ttl: HOUR },
        { as: null },
      );
      problems.push(reply.problem);
      if (reply.status === 200) strings.push(reply.body.data.key);
    }
    assert.equal(strings.length, 5);
    assert(problems.includes("precondition_failed"));
    // The database is no longer asked once the rate is used up.
    assert.equal(problems.at(-1), "workspace_rate_limited");
    // Another owner is not concerned.
    const other = await bounded.createKey(apiId, { externalId: "other" });
    await bounded.ok("keys.deriveOwnKey", { key: other.key, ttl: HOUR }, { as: null });
  });

  it("keeps nothing of a key that is revoked while keys are derived from it", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "open", ownKeyDerivation: true });
    for (let round = 0; round < 5; round++) {
      const { key, keyId } = await server.createKey(apiId);
      const first = await server.ok("keys.deriveOwnKey", { key, ttl: HOUR }, { as: null });
      const revoked = round % 2 === 0 ? keyId : first.keyId;
      const derived = Array.from({ length: 6 }, (_, i) =>
        server.call("keys.deriveOwnKey", { key: i % 2 === 0 ? first.key : key, ttl: HOUR }, { as: null }),
      );
      const [replies] = await Promise.all([Promise.all(derived), server.ok("keys.deleteKey", { keyId: revoked })]);
      for (const [i, { status, body }] of replies.entries()) {
        if (status !== 200) continue;
        const { code } = await server.verify(body.data.key);
        const isBelow = revoked === keyId || i % 2 === 0;
        assert.equal(code, isBelow ? "NOT_FOUND" : "VALID", `round ${round}, call ${i}`);
      }
    }
  });

  it("finds no key by strings that look like those of derived keys", async () => {
    const { apiId } = await server.ok("apis.createApi", { name: "open", ownKeyDerivation: true });
    const { key } = await server.createKey(apiId);
    const child = await server.ok("keys.deriveOwnKey", { key, ttl: HOUR }, { as: null });
    for (const string of [`${child.key}1`, child.key.slice(0, -1), child.key.slice(1), child.key.toLowerCase()]) {
      assert.equal((await server.verify(string)).code, "NOT_FOUND");
      await server.rejected("keys.deriveOwnKey", { key: string, ttl: HOUR }, "key_not_found", { as: null });
    }
    for (const body of [
      { ttl: 59_999 },
      { ttl: 2_592_000_001 },
      { meta: { text: "x".repeat(5_000) } },
      { credits: { max: -1 } },
    ]) {
      await server.rejected("keys.deriveOwnKey", { key, ttl: HOUR, ...body }, "invalid_input", { as: null });
    }
  });
});
