import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { askedLease, type GrantedLease, TestEdge } from "../edge.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";
import { sharedRedis } from "../services/redis.ts";

const DAY = 86_400_000;
const limit = { name: "requests", limit: 1_000, duration: DAY, autoApply: true };
const asked = (key: string, more: object = {}) => askedLease(key, limit, more);

/** What was used of the limit. */
async function used(server: TestServer, key: string): Promise<number> {
  const { ratelimits } = await server.ok("keys.explainVerification", {
    key,
    ratelimits: [{ name: "requests", cost: 0 }],
  });
  return ratelimits[0].used;
}

async function lease(edge: TestEdge, key: string, more: object = {}): Promise<GrantedLease> {
  const [granted] = await edge.lease(asked(key, more));
  assert(granted !== null && granted !== undefined);
  return granted;
}

const giveBack = ({ id, amount }: GrantedLease, spent: number) => ({ want: 0, returns: [{ id, amount, spent }] });

/** `other` is a second node, which counts in the same place. */
function tests(one: () => TestServer, other: () => TestServer): void {
  const edges = () => [new TestEdge(one()), new TestEdge(other(), other().rootKey, 2)] as const;
  const createKey = async (more: object = {}) => {
    const server = one();
    return (await server.createKey(await server.createApi(), { ratelimits: [limit], ...more })).key;
  };

  it("are counted before they are granted, and what was not spent comes back once, at any node (rules 185, 186)", async () => {
    const key = await createKey();
    const [here, there] = edges();
    assert.equal((await one().verify(key)).code, "VALID");
    const granted = await lease(here, key);
    assert.deepEqual([granted.amount, granted.remaining, granted.expiresIn], [50, 1_000 - 1 - 50, 10_000]);
    assert.equal(granted.reset % DAY, 0);
    assert.equal(await used(other(), key), 51);
    const { ratelimits } = await other().verify(key);
    assert.equal(ratelimits[0].remaining, 948);
    assert.deepEqual(await there.lease(asked(key, giveBack(granted, 20))), [null]);
    assert.equal(await used(one(), key), 22);
    for (const edge of [here, there]) await edge.lease(asked(key, giveBack(granted, 0)));
    assert.equal(await used(one(), key), 22);
  });

  it("are at most a tenth of a limit together with what was lost, over all edges (rule 185)", async () => {
    const key = await createKey();
    const [here, there] = edges();
    const granted: GrantedLease[] = [];
    for (let misses = 0; misses < 2; ) {
      const [one] = await (granted.length % 2 === 0 ? here : there).lease(asked(key, { want: 1_000 }));
      if (one) granted.push(one);
      else misses++;
    }
    const out = granted.reduce((sum, { amount }) => sum + amount, 0);
    assert.deepEqual(
      granted.map(({ amount }) => amount),
      [50, 25, 13, 6],
    );
    assert.equal(await used(one(), key), out);
    // What comes back can be leased again, and that something was spent makes no difference.
    const [, again] = await here.lease(asked(key, giveBack(granted[0]!, 50)), asked(key, { want: 20 }));
    assert.equal(again?.amount, 20);
  });

  it("become small when the limit is nearly used, and end before it is", async () => {
    const key = await createKey();
    const [edge] = edges();
    const spend = (cost: number) => one().verify(key, { ratelimits: [{ name: "requests", cost }] });
    await spend(960);
    assert.equal((await lease(edge, key)).amount, 10);
    await spend(11);
    assert.deepEqual(await edge.lease(asked(key)), [null]);
    assert.equal((await spend(19)).code, "VALID");
    assert.equal((await spend(1)).code, "RATE_LIMITED");
  });

  it("let pass exactly the limit, of direct calls and of what edges spend (rule 185)", async () => {
    const key = await createKey();
    const [here, there] = edges();
    const random = seededRandom(36);
    let admitted = 0;
    const open: (GrantedLease & { spent: number })[] = [];
    for (let step = 0; step < 400; step++) {
      const server = random.below(2) === 0 ? one() : other();
      const edge = random.below(2) === 0 ? here : there;
      const kind = random.below(4);
      if (kind === 0) {
        const [granted] = await edge.lease(asked(key, { want: 5 + random.below(100) }));
        if (granted) open.push({ ...granted, spent: 0 });
      } else if (kind === 1 && open.length > 0) {
        const one = open[random.below(open.length)]!;
        const cost = Math.min(1 + random.below(20), one.amount - one.spent);
        one.spent += cost;
        admitted += cost;
      } else if (kind === 2 && open.length > 0) {
        const [one] = open.splice(random.below(open.length), 1);
        const body = asked(key, giveBack(one!, one!.spent));
        for (let times = 0; times < 1 + random.below(2); times++) await edge.lease(body);
      } else {
        const cost = 1 + random.below(5);
        const { code } = await server.verify(key, { ratelimits: [{ name: "requests", cost }] });
        if (code === "VALID") admitted += cost;
      }
    }
    for (const one of open) await here.lease(asked(key, giveBack(one, one.spent)));
    assert.equal(await used(one(), key), admitted);
    while ((await one().verify(key)).code === "VALID") admitted++;
    assert.equal(admitted, 1_000);
  });

  it("of an identity are of all its keys", async () => {
    const externalId = `team_${one().clock.now()}_${Math.floor(performance.now())}`;
    await one().ok("identities.createIdentity", { externalId, ratelimits: [limit] });
    const apiId = await one().createApi();
    const [first, second] = [
      (await one().createKey(apiId, { externalId })).key,
      (await one().createKey(apiId, { externalId })).key,
    ];
    const [edge] = edges();
    const ofIdentity = (key: string, more: object = {}) => {
      const question = asked(key, more);
      return { ...question, key: { ...question.key, owner: "identity" } };
    };
    const [granted] = await edge.lease(ofIdentity(first));
    assert.equal(granted?.amount, 50);
    assert.equal(await used(one(), second), 50);
    assert.deepEqual(await edge.lease(asked(first)), [null], "the key has no such limit");
    await edge.lease(ofIdentity(second, giveBack(granted!, 1)));
    assert.equal(await used(one(), first), 1);
  });

  it("come back only to their own limit, and at most what was leased (rule 186)", async () => {
    const [key, another] = [await createKey(), await createKey()];
    const [edge] = edges();
    const [granted, ofAnother] = [await lease(edge, key), await lease(edge, another)];
    await one().verify(key, { ratelimits: [{ name: "requests", cost: 100 }] });
    // Those of another limit, of another duration, and invented ones.
    await edge.lease(asked(key, giveBack(ofAnother, 0)), asked(another, giveBack(granted, 0)));
    await edge.lease(asked(key, { ...giveBack(granted, 0), duration: DAY - 1 }));
    await edge.lease(asked(key, giveBack({ ...granted, id: "A".repeat(20) }, 0)));
    assert.deepEqual([await used(one(), key), await used(one(), another)], [150, 50]);
    await edge.lease(asked(key, giveBack({ ...granted, amount: 1_000_000 }, 0)));
    assert.equal(await used(one(), key), 100);
    const more = await lease(edge, key);
    await edge.lease(asked(key, giveBack({ ...more, amount: 1_000_000 }, 1_000_000)));
    assert.equal(await used(one(), key), 150, "nobody is charged more than was leased");
  });

  it("come back also after the limit was changed or removed", async () => {
    const server = one();
    const { keyId, key } = await server.createKey(await server.createApi(), { ratelimits: [limit] });
    const [edge] = edges();
    const granted = await lease(edge, key);
    await server.ok("keys.updateKey", { keyId, ratelimits: [{ ...limit, limit: 2_000 }] });
    await server.pass(1_000);
    assert.deepEqual(await edge.lease(asked(key)), [null], "the edge has another record");
    await edge.lease(asked(key, giveBack(granted, 7)));
    assert.equal(await used(server, key), 7);
    assert.equal((await lease(edge, key, { limit: 2_000, want: 1_000 })).amount, 100);
  });
}

describeOnStores("Leases of edges with counters in memory", (server) => {
  tests(
    () => server,
    () => server,
  );

  it("are of standard limits of keys that nothing else restricts, from 100 in 2 seconds on (rule 187)", async () => {
    const apiId = await server.createApi();
    const edge = new TestEdge(server);
    await server.ok("identities.createIdentity", { externalId: "planned" });
    await server.ok("plans.createPlan", { name: "small", ratelimits: [limit] });
    const { budgetId } = await server.ok("budgets.createBudget", { name: "team", remaining: 3 });
    const small = { ...limit, limit: 99 };
    const cases: [object, object?][] = [
      [{ ratelimits: [small] }, small],
      [{ ratelimits: [{ ...limit, duration: 1_999 }] }, { duration: 1_999 }],
      [{ ratelimits: [{ ...limit, mode: "strict" }] }],
      [{ ratelimits: [{ ...limit, shadow: true }] }],
      [{ ratelimits: [limit], credits: { remaining: 10 } }],
      [{ ratelimits: [limit], budgetId }],
      [{ ratelimits: [limit], concurrency: [{ name: "streams", limit: 5 }] }],
      [{ plan: "small" }],
      [{ ratelimits: [limit], enabled: false }],
      [{ ratelimits: [limit] }, { limit: 999 }],
      [{ ratelimits: [limit] }, { duration: DAY - 1 }],
      [{ ratelimits: [limit] }, { want: 4 }],
      [{ ratelimits: [] }],
    ];
    for (const [input, question = {}] of cases) {
      const { key } = await server.createKey(apiId, input);
      const body = asked(key, { want: 1_000, ...question });
      const { name: _, autoApply: __, ...more } = body as Record<string, unknown>;
      assert.deepEqual(await edge.lease(more), [null], JSON.stringify([input, question]));
    }
    const smallest = { ...limit, limit: 100, duration: 2_000 };
    const { key } = await server.createKey(apiId, { ratelimits: [smallest] });
    const [granted] = await edge.lease(askedLease(key, smallest));
    assert.equal(granted?.amount, 5);
    assert(granted.expiresIn <= 2_000);
  });

  it("end with the window, and come back to the window from which they came (rule 186)", async () => {
    const minute = { ...limit, duration: 60_000 };
    const { key } = await server.createKey(await server.createApi(), { ratelimits: [minute] });
    const edge = new TestEdge(server);
    const ask = (more: object = {}) => edge.lease(askedLease(key, minute, more));
    await server.pass(60_000 - (server.clock.now() % 60_000) + 55_000);
    const [first] = await ask();
    assert.equal(first?.expiresIn, 5_000);
    await server.pass(35_000);
    // Half of the window before counts.
    assert.equal(await used(server, key), 25);
    await ask(giveBack(first!, 10));
    assert.equal(await used(server, key), 5);
    const [second] = await ask();
    await server.pass(120_000);
    await ask(giveBack(second!, 0));
    assert.equal(await used(server, key), 0);
    assert.match(await server.scrape(), /^latchkey_leases_unknown_total [1-9]/m);
  });

  it("are of keys that exist, that the root key opens, and of its workspace (rule 188)", async () => {
    const [open, closed] = [await server.createApi(), await server.createApi()];
    const keys = [];
    for (const apiId of [open, closed, open]) keys.push(await server.createKey(apiId, { ratelimits: [limit] }));
    await server.ok("keys.deleteKey", { keyId: keys[2]!.keyId });
    await server.pass(1_000);
    const { key: as } = await server.grant(`replicas.${open}.open`, "apis.*.verify_key");
    const questions = [...keys.map(({ key }) => asked(key)), asked("never issued")];
    const granted = await new TestEdge(server, as).lease(...questions);
    assert.deepEqual(
      granted.map((one) => one?.amount),
      [50, undefined, undefined, undefined],
    );
    const foreign = await server.workspace("foreign");
    const thief = new TestEdge(server, foreign.key);
    assert.deepEqual(await thief.lease(asked(keys[0]!.key), asked(keys[0]!.key, giveBack(granted[0]!, 0))), [
      null,
      null,
    ]);
    assert.equal(await used(server, keys[0]!.key), 50);
    const { key: other } = await server.grant("apis.*.verify_key");
    await server.rejected("replica.lease", { leases: questions }, "insufficient_permissions", { as: other });
    await server.rejected("replica.lease", { leases: questions }, "authentication_missing", { as: null });
  });

  it("count as one request for all of a question", async () => {
    const { key: as, workspaceId } = await server.workspace("limited");
    const { apiId } = await server.ok("apis.createApi", { name: "limited" }, { as });
    const { key } = await server.ok("keys.createKey", { apiId, ratelimits: [limit] }, { as });
    await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 2 });
    await server.pass(500);
    const edge = new TestEdge(server, as);
    for (let i = 0; i < 2; i++) assert.equal((await edge.lease(...Array(20).fill(asked(key)))).length, 20);
    await server.rejected("replica.lease", { leases: [asked(key)] }, "workspace_rate_limited", { as });
  });

  it("are asked for within bounds", async () => {
    const question = asked("never issued");
    const returned = { id: "A".repeat(20), amount: 5, spent: 5 };
    for (const leases of [
      [],
      Array(257).fill(question),
      [{ ...question, want: -1 }],
      [{ ...question, key: { ...question.key, owner: "derived" } }],
      [{ ...question, returns: Array(5).fill(returned) }],
      [{ ...question, returns: [{ ...returned, spent: 6 }] }],
      [{ ...question, returns: [{ ...returned, id: "x:y".padEnd(20, "z") }] }],
      [{ ...question, mode: "strict" }],
    ]) {
      await server.rejected("replica.lease", { leases }, "invalid_input");
    }
  });
});

describe("Leases of edges with counters in Redis", () => {
  let one: TestServer;
  let other: TestServer;
  before(async () => {
    const settings = { REDIS_URL: await sharedRedis() };
    one = await openTestServer({ store: "postgres", settings });
    other = await openTestServer({ beside: one, settings });
  });
  after(async () => {
    await other?.close();
    await one?.close();
  });
  tests(
    () => one,
    () => other,
  );
});
