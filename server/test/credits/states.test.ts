/** Rules 1 to 8 under "States and transitions" of the specification. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

const DAY = 86_400_000;

/** A key with `remaining` credits, and a verification that returns its code and the remaining credits. */
async function creditKey(server: TestServer, credits: object | undefined, more: object = {}) {
  const { keyId, key } = await server.createKey(await server.createApi(), { ...(credits && { credits }), ...more });
  const verify = async (cost?: number) => {
    const { code, credits } = await server.verify(key, cost === undefined ? {} : { credits: { cost } });
    return [code, credits];
  };
  const update = (change: object) => server.ok("keys.updateKey", { keyId, ...change });
  const credits_ = async () => (await server.getKey(keyId)).credits;
  return { keyId, key, verify, update, credits: credits_ };
}

/** Sets the wall clock forward, without running timers. */
function goTo(server: TestServer, moment: string | number): void {
  const at = typeof moment === "number" ? moment : Date.parse(moment);
  server.clock.step(at - server.clock.now());
}

describeOnStores("States and transitions", (server) => {
  it("rule 1: omitting `expires` makes the key permanent, a past one invalidates it at once, by server time", async () => {
    const permanent = await creditKey(server, undefined);
    const born = await creditKey(server, undefined, { expires: server.clock.now() - 1 });
    const soon = await creditKey(server, undefined, { expires: server.clock.now() + 1_000 });
    assert.deepEqual(await born.verify(), ["EXPIRED", undefined]);
    assert.deepEqual(await soon.verify(), ["VALID", undefined]);
    await server.pass(999);
    assert.deepEqual(await soon.verify(), ["VALID", undefined]);
    await server.pass(1);
    assert.deepEqual(await soon.verify(), ["EXPIRED", undefined]);
    await soon.update({ expires: server.clock.now() + DAY });
    assert.deepEqual(await soon.verify(), ["VALID", undefined]);
    await soon.update({ expires: 0 });
    assert.deepEqual(await soon.verify(), ["EXPIRED", undefined]);
    goTo(server, server.clock.now() + 20 * 365 * DAY);
    assert.deepEqual(await permanent.verify(), ["VALID", undefined]);
    goTo(server, server.clock.now() - 20 * 365 * DAY);
  });

  it("rule 2: a refill of N sets the balance to exactly N instead of adding N", async () => {
    const refill = { interval: "daily", amount: 10 };
    const [low, high] = [
      await creditKey(server, { remaining: 3, refill }),
      await creditKey(server, { remaining: 70, refill }),
    ];
    goTo(server, (Math.floor(server.clock.now() / DAY) + 1) * DAY);
    assert.deepEqual(await low.verify(), ["VALID", 9]);
    assert.deepEqual(await high.verify(), ["VALID", 9]);
  });

  it("rule 3: daily refills happen at midnight UTC", async () => {
    const { verify } = await creditKey(server, { remaining: 0, refill: { interval: "daily", amount: 2 } });
    const midnight = (Math.floor(server.clock.now() / DAY) + 1) * DAY;
    goTo(server, midnight - 1);
    assert.deepEqual(await verify(), ["USAGE_EXCEEDED", 0]);
    goTo(server, midnight);
    assert.deepEqual(await verify(), ["VALID", 1]);
    goTo(server, midnight + DAY - 1);
    assert.deepEqual(await verify(), ["VALID", 0]);
    assert.deepEqual(await verify(), ["USAGE_EXCEEDED", 0]);
    goTo(server, midnight + DAY);
    assert.deepEqual(await verify(), ["VALID", 1]);
  });

  it("rule 3: monthly refills happen on `refillDay` (default 1), on the last day of a shorter month", async () => {
    goTo(server, "2027-01-15T12:00:00Z");
    const refill = (refillDay?: number) => ({ interval: "monthly", amount: 5, ...(refillDay && { refillDay }) });
    const first = await creditKey(server, { remaining: 0, refill: refill() });
    const tenth = await creditKey(server, { remaining: 0, refill: refill(10) });
    const last = await creditKey(server, { remaining: 0, refill: refill(31) });
    /** Returns the keys that were refilled since the last call, and empties them. */
    const refilledAt = async (moment: string) => {
      goTo(server, moment);
      const refilled: number[] = [];
      for (const [day, { verify }] of [
        [1, first],
        [10, tenth],
        [31, last],
      ] as const) {
        const [code] = await verify(5);
        if (code === "VALID") refilled.push(day);
      }
      return refilled;
    };
    for (const [moment, refilled] of [
      ["2027-01-30T23:59:59.999Z", []],
      ["2027-01-31T00:00:00Z", [31]],
      ["2027-02-01T00:00:00Z", [1]],
      ["2027-02-10T00:00:00Z", [10]],
      ["2027-02-27T23:59:59.999Z", []],
      ["2027-02-28T00:00:00Z", [31]],
      ["2027-03-30T23:59:59.999Z", [1, 10]],
      ["2027-03-31T00:00:00Z", [31]],
      ["2027-04-30T00:00:00Z", [1, 10, 31]],
      // A leap year.
      ["2028-02-28T00:00:00Z", [1, 10, 31]],
      ["2028-02-29T00:00:00Z", [31]],
      ["2028-03-01T00:00:00Z", [1]],
    ] as const) {
      assert.deepEqual(await refilledAt(moment), refilled, moment);
    }
  });

  it("rule 4: setting `refill` to null stops refilling and keeps the current credits", async () => {
    const { verify, update, credits } = await creditKey(server, {
      remaining: 4,
      refill: { interval: "daily", amount: 10 },
    });
    assert.deepEqual(await verify(), ["VALID", 3]);
    await update({ credits: { refill: null } });
    assert.deepEqual(await credits(), { remaining: 3 });
    goTo(server, server.clock.now() + 40 * DAY);
    assert.deepEqual(await verify(), ["VALID", 2]);
  });

  it("rule 4: a refill that was due before it was stopped stays", async () => {
    const { update, credits } = await creditKey(server, { remaining: 4, refill: { interval: "daily", amount: 10 } });
    goTo(server, server.clock.now() + 2 * DAY);
    await update({ credits: { refill: null } });
    assert.deepEqual(await credits(), { remaining: 10 });
  });

  it("rule 5: setting `credits` to null makes usage unlimited, and there is no refill without credits", async () => {
    const { keyId, verify, update, credits } = await creditKey(server, {
      remaining: 1,
      refill: { interval: "daily", amount: 10 },
    });
    await update({ credits: null });
    assert.equal(await credits(), undefined);
    assert.deepEqual(await verify(1_000_000), ["VALID", undefined]);
    goTo(server, server.clock.now() + 2 * DAY);
    assert.deepEqual(await verify(1_000_000), ["VALID", undefined]);
    const refill = { interval: "daily", amount: 10 };
    await server.rejected("keys.updateKey", { keyId, credits: { refill } }, "invalid_input");
    await server.rejected("keys.updateKey", { keyId, credits: { remaining: null, refill } }, "invalid_input");
    assert.equal(await credits(), undefined);
  });

  it("rule 5: `refillDay` requires the interval `monthly`", async () => {
    const apiId = await server.createApi();
    const { keyId } = await creditKey(server, { remaining: 1 });
    const refill = { interval: "daily", amount: 10, refillDay: 5 };
    await server.rejected("keys.updateKey", { keyId, credits: { refill } }, "invalid_input");
    await server.rejected("keys.createKey", { apiId, credits: { remaining: 1, refill } }, "invalid_input");
    await server.ok("keys.updateKey", { keyId, credits: { refill: { ...refill, interval: "monthly" } } });
  });

  it("rule 6: `credits` null is not allowed at creation; omitting it means unlimited usage", async () => {
    const apiId = await server.createApi();
    await server.rejected("keys.createKey", { apiId, credits: null }, "invalid_input");
    const { verify } = await creditKey(server, undefined);
    assert.deepEqual(await verify(1_000_000), ["VALID", undefined]);
    const { verify: alsoUnlimited } = await creditKey(server, { remaining: null });
    assert.deepEqual(await alsoUnlimited(1_000_000), ["VALID", undefined]);
  });

  it("rule 7: a change takes effect at the next verification", async () => {
    const { verify, update } = await creditKey(server, { remaining: 1 });
    assert.deepEqual(await verify(), ["VALID", 0]);
    assert.deepEqual(await verify(), ["USAGE_EXCEEDED", 0]);
    await update({ credits: { remaining: 2 } });
    assert.deepEqual(await verify(), ["VALID", 1]);
    await update({ enabled: false });
    assert.deepEqual(await verify(), ["DISABLED", 1]);
    await update({ enabled: true, credits: null });
    assert.deepEqual(await verify(), ["VALID", undefined]);
    await update({ credits: { remaining: 3 } });
    assert.deepEqual(await verify(2), ["VALID", 1]);
  });

  it("rule 8: manual credits and refills can be combined, and the next refill replaces the balance", async () => {
    const { keyId, verify } = await creditKey(server, { remaining: 1, refill: { interval: "daily", amount: 10 } });
    await server.ok("keys.updateCredits", { keyId, operation: "increment", value: 500 });
    assert.deepEqual(await verify(), ["VALID", 500]);
    goTo(server, (Math.floor(server.clock.now() / DAY) + 1) * DAY);
    assert.deepEqual(await verify(), ["VALID", 9]);
  });
});
