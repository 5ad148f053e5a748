/** Holds over the API. Their books are compared with a model in the tests of the ledger. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { sql as raw } from "kysely";
import { type Instant, instantAt } from "../../../engine/src/clock/clock.ts";
import type { HoldState } from "../../../engine/src/credits/hold.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { readEarlierHolds } from "../../src/features/credits/statements/holds.ts";
import { closedHoldsRetention, expiredHoldsRetention, HoldReader } from "../../src/features/holds/statements.ts";
import type { Retained, RetentionPlace, RetentionTask } from "../../src/platform/store/retention.ts";
import { describeOnStores, type TestServer } from "../harness.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describeOnStores("the first hold", (server, store) => {
  it("is not made beside an earlier release, which cannot be started afterwards", async () => {
    const { key } = await server.createKey(await server.createApi(), { credits: { remaining: 10 } });
    const body = { key, hold: { ttl: MINUTE } };
    if (store === "postgres") {
      await server.besideEarlierRelease(async () => {
        const { detail } = await server.rejected("keys.verifyKey", body, "precondition_failed");
        assert.match(detail, /Upgrade every node/);
      });
    }
    const needs = () =>
      server.change([], async ({ db }) => {
        const { rows } = await raw<{ needs: number }>`select max(needs) as needs from schema_steps`.execute(db);
        return Number(rows[0]!.needs);
      });
    assert.equal(await needs(), 0);
    const { hold } = await server.ok("keys.verifyKey", body);
    assert.equal(await needs(), 38);
    await server.ok("holds.releaseHold", { holdId: hold.holdId });
  });
});

describeOnStores("holds", tests);

describeOnStores(
  "the bounds of open holds",
  (server) => {
    const hold = { ttl: MINUTE };

    it("are those of a key and of a workspace, and ends make room", async () => {
      const apiId = await server.createApi();
      const [one, other, third] = await Promise.all([1, 2, 3].map(() => server.createKey(apiId)));
      const made = [await server.verify(one!.key, { hold }), await server.verify(one!.key, { hold })];
      const { detail } = await server.rejected("keys.verifyKey", { key: one!.key, hold }, "workspace_quota_exceeded");
      assert.match(detail, /LATCHKEY_HOLDS_PER_KEY/);
      assert.equal((await server.verify(one!.key)).code, "VALID");
      assert.equal((await server.verify(other!.key, { hold })).code, "VALID");
      const full = await server.rejected("keys.verifyKey", { key: third!.key, hold }, "workspace_quota_exceeded");
      assert.match(full.detail, /LATCHKEY_HOLDS_PER_WORKSPACE/);
      const [first, second] = made.map(({ hold: { holdId } }) => ({ holdId }));
      await server.ok("holds.settleHold", { ...first, credits: 0 });
      await server.ok("holds.settleHold", { ...first, credits: 0 });
      await server.ok("holds.extendHold", { ...second, ttl: HOUR });
      assert.equal((await server.verify(third!.key, { hold })).code, "VALID");
      await server.rejected("keys.verifyKey", { key: third!.key, hold }, "workspace_quota_exceeded");
    });

    it("let the repetition of a call that made a hold pass", async () => {
      const { key: as } = await server.workspace("full");
      const { apiId } = await server.ok("apis.createApi", { name: "full" }, { as });
      const { key } = await server.ok("keys.createKey", { apiId, credits: { remaining: 10 } }, { as });
      const headers = { "Idempotency-Key": "first-of-two" };
      const first = await server.ok("keys.verifyKey", { key, hold }, { as, headers });
      await server.ok("keys.verifyKey", { key, hold }, { as });
      await server.rejected("keys.verifyKey", { key, hold }, "workspace_quota_exceeded", { as });
      assert.deepEqual(await server.ok("keys.verifyKey", { key, hold }, { as, headers }), first);
    });

    it("leave room where no hold was made in the end", async () => {
      const { key: as } = await server.workspace("refused");
      const { apiId } = await server.ok("apis.createApi", { name: "refused" }, { as });
      const { key } = await server.ok("keys.createKey", { apiId, credits: { remaining: 1 } }, { as });
      for (let call = 0; call < 5; call++) {
        const answer = await server.ok("keys.verifyKey", { key, hold, credits: { cost: 2 } }, { as });
        assert.deepEqual([answer.code, answer.hold], ["USAGE_EXCEEDED", undefined]);
      }
      for (let call = 0; call < 5; call++) {
        server.store.interception = (name, proceed) => {
          if (name === "spend") throw new StoreUnavailable("unreachable");
          return proceed();
        };
        await server.rejected("keys.verifyKey", { key, hold }, "service_unavailable", { as });
        server.store.interception = undefined;
      }
      assert.equal((await server.ok("keys.verifyKey", { key, hold }, { as })).code, "VALID");
    });
  },
  { HOLDS_PER_KEY: "2", HOLDS_PER_WORKSPACE: "3" },
);

function tests(server: TestServer, store: string): void {
  const createBudget = async (name: string, remaining: number, more: object = {}): Promise<string> =>
    (await server.ok("budgets.createBudget", { name, remaining, ...more })).budgetId;
  const createKey = async (more: object = { credits: { remaining: 100 } }) =>
    server.createKey(await server.createApi(), more);
  const make = async (key: string, cost = 40, hold: object = {}): Promise<string> => {
    const answer = await server.verify(key, { credits: { cost }, hold: { ttl: MINUTE, ...hold } });
    assert.equal(answer.code, "VALID");
    return answer.hold.holdId;
  };
  const settle = (holdId: string, credits: number, more: object = {}) =>
    server.ok("holds.settleHold", { holdId, credits, ...more });
  const release = (holdId: string) => server.ok("holds.releaseHold", { holdId });
  const get = (holdId: string) => server.ok("holds.getHold", { holdId });
  const left = async (keyId: string): Promise<number> => (await server.getKey(keyId)).credits.remaining;
  /** What a budget has: remaining, held, spent and lapsed. */
  const books = async (budgetId: string) => {
    const { remaining, held, totals } = await server.ok("budgets.getBudget", { budgetId });
    assert.equal(totals.granted, totals.spent + held + remaining + totals.lapsed);
    return [remaining, held, totals.spent, totals.lapsed];
  };
  const eventsOf = async (holdId: string) =>
    (await server.ok("events.listEvents", { objectId: holdId })).map(
      ({ type, data }: { type: string; data: object }) => [type, data],
    );
  /** Lets a hold reach its expiry by the clock that decides. */
  const reachExpiry = async (holdId: string) => {
    await server.change([], ({ db }) =>
      db.updateTable("holds").set({ expires_at: raw`created_at + 1` }).where("id", "=", holdId).execute(),
    );
    server.clock.step(2);
  };
  /** Lets a hold expire as the sweep does. */
  const expire = async (holdId: string) => {
    await reachExpiry(holdId);
    for (let pass = 0; pass < 20 && (await get(holdId)).state === "open"; pass++) await server.pass(1_000);
    assert.equal((await get(holdId)).state, "expired");
  };

  it("take their cost from the key and its budgets together, and answer what is left (rule 90)", async () => {
    const root = await createBudget("company", 500);
    const team = await createBudget("team", 200, { parentId: root });
    const { keyId, key } = await createKey({ credits: { remaining: 100 }, budgetId: team });
    const answer = await server.verify(key, { credits: { cost: 40 }, hold: { ttl: MINUTE } });
    assert.deepEqual([answer.code, answer.credits], ["VALID", 60]);
    const state = (budgetId: string, name: string, remaining: number) => ({
      budgetId,
      name,
      remaining,
      held: 40,
      exceeded: false,
    });
    assert.deepEqual(answer.budgets, [state(team, "team", 160), state(root, "company", 460)]);
    const { holdId, expiresAt } = answer.hold;
    const shown = await get(holdId);
    assert.deepEqual(shown, {
      holdId,
      keyId,
      apiId: answer.apiId,
      state: "open",
      credits: 40,
      onExpiry: "release",
      createdAt: expiresAt - MINUTE,
      expiresAt,
    });
    assert.deepEqual(await books(team), [160, 40, 0, 0]);
    const explained = await server.ok("keys.explainVerification", { keyId, hold: { ttl: MINUTE } });
    assert.deepEqual(
      [explained.credits.held, explained.budgets.map(({ held }: { held: number }) => held)],
      [40, [40, 40]],
    );
    const rejected = await server.verify(key, { credits: { cost: 70 } });
    assert.deepEqual(
      [rejected.code, rejected.budgets.map(({ held }: { held: number }) => held)],
      ["USAGE_EXCEEDED", [40, 40]],
    );

    assert.deepEqual(await settle(holdId, 15), { holdId, state: "settled", charged: 15, uncovered: 0, budgets: [] });
    assert.deepEqual([await left(keyId), await books(team), await books(root)], [85, [185, 0, 15, 0], [485, 0, 15, 0]]);
    const { closedAt, ...settled } = await get(holdId);
    assert.deepEqual(settled, { ...shown, state: "settled", charged: 15, uncovered: 0 });
    assert(closedAt >= shown.createdAt);
  });

  it("are not made by a verification with another code, or without a root key (rule 90)", async () => {
    const limit = { name: "calls", limit: 1, duration: HOUR, autoApply: true };
    const { keyId, key } = await createKey({ credits: { remaining: 10 }, ratelimits: [limit] });
    const hold = { ttl: MINUTE };
    const codes: unknown[] = [];
    const attempt = async (more: object) => {
      const answer = await server.verify(key, { hold, ...more });
      codes.push(answer.code);
      assert.equal(answer.hold, undefined);
    };
    await attempt({ credits: { cost: 11 } });
    await attempt({ permissions: "never.had" });
    await server.verify(key, { credits: { cost: 0 } });
    await attempt({});
    await server.ok("keys.updateKey", { keyId, enabled: false });
    await attempt({});
    assert.deepEqual(codes, ["USAGE_EXCEEDED", "INSUFFICIENT_PERMISSIONS", "RATE_LIMITED", "DISABLED"]);
    await server.rejected("keys.verifyKey", { key, hold }, "authentication_missing", { as: null });
    assert.deepEqual([await left(keyId), await server.ok("holds.listHolds", { keyId })], [10, []]);
    for (const ttl of [999, DAY + 1, 1.5]) {
      await server.rejected("keys.verifyKey", { key, hold: { ttl } }, "invalid_input");
    }
  });

  it("do not charge credits that were removed and set again, whatever they held", async () => {
    const { keyId, key } = await createKey({ credits: { remaining: 100 } });
    const begin = async (cost: number, ttl: number): Promise<string> =>
      (await server.verify(key, { credits: { cost }, hold: { ttl } })).hold.holdId;
    // The first one is made while nothing is held, and expires before one that holds credits.
    const holds = [await begin(0, MINUTE), await begin(1, HOUR), await begin(0, HOUR)];
    await server.ok("keys.updateKey", { keyId, credits: null });
    await server.ok("keys.updateKey", { keyId, credits: { remaining: 100 } });
    for (const holdId of holds) {
      await settle(holdId, 50);
      assert.equal(await left(keyId), 100);
    }
    const alone = await begin(0, MINUTE);
    await server.ok("keys.updateCredits", { keyId, operation: "set", value: null });
    await server.ok("keys.updateCredits", { keyId, operation: "set", value: 100 });
    await settle(alone, 50);
    assert.equal(await left(keyId), 100);
  });

  it("that expired do not charge credits that were removed and set again", async () => {
    for (const [onExpiry, charged] of [
      ["release", 0],
      ["charge", 10],
    ] as const) {
      const { keyId, key } = await createKey({ credits: { remaining: 100 } });
      const { holdId } = (await server.verify(key, { credits: { cost: 10 }, hold: { ttl: MINUTE, onExpiry } })).hold;
      await expire(holdId);
      await server.ok("keys.updateKey", { keyId, credits: null });
      await server.ok("keys.updateCredits", { keyId, operation: "set", value: 100 });
      assert.deepEqual([(await settle(holdId, 50)).charged, await left(keyId)], [charged, 100]);
    }
  });

  it("end as the table of their states says (rule 91)", async () => {
    const { key } = await createKey({ credits: { remaining: 10_000 } });
    const reach: Record<HoldState, (holdId: string) => Promise<unknown>> = {
      open: async () => {},
      settled: (holdId) => settle(holdId, 7),
      released: release,
      expired: expire,
    };
    const changes: Record<string, [operation: string, body: object]> = {
      "settle 7": ["settleHold", { credits: 7 }],
      "settle 8": ["settleHold", { credits: 8 }],
      release: ["releaseHold", {}],
      extend: ["extendHold", { ttl: 2 * MINUTE }],
    };
    /** By state, what each change leads to. */
    const table: Record<HoldState, Record<string, HoldState | 409>> = {
      open: { "settle 7": "settled", "settle 8": "settled", release: "released", extend: "open" },
      settled: { "settle 7": "settled", "settle 8": 409, release: 409, extend: 409 },
      released: { "settle 7": 409, "settle 8": 409, release: "released", extend: 409 },
      expired: { "settle 7": "settled", "settle 8": "settled", release: 409, extend: 409 },
    };
    for (const [state, rows] of Object.entries(table)) {
      for (const [change, expected] of Object.entries(rows)) {
        const holdId = await make(key);
        await reach[state as HoldState](holdId);
        const before = await get(holdId);
        const [operation, body] = changes[change]!;
        const reply = await server.call(`holds.${operation}`, { holdId, ...body });
        const after = await get(holdId);
        const at = `${change} of a hold that is ${state}`;
        assert.equal(after.state, expected === 409 ? before.state : expected, at);
        if (expected === 409) {
          assert.deepEqual([reply.problem, after], ["hold_closed", before], at);
          assert.match(reply.body.error.detail, new RegExp(`^The hold is ${state}`));
        } else assert.equal(reply.status, 200, at);
        if (after.state === "open") await release(holdId);
      }
    }
  });

  it("answer the same end again with what the first one charged, once (rule 91)", async () => {
    const budgetId = await createBudget("once", 50);
    const { keyId, key } = await createKey({ credits: { remaining: 100 }, budgetId });
    const holdId = await make(key);
    const first = await settle(holdId, 60);
    assert.deepEqual(first, {
      holdId,
      state: "settled",
      charged: 50,
      uncovered: 10,
      budgets: [{ budgetId, uncovered: 10 }],
    });
    const answers = await Promise.all([1, 2, 3].map(() => settle(holdId, 60)));
    assert.deepEqual(answers, [first, first, first]);
    assert.deepEqual([await left(keyId), await books(budgetId)], [40, [0, 0, 50, 0]]);
    assert.deepEqual(await eventsOf(holdId), [
      [
        "hold.uncovered",
        {
          holdId,
          keyId,
          apiId: (await get(holdId)).apiId,
          credits: 40,
          charged: 50,
          uncovered: 10,
          budgets: [{ budgetId, uncovered: 10 }],
        },
      ],
    ]);
  });

  it("are charged by a larger settlement as far as each balance has credits, and one that never denies wholly (rule 92)", async () => {
    const root = await createBudget("company", 45, { onEmpty: "allow" });
    const team = await createBudget("team", 70, { parentId: root });
    const { keyId, key } = await createKey({ credits: { remaining: 50 }, budgetId: team });
    const { charged, uncovered, budgets } = await settle(await make(key), 100);
    assert.deepEqual([charged, uncovered, budgets], [50, 50, [{ budgetId: team, uncovered: 30 }]]);
    assert.deepEqual([await left(keyId), await books(team), await books(root)], [0, [0, 0, 70, 0], [-55, 0, 100, 0]]);
  });

  it("expire at their time and give back or spend what they held (rule 93)", async () => {
    const budgetId = await createBudget("expiring", 100);
    const { keyId, key } = await createKey({ credits: { remaining: 100 }, budgetId });
    const given = await make(key);
    await expire(given);
    assert.deepEqual([await left(keyId), await books(budgetId)], [100, [100, 0, 0, 0]]);
    const spent = await make(key, 30, { onExpiry: "charge" });
    await expire(spent);
    assert.deepEqual([await left(keyId), await books(budgetId)], [70, [70, 0, 30, 0]]);
    const events = await Promise.all([given, spent].map(eventsOf));
    const { expiresAt, apiId } = await get(spent);
    assert.deepEqual(events[1], [
      ["hold.expired", { holdId: spent, keyId, apiId, credits: 30, expiresAt, charged: 30 }],
    ]);
    assert.deepEqual([events[0].length, events[0][0][1].charged], [1, 0]);

    assert.equal((await settle(given, 25)).charged, 25);
    assert.equal((await settle(spent, 10)).charged, 10);
    assert.deepEqual([await left(keyId), await books(budgetId)], [65, [65, 0, 35, 0]]);
  });

  it("give their credits at once to a call that lacks them when their time has come (rule 93)", async () => {
    const budgetId = await createBudget("lacking", 50);
    const { key } = await createKey({ budgetId });
    const holdId = await make(key);
    assert.equal((await server.verify(key, { credits: { cost: 50 } })).code, "USAGE_EXCEEDED");
    await reachExpiry(holdId);
    await server.change([], ({ db }) =>
      db.updateTable("balances").set({ next_expiry_at: 1 }).where("pool_id", "=", budgetId).execute(),
    );
    assert.equal((await server.verify(key, { credits: { cost: 50 } })).code, "VALID");
    assert.equal((await get(holdId)).state, "expired");
  });

  it("are extended, never shortened, and for 24 hours in all (rule 93)", async () => {
    const { key } = await createKey();
    const holdId = await make(key);
    const { createdAt, expiresAt } = await get(holdId);
    assert.equal(expiresAt, createdAt + MINUTE);
    const extend = async (ttl: number) => (await server.ok("holds.extendHold", { holdId, ttl })).expiresAt;
    assert.equal(await extend(1_000), expiresAt);
    const later = await extend(HOUR);
    assert(later >= createdAt + HOUR && later < createdAt + HOUR + MINUTE);
    await server.change([], ({ db }) =>
      db
        .updateTable("holds")
        .set({ created_at: createdAt - MINUTE })
        .where("id", "=", holdId)
        .execute(),
    );
    assert.equal(await extend(DAY), createdAt - MINUTE + DAY);
    await release(holdId);
  });

  it("let what they give back after a refill lapse (rule 89)", async () => {
    const budgetId = await createBudget("refilled", 100, { refill: { interval: "hourly", amount: 100 } });
    const { key } = await createKey({ budgetId });
    const holdId = await make(key, 40, { ttl: 3 * HOUR });
    server.clock.step(HOUR);
    assert.deepEqual(await books(budgetId), [100, 40, 0, 60]);
    await settle(holdId, 10);
    assert.deepEqual(await books(budgetId), [100, 0, 10, 90]);
  });

  it("are changed with verify_key of their API and read with read_key (rule 94)", async () => {
    const { key } = await createKey();
    const holdId = await make(key);
    const { apiId } = await get(holdId);
    const { key: verifier } = await server.grant(`apis.${apiId}.verify_key`);
    const { key: reader } = await server.grant(`apis.${apiId}.read_key`);
    await server.rejected("holds.getHold", { holdId }, "insufficient_permissions", { as: verifier });
    await server.rejected("holds.listHolds", {}, "insufficient_permissions", { as: verifier });
    for (const [operation, body] of [
      ["holds.settleHold", { credits: 1 }],
      ["holds.releaseHold", {}],
      ["holds.extendHold", { ttl: MINUTE }],
    ] as const) {
      await server.rejected(operation, { holdId, ...body }, "insufficient_permissions", { as: reader });
    }
    assert.equal((await get(holdId)).state, "open");
    const listed = await server.ok("holds.listHolds", { keyId: (await get(holdId)).keyId }, { as: reader });
    assert.deepEqual(listed, [await get(holdId)]);
    assert.equal((await server.ok("holds.settleHold", { holdId, credits: 1 }, { as: verifier })).charged, 1);
  });

  it("have one id for a repeated verification, at cost 0 too", async () => {
    const { keyId, key } = await createKey();
    for (const cost of [40, 0]) {
      const headers = { "Idempotency-Key": `hold-${keyId}-${cost}` };
      const body = { key, credits: { cost }, hold: { ttl: MINUTE } };
      const first = await server.ok("keys.verifyKey", body, { headers });
      const again = await server.ok("keys.verifyKey", body, { headers });
      assert.deepEqual(again.hold, first.hold);
      await release(first.hold.holdId);
    }
    assert.equal((await server.ok("holds.listHolds", { keyId })).length, 2);
  });

  it("keep a budget from being deleted while they are open (rule 88)", async () => {
    const budgetId = await createBudget("kept", 100);
    const { keyId, key } = await createKey({ budgetId });
    const holdId = await make(key);
    await server.ok("keys.updateKey", { keyId, budgetId: null });
    const { detail } = await server.rejected("budgets.deleteBudget", { budgetId }, "budget_in_use");
    assert.match(detail, /^Open holds/);
    await release(holdId);
    await server.ok("budgets.deleteBudget", { budgetId });
  });

  it("count as a verification without credits, and their settlement as credits with its tags", async () => {
    const budgetId = await createBudget("counted", 100);
    const { keyId, key } = await createKey({ credits: { remaining: 100 }, externalId: "counted", budgetId });
    const holdId = await make(key);
    const stats = async (more: object = {}) => {
      const now = server.clock.now();
      const range = { start: now - HOUR, end: now + HOUR, granularity: "hour", ...more };
      const { total, valid, creditsSpent } = await server.ok("analytics.getKeyStats", { keyId, ...range });
      const ofBudget = await server.ok("analytics.getBudgetStats", { budgetId, ...range });
      assert.deepEqual([ofBudget.total, ofBudget.valid, ofBudget.creditsSpent], [total, valid, creditsSpent]);
      return [total, valid, creditsSpent];
    };
    /** The counts, which come some seconds later. */
    const counted = async (expected: number[], more: object = {}) => {
      for (let pass = 0; pass < 20 && String(await stats(more)) !== String(expected); pass++) await server.pass(1_000);
      assert.deepEqual(await stats(more), expected);
    };
    const tags = ["model=large"];
    await counted([1, 1, 0]);
    await settle(holdId, 25, { tags });
    await settle(holdId, 25, { tags });
    await counted([1, 1, 25]);
    await counted([0, 0, 25], { tags });
    const charged = await make(key, 30, { onExpiry: "charge" });
    await expire(charged);
    await counted([2, 2, 55]);
    await settle(charged, 10);
    await counted([2, 2, 35]);
  });

  it("take and charge nothing for a key without credits and budgets", async () => {
    const { keyId, key } = await createKey({});
    const nothing = { charged: 0, uncovered: 0, budgets: [] };
    const settled = await make(key);
    assert.deepEqual(await settle(settled, 873), { holdId: settled, state: "settled", ...nothing });
    const spent = await make(key, 40, { onExpiry: "charge" });
    await expire(spent);
    assert.equal((await get(spent)).charged, 0);
    assert.deepEqual(await settle(spent, 7), { holdId: spent, state: "settled", ...nothing });
    // Counted after the settlements.
    await server.verify(key);
    const range = { start: server.clock.now() - HOUR, end: server.clock.now() + HOUR, granularity: "hour" };
    const stats = () => server.ok("analytics.getKeyStats", { keyId, ...range });
    for (let pass = 0; pass < 20 && (await stats()).total < 3; pass++) await server.pass(1_000);
    const { total, creditsSpent } = await stats();
    assert.deepEqual([total, creditsSpent], [3, 0]);
  });

  it("are read by lists and by the ledger without what can be large", async () => {
    const { keyId, key } = await createKey();
    const holdId = await make(key);
    await settle(holdId, 25, { ratelimits: [] });
    await server.change([], async (sql) => {
      const row = await sql.db.selectFrom("holds").selectAll().where("id", "=", holdId).executeTakeFirstOrThrow();
      assert.equal(row.settlement?.length, 43);
      const { limits, settlement, lacks, balances, ...listed } = row;
      const rows = await new HoldReader(sql, server.workspaceId).scan({ order: "asc", limit: 2_000 });
      const found = rows.find(({ key_id }) => key_id === keyId);
      assert(found);
      for (const column of Object.keys({ limits, settlement, lacks, balances })) assert(!(column in found), column);
      assert.equal(found.id, listed.id);
      const { stored } = await readEarlierHolds(sql, [holdId], server.clock.now() as Instant);
      assert.deepEqual([stored[0]?.[0], stored[0]?.length], [holdId, 11]);
    });
  });

  /** The ids of all pages of a list. */
  const list = async (body: object): Promise<string[]> => {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const { body: answer } = await server.call("holds.listHolds", { limit: 1, ...body, cursor });
      found.push(...answer.data.map(({ holdId }: { holdId: string }) => holdId));
      cursor = answer.pagination.cursor;
      if (!answer.pagination.hasMore) return found;
    }
  };

  it("are listed by budget and identity, whatever the key has later, and the newest first", async () => {
    const company = await createBudget("listed company", 100);
    const team = await createBudget("listed team", 100, { parentId: company });
    const { identityId } = await server.ok("identities.createIdentity", { externalId: "listed", budgetId: company });
    const { keyId, key } = await createKey({ budgetId: team });
    const ids: string[] = [];
    for (let cost = 1; cost <= 3; cost++) {
      await server.advance(1);
      ids.push(await make(key, cost));
    }
    await server.ok("keys.updateKey", { keyId, externalId: "listed", budgetId: null });
    await server.advance(1);
    ids.push(await make(key, 4));
    await release(ids[1]!);
    assert.deepEqual(await list({ budgetId: team, order: "desc" }), [ids[2], ids[1], ids[0]]);
    assert.deepEqual(await list({ budgetId: team, order: "desc", state: "open" }), [ids[2], ids[0]]);
    assert.deepEqual(await list({ budgetId: company }), ids);
    for (const identity of ["listed", identityId]) assert.deepEqual(await list({ identity }), [ids[3]]);
    assert.deepEqual(await list({ identity: "listed", budgetId: team }), []);
    assert.deepEqual(await list({ identity: "nobody" }), []);
    assert.deepEqual((await list({ keyId, order: "desc" })).toReversed(), await list({ keyId }));
    for (const id of [ids[0]!, ids[2]!, ids[3]!]) await release(id);
  });

  it("are listed by key and state, page by page", async () => {
    const { keyId, key } = await createKey();
    const ids = [await make(key, 1), await make(key, 2), await make(key, 3)];
    await release(ids[1]!);
    assert.deepEqual((await list({ keyId })).sort(), [...ids].sort());
    assert.deepEqual((await list({ keyId, state: "open" })).sort(), [ids[0], ids[2]].sort());
    assert.deepEqual(await list({ keyId, state: "released" }), [ids[1]]);
    for (const holdId of [ids[0]!, ids[2]!]) await release(holdId);
  });

  it("are counted by key while they can be open", async () => {
    const { keyId, key } = await createKey();
    const { workspaceId } = (await server.change([], ({ db }) =>
      db.selectFrom("keys").select("workspace_id as workspaceId").where("id", "=", keyId).executeTakeFirstOrThrow(),
    )) as { workspaceId: string };
    const [counted, closed, old] = [await make(key, 1), await make(key, 1), await make(key, 1)];
    await release(closed);
    const count = async () =>
      (await server.store.read("countOpenHolds", { workspaceId, now: server.clock.now() })).get(keyId);
    assert.equal(await count(), 2);
    await server.change([], ({ db }) =>
      db
        .updateTable("holds")
        .set({ expires_at: raw`expires_at - ${3 * MINUTE}` })
        .where("id", "=", old)
        .execute(),
    );
    assert.equal(await count(), 1);
    await release(counted);
    await settle(old, 0);
  });

  it("are deleted after their retention when they have ended", async () => {
    const { key } = await createKey();
    const [open, settled, released, expired] = [
      await make(key, 1),
      await make(key, 2),
      await make(key, 3),
      await make(key, 4),
    ];
    await settle(settled, 2);
    await release(released);
    await expire(expired);
    const { expiresAt } = await get(settled);
    const states = async () =>
      Promise.all(
        [open, settled, released, expired].map(async (holdId) => {
          const { body } = await server.call("holds.getHold", { holdId });
          return body.data?.state ?? body.error.status;
        }),
      );
    const retain = (task: RetentionTask, before: number) =>
      server.change([], (sql) => task.step(sql, before as Instant, 100, { at: 0, id: "" }));
    await retain(closedHoldsRetention, expiresAt);
    assert.deepEqual(await states(), ["open", "settled", "released", "expired"]);
    await retain(closedHoldsRetention, expiresAt + HOUR);
    assert.deepEqual(await states(), ["open", 404, 404, "expired"]);
    await retain(expiredHoldsRetention, expiresAt + HOUR);
    assert.deepEqual(await states(), ["open", 404, 404, 404]);
    await server.rejected("holds.settleHold", { holdId: expired, credits: 4 }, "hold_not_found");
    await release(open);
  });

  it("are deleted behind many that stay, which are looked at once", async () => {
    const { key } = await createKey();
    const [settled, behind] = [await make(key, 1), await make(key, 1)];
    await settle(settled, 1);
    await settle(behind, 1);
    const { expiresAt } = await get(settled);
    const before = instantAt(expiresAt + HOUR);
    // From the time of these holds on, because those of other tests stay.
    const start = { at: expiresAt - 5, id: "" };
    await server.change([], async ({ db }) => {
      await raw`
        with recursive numbers (i) as (select 1 union all select i + 1 from numbers where i < 10000)
        insert into holds (id, workspace_id, key_id, api_id, cost, balances, on_expiry, state, charged, created_at,
          expires_at, closed_at)
        select 'hold_many' || i, workspace_id, key_id, api_id, cost, balances, on_expiry, 'expired', 0, created_at,
          ${expiresAt - 3}, closed_at from holds, numbers where id = ${settled}`.execute(db);
      const others = db.updateTable("holds").where("id", "not in", [settled, behind]).where("state", "<>", "expired");
      await others.set({ expires_at: expiresAt - 10 }).execute();
      await db.updateTable("holds").set({ expires_at: expiresAt }).where("id", "=", settled).execute();
      await db
        .updateTable("holds")
        .set({ expires_at: expiresAt - 4, closed_at: before })
        .where("id", "=", behind)
        .execute();
    });
    const look = (after: RetentionPlace) =>
      server.change([], async (sql) => ({
        oldest: await closedHoldsRetention.oldest(sql, before, after),
        done: (await closedHoldsRetention.step(sql, before, 100, after)) as Retained,
      }));
    const first = await look(start);
    assert.deepEqual([first.oldest, first.done.deleted, first.done.end!.at], [before, 0, expiresAt - 3]);
    const second = await look(first.done.end!);
    assert.deepEqual(second, { oldest: expiresAt, done: { deleted: 1, end: { at: before, id: "" } } });
    await server.change([], ({ db }) =>
      db.updateTable("holds").set({ closed_at: 1 }).where("id", "=", behind).execute(),
    );
    const third = await look(second.done.end!);
    assert.deepEqual([third.oldest, third.done.deleted], [null, 0]);
    assert.equal((await look(start)).done.deleted, 1);
    await server.change([], ({ db }) => db.deleteFrom("holds").where("id", "like", "hold_many%").execute());
  });

  if (store === "postgres") {
    it("are not waited for by their retention while a transaction has them", async () => {
      const { key } = await createKey();
      const ids = [await make(key, 1), await make(key, 1)];
      for (const holdId of ids) await settle(holdId, 1);
      const before = instantAt((await get(ids[1]!)).expiresAt + HOUR);
      const lock = await server.openTransaction([], async ({ db }) => {
        await db.selectFrom("holds").select("id").where("id", "=", ids[0]!).forUpdate().execute();
      });
      const retain = () => server.change([], (sql) => closedHoldsRetention.step(sql, before, 1_000, { at: 0, id: "" }));
      await retain();
      assert.equal((await get(ids[0]!)).state, "settled");
      await server.rejected("holds.getHold", { holdId: ids[1] }, "hold_not_found");
      await lock.commit();
      await retain();
      await server.rejected("holds.getHold", { holdId: ids[0] }, "hold_not_found");
    });
  }

  it("satisfy the rules of verify-store, which notice credits that nobody holds", async () => {
    const broken = async () =>
      (await server.store.read("brokenRules", null)).filter(({ rows }: { rows: number }) => rows > 0);
    const budgetId = await createBudget("checked", 100);
    const { key } = await createKey({ budgetId });
    const holdId = await make(key);
    assert.deepEqual(await broken(), []);
    await server.change([], ({ db }) => db.deleteFrom("holds").where("id", "=", holdId).execute());
    assert.deepEqual(await broken(), [{ rule: "a balance holds the credits or slots of its open holds", rows: 1 }]);
  });
}
