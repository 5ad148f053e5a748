import assert from "node:assert/strict";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { instantAt } from "../../../engine/src/clock/clock.ts";
import type { KeyUse } from "../../src/features/analytics/recorder.ts";
import { ageAbove } from "../../src/features/keys/statements/recent-keys.ts";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";
import { eventually } from "../process.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const SECOND = 1_000;

/** The minute of a time. */
const thisMinute = ({ clock }: TestServer) => {
  const start = Math.floor(clock.now() / MINUTE) * MINUTE;
  return { start, end: start + MINUTE };
};

describeOnStores("analytics", (server) => {
  it("answer short queries while long ones are under way, whoever asks", async (t) => {
    const apiId = await server.createApi();
    const gate = Promise.withResolvers<void>();
    const begun: string[] = [];
    server.analytics.interception = async (name, proceed) => {
      if (name === "top" || name === "longStats") {
        begun.push(name);
        await gate.promise;
      }
      return proceed();
    };
    t.after(() => {
      server.analytics.interception = undefined;
      gate.resolve();
    });
    const end = thisMinute(server).end;
    const minutes = { start: end - DAY, end, granularity: "minute" };
    const long = [
      server.ok("analytics.listTopIdentities", { start: end - DAY, end }),
      ...Array.from({ length: 8 }, () => server.ok("analytics.getApiStats", { apiId, ...minutes })),
    ];
    const days = { apiId, start: end - 30 * DAY, end };
    assert.equal((await server.ok("analytics.getApiStats", days)).granularity, "day");
    await server.ok("analytics.listDecisions", {});
    // One of each kind at a time, which leaves connections for the others.
    assert.deepEqual(begun.sort(), ["longStats", "top"]);
    gate.resolve();
    assert((await Promise.all(long)).every((answer) => answer.start < end));
    assert.equal(begun.length, 9);
  });

  const keyStats = (keyId: string, more: object = {}) =>
    server.ok("analytics.getKeyStats", { keyId, ...thisMinute(server), ...more });

  it("count every verification of a key, by key, API and identity", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, {
      externalId: "counted",
      credits: { remaining: 5 },
      ratelimits: [{ name: "requests", limit: 3, duration: MINUTE, autoApply: true }],
    });
    await server.verify(key, { credits: { cost: 2 }, tags: ["path=/a", "eu"] });
    await server.verify(key, { credits: { cost: 4 }, tags: ["path=/a"] });
    await server.verify(key, { tags: ["eu", "path=/b"] });
    await server.verify(key, { credits: { cost: 1 } });
    await server.verify(key, { credits: { cost: 1 } });
    await server.ok("keys.updateKey", { keyId, enabled: false });
    await server.verify(key, { tags: ["eu"] });
    await server.pass(SECOND);

    const expected = {
      total: 6,
      valid: 3,
      outcomes: { DISABLED: 1, RATE_LIMITED: 1, USAGE_EXCEEDED: 1, VALID: 3 },
      creditsSpent: 4,
    };
    const tags = [
      { tag: "eu", total: 3, valid: 2 },
      { tag: "path=/a", total: 2, valid: 1 },
      { tag: "path=/b", total: 1, valid: 1 },
    ];
    const range = { ...thisMinute(server), granularity: "minute" };
    const series = [{ time: range.start, ...expected }];
    assert.deepEqual(await keyStats(keyId), { keyId, ...range, ...expected, series, tags });
    const ofApi = await server.ok("analytics.getApiStats", { apiId, ...thisMinute(server) });
    assert.deepEqual(ofApi, { apiId, ...range, ...expected, series, tags });
    const ofIdentity = await server.ok("analytics.getIdentityStats", { identity: "counted", ...thisMinute(server) });
    assert.deepEqual(ofIdentity, { identity: "counted", ...range, ...expected, series, tags });

    const { total, valid } = await keyStats(keyId, { tags: ["path=/a", "eu", "eu"] });
    assert.deepEqual({ total, valid }, { total: 1, valid: 1 });
  });

  it("count what keys spent from a budget, those of identities and of budgets below it too", async () => {
    const apiId = await server.createApi();
    const create = async (body: object) =>
      (await server.ok("budgets.createBudget", { name: "counted", remaining: 20, ...body })).budgetId as string;
    const company = await create({});
    const team = await create({ parentId: company });
    const ofTeam = await server.createKey(apiId, { budgetId: team });
    await server.ok("identities.createIdentity", { externalId: "budgeted", budgetId: company });
    const ofIdentity = await server.createKey(apiId, { externalId: "budgeted", budgetId: team });
    const free = await server.createKey(apiId, {});
    for (const { key } of [ofTeam, ofIdentity, free]) await server.verify(key, { credits: { cost: 6 } });
    await server.verify(ofTeam.key, { credits: { cost: 9 } });
    await server.ok("keys.updateKey", { keyId: ofTeam.keyId, budgetId: null });
    await server.verify(ofTeam.key, { credits: { cost: 1 } });
    await server.pass(SECOND);
    const statsOf = (budgetId: string) => server.ok("analytics.getBudgetStats", { budgetId, ...thisMinute(server) });
    for (const budgetId of [team, company]) {
      const { total, outcomes, creditsSpent, series } = await statsOf(budgetId);
      assert.deepEqual([total, outcomes, creditsSpent], [3, { USAGE_EXCEEDED: 1, VALID: 2 }, 12]);
      assert.equal(series[0].creditsSpent, 12);
      assert.equal((await server.ok("budgets.getBudget", { budgetId })).spent, 12);
    }
  });

  it("count attempts with a deleted key, and attempts whose answer is NOT_FOUND although the key exists", async () => {
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId);
    const { keyId: otherId, key: other } = await server.createKey(apiId);
    await server.verify(key);
    await server.ok("keys.deleteKey", { keyId });
    await server.verify(key, { tags: ["late"] });
    await server.verify(key);
    await server.verify(other, { apiId: await server.createApi() });
    await server.pass(SECOND);
    assert.deepEqual((await keyStats(keyId)).outcomes, { NOT_FOUND: 2, VALID: 1 });
    assert.deepEqual((await keyStats(otherId)).outcomes, { NOT_FOUND: 1 });
    await server.ok("apis.deleteApi", { apiId });
    assert.equal((await server.verify(other)).code, "NOT_FOUND");
    await server.pass(SECOND);
    const { outcomes } = await server.ok("analytics.getApiStats", { apiId, ...thisMinute(server) });
    assert.deepEqual(outcomes, { NOT_FOUND: 4, VALID: 1 });
    await server.rejected("keys.getKey", { keyId }, "key_not_found");
  });

  it("count the decisions of a limit, by identifier", async () => {
    const limit = (identifier: string, cost = 1) => ({
      namespace: "counted",
      identifier,
      limit: 3,
      duration: MINUTE,
      cost,
    });
    await server.ok("ratelimits.limit", limit("a", 2));
    await server.ok("ratelimits.limit", limit("a", 2));
    await server.ok("ratelimits.multiLimit", [limit("a", 2), limit("b", 1)]);
    await server.ok("ratelimits.multiLimit", [limit("b", 1), limit("c", 3)]);
    const headers = { "idempotency-key": "counted" };
    await server.ok("ratelimits.limit", limit("d"), { headers });
    await server.ok("ratelimits.limit", limit("d"), { headers });
    await server.pass(SECOND);
    const stats = await server.ok("analytics.getRatelimitStats", { namespace: "counted", ...thisMinute(server) });
    const counts = { total: 8, passed: 6, denied: 2, cost: 7 };
    assert.deepEqual(stats, {
      namespace: "counted",
      ...thisMinute(server),
      granularity: "minute",
      ...counts,
      series: [{ time: thisMinute(server).start, ...counts }],
      identifiers: [{ identifier: "a", denied: 2, total: 3 }],
    });
    const one = await server.ok("analytics.getRatelimitStats", {
      namespace: "counted",
      identifier: "b",
      ...thisMinute(server),
    });
    assert.deepEqual([one.identifier, one.total, one.passed, one.cost], ["b", 2, 2, 1]);
  });

  it("rank the keys and the identities with the most verifications", async () => {
    const workspace = await server.workspace("ranked");
    const as = workspace.key;
    const ok = (name: string, body: object) => server.ok(name, body, { as });
    const [first, second] = [
      (await ok("apis.createApi", { name: "a" })).apiId,
      (await ok("apis.createApi", { name: "b" })).apiId,
    ];
    const create = (apiId: string, more: object) => ok("keys.createKey", { apiId, ...more });
    const busy = await create(first, { name: "busy", externalId: "acme", credits: { remaining: 2 } });
    const quiet = await create(first, { externalId: "globex" });
    const other = await create(second, { externalId: "globex" });
    const verify = async ({ key }: { key: string }, times: number) => {
      for (let n = 0; n < times; n++) await ok("keys.verifyKey", { key });
    };
    await verify(busy, 4);
    await verify(quiet, 2);
    await verify(other, 3);
    await ok("keys.verifyKey", { key: "unknown" });
    await server.pass(SECOND);

    const hour = Math.floor(server.clock.now() / HOUR) * HOUR;
    const range = { start: hour + 1, end: hour + 2 };
    const echo = { start: hour, end: hour + HOUR, granularity: "hour" };
    const entry = ({ keyId, key }: { keyId: string; key: string }, apiId: string, more: object, counts: object) => ({
      keyId,
      apiId,
      start: key.slice(0, 4),
      ...more,
      ...counts,
    });
    const valid = (total: number) => ({ total, valid: total, outcomes: { VALID: total }, creditsSpent: 0 });
    const ofBusy = { total: 4, valid: 2, outcomes: { USAGE_EXCEEDED: 2, VALID: 2 }, creditsSpent: 2 };
    const entries = [
      entry(busy, first, { name: "busy", externalId: "acme" }, ofBusy),
      entry(other, second, { externalId: "globex" }, valid(3)),
      entry(quiet, first, { externalId: "globex" }, valid(2)),
    ];
    assert.deepEqual(await ok("analytics.listTopKeys", range), { ...echo, keys: entries });
    const ofFirst = await ok("analytics.listTopKeys", { ...range, apiId: first, limit: 1 });
    assert.deepEqual(ofFirst, { ...echo, keys: [entries[0]] });
    const owners = await ok("analytics.listTopIdentities", range);
    assert.deepEqual(
      owners.identities.map(({ externalId, total, creditsSpent }: Record<string, unknown>) => [
        externalId,
        total,
        creditsSpent,
      ]),
      [
        ["globex", 5, 0],
        ["acme", 4, 2],
      ],
    );
    const ownersOfFirst = await ok("analytics.listTopIdentities", { ...range, apiId: first, granularity: "day" });
    assert.deepEqual(
      ownersOfFirst.identities.map(({ externalId, total }: Record<string, unknown>) => [externalId, total]),
      [
        ["acme", 4],
        ["globex", 2],
      ],
    );

    // Deleted keys keep their counts and lose their names.
    await ok("keys.deleteKey", { keyId: busy.keyId });
    const [deleted] = (await ok("analytics.listTopKeys", range)).keys;
    assert.deepEqual(deleted, { keyId: busy.keyId, ...ofBusy });
    // Another workspace has none of it.
    assert.equal(
      (await server.ok("analytics.listTopKeys", { ...range, limit: 100 })).keys.some(
        ({ keyId }: { keyId: string }) => keyId === busy.keyId,
      ),
      false,
    );
  });

  it("rank keys of one API for a root key that may read it alone, without names that it may not read", async () => {
    const [apiId, hidden] = [await server.createApi(), await server.createApi()];
    const { keyId, key } = await server.createKey(apiId, { name: "named" });
    await server.verify(key);
    await server.pass(SECOND);
    const { key: as } = await server.grant(`apis.${apiId}.read_analytics`);
    const range = thisMinute(server);
    const { keys } = await server.ok("analytics.listTopKeys", { ...range, apiId }, { as });
    assert.deepEqual(keys, [{ keyId, total: 1, valid: 1, outcomes: { VALID: 1 }, creditsSpent: 0 }]);
    await server.rejected("analytics.listTopKeys", range, "insufficient_permissions", { as });
    await server.rejected("analytics.listTopKeys", { ...range, apiId: hidden }, "insufficient_permissions", { as });
    await server.rejected("analytics.listTopIdentities", { ...range, apiId }, "insufficient_permissions", { as });
    const { key: reader } = await server.grant("identities.*.read_identity");
    assert.deepEqual((await server.ok("analytics.listTopIdentities", range, { as: reader })).granularity, "hour");
    await server.rejected("analytics.listTopIdentities", { ...range, apiId }, "insufficient_permissions", {
      as: reader,
    });
  });

  it("count the verifications of several keys and APIs in one call, as each of them is counted", async () => {
    const [apiId, hidden] = [await server.createApi(), await server.createApi()];
    const [used, unused, deleted] = await Promise.all([1, 2, 3].map(() => server.createKey(apiId)));
    await server.verify(used!.key);
    await server.verify(used!.key);
    await server.verify(deleted!.key);
    await server.ok("keys.deleteKey", { keyId: deleted!.keyId });
    await server.verify(deleted!.key);
    await server.pass(SECOND);
    const { end } = thisMinute(server);
    const range = { start: end - 3 * MINUTE, end, granularity: "minute" };
    const keyIds = [unused!.keyId, used!.keyId, "key_0", deleted!.keyId, used!.keyId];
    const { keys, apis } = await server.ok("analytics.listUsage", { keyIds, apiIds: [apiId, "api_0"], ...range });
    const time = end - MINUTE;
    assert.deepEqual(keys, [
      { keyId: unused!.keyId, total: 0, valid: 0, series: [] },
      { keyId: used!.keyId, total: 2, valid: 2, series: [{ time, total: 2, valid: 2 }] },
      { keyId: deleted!.keyId, total: 2, valid: 1, series: [{ time, total: 2, valid: 1 }] },
    ]);
    assert.deepEqual(apis, [{ apiId, total: 4, valid: 3, series: [{ time, total: 4, valid: 3 }] }]);

    const { key: as } = await server.grant(`apis.${apiId}.read_analytics`);
    assert.equal((await server.ok("analytics.listUsage", { keyIds, ...range }, { as })).keys.length, 3);
    await server.rejected("analytics.listUsage", { apiIds: [apiId, hidden], ...range }, "insufficient_permissions", {
      as,
    });
    const many = { keyIds: Array.from({ length: 60 }, (_, i) => `key_${i}`), ...range };
    const apiIds = Array.from({ length: 41 }, (_, i) => `api_${i}`);
    assert.match(
      (await server.rejected("analytics.listUsage", { ...many, apiIds }, "invalid_input")).detail,
      /have 101 ids: send at most 100/,
    );
    assert.match(
      (await server.rejected("analytics.listUsage", { ...many, start: end - 3 * HOUR }, "invalid_input")).detail,
      /180 buckets of one minute for each of 60 ids/,
    );
  });

  it("round ranges to whole buckets, of a size that suits the range", async () => {
    const { keyId } = await server.createKey(await server.createApi());
    const now = Math.floor(server.clock.now() / DAY) * DAY + 5 * HOUR + 10 * MINUTE + 1;
    const ask = async (length: number, more: object = {}) => {
      const { start, end, granularity, series } = await keyStats(keyId, { start: now - length, end: now, ...more });
      return [granularity, now - start, end - now, series.length];
    };
    assert.deepEqual(await ask(1), ["minute", 1, MINUTE - 1, 1]);
    assert.deepEqual(await ask(3 * HOUR), ["minute", 3 * HOUR + 1, MINUTE - 1, 181]);
    const intoHour = 10 * MINUTE + 1;
    assert.deepEqual(await ask(3 * HOUR + 1), ["hour", 3 * HOUR + intoHour, HOUR - intoHour, 4]);
    assert.deepEqual(await ask(7 * DAY), ["hour", 7 * DAY + intoHour, HOUR - intoHour, 169]);
    const intoDay = 5 * HOUR + intoHour;
    assert.deepEqual(await ask(7 * DAY + 1), ["day", 7 * DAY + intoDay, DAY - intoDay, 8]);
    assert.deepEqual(await ask(1, { granularity: "day" }), ["day", intoDay, DAY - intoDay, 1]);
  });

  it("reject invalid ranges", async () => {
    const { keyId } = await server.createKey(await server.createApi());
    const now = Math.floor(server.clock.now() / DAY) * DAY;
    const rejected = async (start: number, end: number, granularity: string) =>
      (await server.rejected("analytics.getKeyStats", { keyId, start, end, granularity }, "invalid_input")).detail;
    assert.equal(await rejected(now, now, "minute"), "`start` must lie before `end`.");
    assert.match(await rejected(now, now - 1, "minute"), /before/);
    assert.match(await rejected(now, now + 10_001 * MINUTE, "minute"), /10001 buckets .* at most 10000/);
    await keyStats(keyId, { start: now, end: now + 10_000 * MINUTE, granularity: "minute" });
    assert.match(
      await rejected(now - 8 * DAY, now - 2 * DAY, "minute"),
      /Counts by the minute are kept from .* coarser/,
    );
    assert.match(await rejected(now - 91 * DAY, now, "hour"), /Counts by the hour are kept/);
    assert.match(await rejected(now - 731 * DAY, now, "day"), /Counts by the day are kept/);
    const top = { start: now - 91 * DAY, end: now, granularity: "hour" };
    assert.match((await server.rejected("analytics.listTopKeys", top, "invalid_input")).detail, /by the hour are kept/);
    await server.rejected("analytics.listTopKeys", { ...top, granularity: "minute" }, "invalid_input");
    await server.rejected("analytics.listTopIdentities", { ...top, end: top.start }, "invalid_input");
    await keyStats(keyId, { start: now - 729 * DAY, end: now, granularity: "day" });
  });

  it("return not found before a missing permission", async () => {
    const { key: as } = await server.grant("apis.*.read_key");
    const range = thisMinute(server);
    const { keyId } = await server.createKey(await server.createApi());
    await server.rejected("analytics.getKeyStats", { keyId, ...range }, "insufficient_permissions", { as });
    await server.rejected("analytics.getKeyStats", { keyId: "key_0", ...range }, "key_not_found", { as });
    await server.rejected("analytics.getApiStats", { apiId: "api_0", ...range }, "api_not_found", { as });
  });

  it("record the last use of a key, at most every 30 seconds", async () => {
    const { keyId, key } = await server.createKey(await server.createApi());
    const writes: number[] = [];
    server.store.interception = (name, proceed) => {
      if (name === "recordKeyUses") writes.push(server.clock.now());
      return proceed();
    };
    const begin = server.clock.now();
    assert.equal((await server.getKey(keyId)).lastUsedAt, undefined);
    await server.verify(key);
    assert.deepEqual(writes, []);
    await server.pass(SECOND);
    assert.equal((await server.getKey(keyId)).lastUsedAt, begin);
    for (let second = 0; second < 20; second++) {
      await server.verify(key);
      await server.pass(SECOND);
    }
    const last = server.clock.now() - SECOND;
    assert.equal(writes.length, 1);
    await server.pass(15 * SECOND);
    assert.equal((await server.getKey(keyId)).lastUsedAt, last);
    assert.equal(writes.length, 2);
    await server.pass(60 * SECOND);
    assert.equal(writes.length, 2);
    server.store.interception = undefined;
  });

  it("store the latest use of each of many keys, and the first use as an event", async () => {
    const { key: as } = await server.workspace("many-uses");
    const { apiId } = await server.ok("apis.createApi", { name: "many uses" }, { as });
    const keyIds: string[] = [];
    for (let i = 0; i < 60; i++) keyIds.push((await server.ok("keys.createKey", { apiId }, { as })).keyId);
    const record = (uses: readonly KeyUse[]) => server.store.transact("recordKeyUses", uses);
    const now = server.clock.now();
    const expected = new Map<string, number>();
    // Two of three keys are used, then all, a third of them with an earlier time; some keys do not exist.
    await record(keyIds.filter((_, i) => i % 3 > 0).map((keyId) => ({ keyId, at: now })));
    await record([
      ...keyIds.map((keyId, i) => ({ keyId, at: i % 3 === 1 ? now - 1 : now + i })),
      ...Array.from({ length: 30 }, (_, i) => ({ keyId: `key_${i}`, at: now })),
    ]);
    for (const [i, keyId] of keyIds.entries()) expected.set(keyId, i % 3 === 1 ? now : now + i);
    for (const keyId of keyIds)
      assert.equal((await server.ok("keys.getKey", { keyId }, { as })).lastUsedAt, expected.get(keyId));
    const events = await server.ok("events.listEvents", { types: ["key.first_used"] }, { as });
    const firstUses = keyIds.map((keyId, i) => [keyId, i % 3 > 0 ? now : now + i]);
    assert.deepEqual(
      new Map(events.map(({ data }: { data: { keyId: string; usedAt: number } }) => [data.keyId, data.usedAt])),
      new Map(firstUses as [string, number][]),
    );
    assert.equal(events.length, keyIds.length);
  });

  it("are walked through by a start, which loads the keys that were used last", async () => {
    const { key: as } = await server.workspace("recent-uses");
    const { apiId } = await server.ok("apis.createApi", { name: "recent uses" }, { as });
    // Later than the uses of all other keys.
    const now = server.clock.now() + 1_000 * DAY;
    const ages = new Map<string, number>();
    for (let i = 0; i < 40; i++) {
      ages.set((await server.ok("keys.createKey", { apiId }, { as })).keyId, Math.floor(1.5 ** i));
    }
    const uses = [...ages].map(([keyId, age]) => ({ keyId, at: now - age }));
    await server.store.transact("recordKeyUses", uses);
    const walk = async (read: (cursor: string) => Promise<string | null>) => {
      for (let cursor: string | null = ""; cursor !== null; cursor = await read(cursor));
    };

    const steps = new Map<number, number>();
    await walk(async (cursor) => {
      const { ages, next } = await server.store.read("lastUseAges", { cursor, limit: 7, now: instantAt(now) });
      for (const { step, keys } of ages) steps.set(step, (steps.get(step) ?? 0) + keys);
      return next;
    });
    const keysBelow = (age: number) =>
      [...steps].reduce((sum, [step, keys]) => (ageAbove(step) <= age ? sum + keys : sum), 0);
    for (const age of ages.values()) {
      const used = [...ages.values()].filter((other) => other < age).length;
      assert(keysBelow(age) <= used, `${age}`);
      assert(keysBelow(1.1 * age + 2) >= used, `${age}`);
    }

    for (const [since, before, limit, idsMax] of [
      [now - 1_000, now - 50, 7, 100],
      [now - 1_000, now - 50, 1_000, 3],
      [now - 10, now + 1, 11, 2],
    ] as const) {
      const found: string[] = [];
      await walk(async (cursor) => {
        const { ids, next } = await server.store.read("recentKeyIds", { cursor, limit, idsMax, since, before });
        assert(ids.length <= Math.min(limit, idsMax));
        found.push(...ids);
        return next;
      });
      const expected = uses.filter(({ at }) => at >= since && at < before).map(({ keyId }) => keyId);
      assert.deepEqual(found, expected.sort());
    }
  });
});

describe("analytics whose store is away", () => {
  const count = async (server: TestServer, keyId: string, start: number) =>
    (await server.ok("analytics.getKeyStats", { keyId, start, end: start + 10 * MINUTE })).total;

  it("are complete when it is back, and count nothing twice", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const { keyId, key } = await server.createKey(await server.createApi());
    const { start } = thisMinute(server);
    let made = 0;
    const verify = async () => {
      await server.verify(key);
      made++;
    };
    let turn = 0;
    server.analytics.interception = async (name, proceed) => {
      if (name !== "write") return proceed();
      // It fails sometimes before the write and sometimes after it; the caller cannot distinguish them.
      if (turn++ % 2) await proceed();
      throw new Error("away");
    };
    for (let second = 0; second < 60; second++) {
      await verify();
      await server.pass(SECOND);
    }
    server.analytics.interception = undefined;
    await verify();
    for (let second = 0; second < 20; second++) await server.pass(SECOND);
    assert.equal(await count(server, keyId, start), made);
    const lines = server.logged.filter(({ message }) => message.startsWith("the store of the analytics"));
    assert.deepEqual(
      lines.map(({ level }) => level),
      ["error", "info"],
    );
    await server.service.stop();
    assert.deepEqual(readdirSync(join(server.dataDirectory, "analytics")), []);
  });

  it("wait on disk for the next process", async (t) => {
    const first = await openTestServer();
    t.after(() => first.close());
    const { keyId, key } = await first.createKey(await first.createApi());
    const { start } = thisMinute(first);
    first.analytics.interception = (name, proceed) =>
      name === "write" ? Promise.reject(new Error("away")) : proceed();
    for (let second = 0; second < 3; second++) {
      await first.verify(key);
      await first.pass(SECOND);
    }
    await first.verify(key);
    await first.service.stop();
    const batches = () =>
      readdirSync(join(first.dataDirectory, "analytics")).filter((name) => !/\.(uses|taken)$/.test(name));
    assert.equal(batches().length, 1);

    const next = await openTestServer({ beside: first });
    t.after(() => next.close());
    // They are read from the disk while the service serves.
    await eventually("the waiting events to be counted", async () => {
      await next.pass(SECOND);
      return batches().length === 0;
    });
    assert.equal(await count(next, keyId, start), 4);
  });

  it("are counted as lost when the disk fails too, and verification continues", async (t) => {
    // A file in place of the folder acts as a disk without space.
    const server = await openTestServer({ settings: { SPOOL_BYTES: "1m" } });
    t.after(() => server.close());
    const folder = join(server.dataDirectory, "analytics");
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "");
    server.analytics.interception = (name, proceed) =>
      name === "write" ? Promise.reject(new Error("away")) : proceed();
    const { key } = await server.createKey(await server.createApi());
    // Tags make the batches large, so that the memory is full soon.
    const tags = Array.from({ length: 10 }, (_, i) => `${i}`.padEnd(128, "x"));
    let verified = 0;
    const lost = async () => Number(/^latchkey_analytics_lost_total (\d+)/m.exec(await server.scrape())![1]);
    for (let second = 0; second < 200 && (await lost()) === 0; second++) {
      for (let i = 0; i < 100; i++) {
        assert.equal((await server.verify(key, { tags: [...tags.slice(1), `${verified++}`] })).code, "VALID");
      }
      await server.pass(SECOND);
    }
    assert((await lost()) > 0);
    assert(server.logged.some(({ message }) => message.startsWith("analytics were lost")));
  });
});
