/**
 * What somebody with the root key of an edge can do by leases: take everything, forge what comes back, and fill the memory of
 * the counters.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { askedLease, type GrantedLease, TestEdge } from "../edge.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const DAY = 86_400_000;
const limit = { name: "requests", limit: 1_000, duration: DAY, autoApply: true };
const asked = (key: string, more: object = {}) => askedLease(key, limit, more);

async function remaining(server: Pick<TestServer, "verify">, key: string): Promise<number> {
  return (await server.verify(key, { ratelimits: [{ name: "requests", cost: 0 }] })).ratelimits[0].remaining;
}

describeOnStores("Leases of a stolen edge (rules 185 to 188)", (server) => {
  it("are a tenth of a limit at most, however often and by however many it asks", async () => {
    const { key } = await server.createKey(await server.createApi(), { ratelimits: [limit] });
    const edges = Array.from({ length: 20 }, (_, n) => new TestEdge(server, server.rootKey, n + 1));
    let leased = 0;
    const take = async (edge: TestEdge) => {
      for (const one of await edge.lease(...Array(50).fill(asked(key, { want: 1_000_000 }))))
        leased += one?.amount ?? 0;
    };
    await Promise.all(edges.map(take));
    assert(leased > 80 && leased <= 100, `${leased}`);
    assert.equal(await remaining(server, key), 1_000 - leased);
    // Until the window ends, nothing is leased; direct callers have the rest.
    await Promise.all(edges.map(take));
    assert.equal(await remaining(server, key), 1_000 - leased);
    let admitted = 0;
    while ((await server.verify(key, { ratelimits: [{ name: "requests", cost: 20 }] })).code === "VALID")
      admitted += 20;
    assert(admitted >= 880, `${admitted}`);
  });

  it("give nothing back by invented, foreign and repeated returns", async () => {
    const apiId = await server.createApi();
    const keys: string[] = [];
    for (let i = 0; i < 4; i++) keys.push((await server.createKey(apiId, { ratelimits: [limit] })).key);
    const victim = await server.workspace("victim");
    const { apiId: theirs } = await server.ok("apis.createApi", { name: "victim" }, { as: victim.key });
    const input = { apiId: theirs, ratelimits: [limit] };
    const { key: foreign } = await server.ok("keys.createKey", input, { as: victim.key });
    const own = new TestEdge(server, victim.key, 2);
    const [ofVictim] = await own.lease(asked(foreign));
    const edge = new TestEdge(server);
    const leases: GrantedLease[] = [];
    for (const key of keys) leases.push(...(await edge.lease(asked(key))).filter((one) => one !== null));
    for (const key of keys) await server.verify(key, { ratelimits: [{ name: "requests", cost: 300 }] });
    const before = await Promise.all(keys.map((key) => remaining(server, key)));
    assert.deepEqual(before, [650, 650, 650, 650]);
    const random = seededRandom(36);
    const forged = (of: number) => {
      const other = [...leases, ofVictim].filter((_, i) => i !== of);
      const { id = "" } = other[random.below(other.length)] ?? {};
      const invented = random.below(3) === 0 ? `${id.slice(0, -1)}x` : id;
      const amount = 1 + random.below(1_000_000);
      return { id: invented, amount, spent: random.below(2) === 0 ? 0 : amount };
    };
    for (let i = 0; i < 60; i++) {
      const of = random.below(keys.length);
      const more = { want: 0, returns: Array.from({ length: 4 }, () => forged(of)) };
      await edge.lease(asked(keys[of] ?? "", more), asked(foreign, more));
    }
    assert.deepEqual(await Promise.all(keys.map((key) => remaining(server, key))), before);
    for (const [i, key] of keys.entries()) {
      const honest = { id: leases[i]?.id, amount: 50, spent: 20 };
      // Twice in one question, in two questions at the same time, and later.
      const body = asked(key, { want: 0, returns: [honest, honest, { ...honest, spent: 0 }] });
      await Promise.all([edge.lease(body, body), edge.lease(body)]);
      await edge.lease(body);
    }
    const after = await Promise.all(keys.map((key) => remaining(server, key)));
    for (const left of after) assert(left <= 700, `${left}`);
    const returned = { id: ofVictim?.id, amount: 50, spent: 50 };
    await own.lease(asked(foreign, { want: 0, returns: [returned] }));
    assert.equal((await server.verify(foreign, {}, { as: victim.key })).ratelimits[0].remaining, 949);
  });
});

describe("Leases of many limits", () => {
  it("count against the share of their workspace in the counter memory (rule 188)", async (t) => {
    const server = await openTestServer({ settings: { COUNTER_BYTES: "1m" } });
    t.after(() => server.close());
    const { key: flooder } = await server.workspace("flooder");
    const { apiId } = await server.ok("apis.createApi", { name: "flooder" }, { as: flooder });
    const ratelimits = Array.from({ length: 50 }, (_, i) => ({ ...limit, name: `limit ${i}` }));
    const { key } = await server.createKey(await server.createApi(), { ratelimits: [limit] });
    const edge = new TestEdge(server, flooder);
    let granted = 0;
    let refused = 0;
    for (let n = 0; n < 300; n++) {
      const { key: one } = await server.ok("keys.createKey", { apiId, ratelimits }, { as: flooder });
      const questions = ratelimits.map((own) => askedLease(one, own, { want: 5 }));
      for (const lease of await edge.lease(...questions)) lease ? granted++ : refused++;
    }
    t.diagnostic(`${granted} leases, ${refused} refused, of 1 MiB of counters`);
    // Two counters for each. The whole table holds 32,768.
    assert(2 * granted < 0.8 * 32_768 && refused > 1_000);
    assert.equal((await server.verify(key)).code, "VALID");
    assert.equal((await new TestEdge(server).lease(asked(key)))[0]?.amount, 50);
  });
});
