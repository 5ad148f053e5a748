import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOnStores, openTestServer, stores, type TestServer } from "../harness.ts";

const MINUTE = 60_000;
/** A charge of a limit of a minute counts for a sub-window longer, at most. */
const GRANULARITY = MINUTE / 16;

const call = { namespace: "strict", identifier: "user_1", limit: 4, duration: MINUTE, mode: "strict" };
const limit = (server: TestServer, more: object = {}) => server.ok("ratelimits.limit", { ...call, ...more });
const calls = { name: "calls", limit: 4, duration: MINUTE, mode: "strict", autoApply: true };

interface ListedLimit {
  name: string;
  mode?: string;
  remaining: number;
  reset: number;
  exceeded: boolean;
}

/** Lets time pass until a sub-window begins. */
async function nextSubWindow(server: TestServer) {
  await server.pass(GRANULARITY - (server.clock.now() % GRANULARITY));
}

describeOnStores("a strict limit", (server) => {
  it("admits no more than the limit in any trailing duration, where the standard mode admits more (rule 70)", async () => {
    const admitted: Record<string, number[]> = { standard: [], strict: [] };
    await server.pass(MINUTE - (server.clock.now() % MINUTE) + MINUTE / 2);
    for (let second = 0; second < 120; second += 3) {
      for (const mode of ["standard", "strict"]) {
        const { success } = await limit(server, { mode, identifier: "both" });
        if (success) admitted[mode]!.push(server.clock.now());
      }
      await server.pass(3_000);
    }
    const most = (times: readonly number[]) =>
      Math.max(...times.map((end) => times.filter((at) => at > end - MINUTE && at <= end).length));
    assert.equal(most(admitted.strict!), 4);
    assert.ok(most(admitted.standard!) > 4);
  });

  it("frees what was charged when it has left the trailing duration, and says when", async () => {
    const one = { identifier: "freed" };
    await nextSubWindow(server);
    const begin = server.clock.now();
    const released = begin + MINUTE + GRANULARITY - 1;
    // Without a charge: when one of now would stop counting.
    assert.equal((await limit(server, { ...one, cost: 0 })).reset, released);
    const first = await limit(server, { ...one, cost: 3 });
    assert.deepEqual(first, { success: true, limit: 4, remaining: 1, reset: released, retryAfter: 0 });
    await server.pass(30_000);
    await limit(server, one);
    const denied = await limit(server, one);
    assert.deepEqual([denied.success, denied.reset, denied.retryAfter], [false, released, released - begin - 30_000]);
    await server.pass(denied.retryAfter - 1);
    assert.equal((await limit(server, one)).success, false);
    await server.pass(1);
    assert.equal((await limit(server, one)).remaining, 2);
    assert.equal((await limit(server, { ...one, cost: 5 })).retryAfter, undefined);
  });

  it("counts apart from a standard limit, and together with it or not at all", async () => {
    const strict = { ...call, identifier: "mixed", limit: 1 };
    const standard = { ...strict, mode: "standard", limit: 2 };
    const several = (entries: object[]) => server.ok("ratelimits.multiLimit", entries);
    assert.equal((await several([strict, standard])).passed, true);
    const denied = await several([strict, standard]);
    assert.deepEqual(
      denied.limits.map(({ passed, remaining }: { passed: boolean; remaining: number }) => [passed, remaining]),
      [
        [false, 0],
        [true, 1],
      ],
    );
    assert.equal((await several([standard])).passed, true);
    assert.equal((await several([standard])).passed, false);
  });

  it("is replayed with an idempotency key", async () => {
    const repeat = () =>
      server.call("ratelimits.limit", { ...call, identifier: "again" }, { headers: { "idempotency-key": "strict" } });
    const first = await repeat();
    assert.deepEqual((await repeat()).body.data, first.body.data);
    assert.equal((await limit(server, { identifier: "again", cost: 0 })).remaining, 3);
  });

  it("is rejected with an unknown mode", async () => {
    const { problem } = await server.call("ratelimits.limit", { ...call, mode: "exact" });
    assert.equal(problem, "invalid_input");
  });

  it("belongs to a key or an identity, and its mode is shown", async () => {
    const apiId = await server.createApi();
    await server.ok("identities.createIdentity", { externalId: "strict", ratelimits: [{ ...calls, name: "shared" }] });
    const ratelimits = [calls, { ...calls, name: "plain", mode: "standard" }];
    const { key, keyId } = await server.createKey(apiId, { ratelimits, externalId: "strict" });
    const shown = async () => {
      const { ratelimits: own, identity } = await server.ok("keys.getKey", { keyId });
      return [...own, ...identity.ratelimits].map(({ name, mode }: ListedLimit) => `${name} ${mode}`).sort();
    };
    assert.deepEqual(await shown(), ["calls strict", "plain undefined", "shared strict"]);
    const answer = await server.verify(key);
    const byName = Object.fromEntries(answer.ratelimits.map((one: ListedLimit) => [one.name, one]));
    assert.deepEqual(
      Object.values<ListedLimit>(byName).map(({ name, mode, remaining }) => [name, mode, remaining]),
      [
        ["calls", "strict", 3],
        ["plain", undefined, 3],
        ["shared", "strict", 3],
      ],
    );
    assert.ok(byName.calls.reset >= server.clock.now() + MINUTE);
    assert.ok(byName.plain.reset <= server.clock.now() + MINUTE);
    // The settings of an answer can be sent back.
    const { ratelimits: own } = await server.ok("keys.getKey", { keyId });
    await server.ok("keys.updateKey", { keyId, ratelimits: own });
    assert.deepEqual(await shown(), ["calls strict", "plain undefined", "shared strict"]);
    const { key: next, keyId: nextId } = await server.ok("keys.rerollKey", { keyId, expiration: 0 });
    assert.equal((await server.verify(next)).ratelimits.find(({ name }: ListedLimit) => name === "calls").remaining, 2);
    const { ratelimits: rerolled } = await server.ok("keys.getKey", { keyId: nextId });
    assert.deepEqual(
      rerolled.map(({ mode }: ListedLimit) => mode),
      ["strict", undefined],
    );
  });

  it("starts another count when its mode changes, and continues the former one when it changes back", async () => {
    const { key, keyId } = await server.createKey(await server.createApi(), { ratelimits: [calls] });
    const left = async () => (await server.verify(key)).ratelimits[0].remaining;
    const change = (mode: string) => server.ok("keys.updateKey", { keyId, ratelimits: [{ ...calls, mode }] });
    assert.deepEqual([await left(), await left()], [3, 2]);
    await change("standard");
    assert.equal(await left(), 3);
    await change("strict");
    assert.equal(await left(), 1);
  });

  it("of a verification counts like a stored one", async () => {
    const { key } = await server.createKey(await server.createApi());
    const adHoc = [{ name: "burst", limit: 2, duration: MINUTE, mode: "strict" }];
    const verify = (ratelimits: object[]) => server.verify(key, { ratelimits });
    const { ratelimits } = await verify(adHoc);
    assert.deepEqual([ratelimits[0].mode, ratelimits[0].remaining], ["strict", 1]);
    assert.equal((await verify([{ ...adHoc[0], mode: "standard" }])).ratelimits[0].remaining, 1);
    await verify(adHoc);
    assert.equal((await verify(adHoc)).code, "RATE_LIMITED");
  });

  it("is charged together with credits or not at all", async () => {
    const { key } = await server.createKey(await server.createApi(), {
      ratelimits: [calls],
      credits: { remaining: 2 },
    });
    for (const credits of [1, 0]) assert.equal((await server.verify(key)).credits, credits);
    const rejected = await server.verify(key);
    assert.deepEqual([rejected.code, rejected.ratelimits[0].remaining], ["USAGE_EXCEEDED", 2]);
  });

  it("can come from an override, which keeps the mode of the call if it has none", async () => {
    const one = { namespace: "overridden", identifier: "a", mode: "standard" };
    await limit(server, { ...one, cost: 0 });
    const set = (more: object) =>
      server.ok("ratelimits.setOverride", {
        namespace: "overridden",
        identifier: "a",
        limit: 4,
        duration: MINUTE,
        ...more,
      });
    const get = () => server.ok("ratelimits.getOverride", { namespace: "overridden", identifier: "a" });
    await limit(server, { ...one, mode: "strict" });
    await set({});
    assert.equal("mode" in (await get()), false);
    assert.equal((await limit(server, { ...one, mode: "strict" })).remaining, 2);
    assert.equal((await limit(server, one)).remaining, 3);
    await set({ mode: "strict" });
    assert.equal((await get()).mode, "strict");
    assert.equal((await limit(server, one)).remaining, 1);
    await set({ mode: "standard" });
    assert.equal((await limit(server, { ...one, mode: "strict" })).remaining, 2);
    await set({});
    assert.equal("mode" in (await get()), false);
    const { overrides } = await server.ok("ratelimits.listOverrides", { namespace: "overridden" });
    assert.equal("mode" in overrides[0], false);
  });

  it("is explained with its mode and its oldest charge", async () => {
    const one = { ...call, identifier: "explained" };
    const { reset } = await limit(server, one);
    const explained = await server.ok("ratelimits.explainLimit", one);
    assert.deepEqual([explained.mode, explained.used], ["strict", 1]);
    assert.deepEqual(explained.window, { startAt: reset - MINUTE, endAt: reset });
    const { key } = await server.createKey(await server.createApi(), { ratelimits: [calls] });
    const { ratelimits } = await server.ok("keys.explainVerification", { key });
    assert.deepEqual(
      ratelimits.map(({ name, mode }: ListedLimit) => [name, mode]),
      [["calls", "strict"]],
    );
  });

  it("has its mode in the audit log", async () => {
    const { keyId } = await server.createKey(await server.createApi(), { ratelimits: [] });
    await server.ok("keys.updateKey", { keyId, ratelimits: [calls] });
    const rows = (await server.rowsOf("audit_events")) as { action: string; targets: string; meta: string }[];
    const updated = rows.find(({ action, targets }) => action === "keys.updateKey" && targets.includes(keyId))!;
    assert.equal(JSON.parse(updated.meta).after.ratelimits[0].mode, "strict");
  });
});

for (const store of stores) {
  describe(`strict limits on ${store}`, () => {
    it("stay when the service stops and starts again", async (t) => {
      const first = await openTestServer({ store });
      await nextSubWindow(first);
      await limit(first);
      await first.pass(2 * GRANULARITY);
      await limit(first, { cost: 3 });
      await first.service.stop();
      await first.advance(1_000);
      const second = await openTestServer({ beside: first });
      t.after(async () => {
        await second.close();
        await first.close();
      });
      const denied = await limit(second);
      assert.equal(denied.success, false);
      await second.pass(denied.retryAfter);
      assert.equal((await limit(second)).remaining, 0);
      assert.equal((await limit(second)).success, false);
    });
  });
}
