import assert from "node:assert/strict";
import { it } from "node:test";
import { describeOnStores, openTestServer, type TestServer } from "../harness.ts";

const MINUTE = 60_000;

/** The minute of the present. */
const minuteOf = ({ clock }: TestServer) => clock.now() - (clock.now() % MINUTE);

async function countsOf(server: TestServer, keyId: string) {
  const start = minuteOf(server) - 10 * MINUTE;
  const { total, valid, outcomes } = await server.ok("analytics.getKeyStats", {
    keyId,
    start,
    end: start + 12 * MINUTE,
  });
  return { total, valid, outcomes };
}

async function lastUse(server: TestServer, sought: string, as = server.rootKey): Promise<number | undefined> {
  const rootKeys = await server.ok("rootKeys.listRootKeys", {}, { as });
  return rootKeys.find(({ rootKeyId }: { rootKeyId: string }) => rootKeyId === sought).lastUsedAt;
}

const report = (verifications: unknown[], more: object = {}) => ({
  recorder: "rec_edge",
  sequence: 1,
  verifications,
  uses: [],
  ...more,
});

describeOnStores("Reports of edges", (server) => {
  it("are counted once, whatever is repeated (rule 172)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const minute = minuteOf(server);
    const cells = [
      [minute, apiId, keyId, null, "", "VALID", 7, 700],
      [minute, apiId, keyId, null, '["a","b"]', "RATE_LIMITED", 2, 100],
    ];
    const at = server.clock.now();
    const body = report(cells, { uses: [{ keyId, at }] });
    assert.deepEqual(await server.ok("replica.report", body), { sequence: 1, leftOut: 0 });
    const once = { total: 9, valid: 7, outcomes: { RATE_LIMITED: 2, VALID: 7 } };
    assert.deepEqual(await countsOf(server, keyId), once);
    // The answer was lost, or the service was killed before it.
    assert.deepEqual(await server.ok("replica.report", body), { sequence: 1, leftOut: 0 });
    assert.deepEqual(await countsOf(server, keyId), once);
    await server.ok("replica.report", { ...body, sequence: 2, uses: [] });
    assert.equal((await countsOf(server, keyId)).total, 18);
    // An older one, and another edge with the same name for its numbers.
    await server.ok("replica.report", body);
    assert.equal((await countsOf(server, keyId)).total, 18);
    const { key: as } = await server.grant("replicas.*.open");
    await server.ok("replica.report", body, { as });
    assert.equal((await countsOf(server, keyId)).total, 27);
    await server.pass(2_000);
    assert.equal((await server.getKey(keyId)).lastUsedAt, at);
  });

  it("that the store cannot take are not acknowledged, and counted when they come again (rule 172)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const body = report([[minuteOf(server), apiId, keyId, null, "", "VALID", 3, 30]], { recorder: "rec_away" });
    const { StoreUnavailable } = await import("../../../engine/src/errors/store-unavailable.ts");
    server.analytics.interception = async () => {
      throw new StoreUnavailable("away");
    };
    await server.rejected("replica.report", body, "service_unavailable");
    // Its answer is lost after the commit.
    server.analytics.interception = async (_name, proceed) => {
      await proceed();
      throw new StoreUnavailable("lost");
    };
    await server.rejected("replica.report", body, "service_unavailable");
    server.analytics.interception = undefined;
    await server.ok("replica.report", body);
    assert.equal((await countsOf(server, keyId)).total, 3);
  });

  it("count only for APIs that the root key opens (rule 173)", async () => {
    const [open, closed] = [await server.createApi(), await server.createApi()];
    const [mine, theirs] = [await server.createKey(open), await server.createKey(closed)];
    const { key: as } = await server.grant(`replicas.${open}.open`);
    const minute = minuteOf(server);
    const ofMine = [minute, open, mine.keyId, null, "", "VALID", 1, 1];
    const ofTheirs = [minute, closed, theirs.keyId, null, "", "VALID", 1, 1];
    const both = await server.ok("replica.report", report([ofMine, ofTheirs.with(6, 5)]), { as });
    assert.deepEqual(both, { sequence: 1, leftOut: 5 });
    assert.equal((await countsOf(server, mine.keyId)).total, 1);
    // A key under another API than its own is left out, and its use too.
    const uses = [{ keyId: theirs.keyId, at: server.clock.now() }];
    const wrong = [minute, open, theirs.keyId, null, "", "VALID", 1, 1];
    const answer = await server.ok("replica.report", report([ofMine, wrong], { uses, sequence: 2 }), { as });
    assert.deepEqual(answer, { sequence: 2, leftOut: 1 });
    await server.pass(2_000);
    assert.equal((await countsOf(server, mine.keyId)).total, 2);
    assert.equal((await countsOf(server, theirs.keyId)).total, 0);
    assert.equal((await server.getKey(theirs.keyId)).lastUsedAt, undefined);
  });

  it("end with the root key, also when they wait, and count for what it opens then (rule 174)", async () => {
    const [first, second] = [await server.createApi(), await server.createApi()];
    const { keyId } = await server.createKey(first);
    const { key: as, rootKeyId } = await server.grant("replicas.*.open");
    const during = async (change: () => Promise<unknown>, sequence: number) => {
      const held = server.store.holdNext("reportedOwners");
      const cell = [minuteOf(server), first, keyId, null, "", "VALID", 1, 1];
      const waiting = server.call("replica.report", report([cell], { recorder: "rec_waits", sequence }), { as });
      await held.reached;
      await change();
      held.release();
      return waiting;
    };
    const permissions = [`replicas.${second}.open`];
    const narrowed = await during(() => server.ok("rootKeys.updateRootKey", { rootKeyId, permissions }), 1);
    assert.deepEqual(narrowed.body.data, { sequence: 1, leftOut: 1 });
    const revoked = await during(() => server.ok("rootKeys.deleteRootKey", { rootKeyId }), 2);
    assert.equal(revoked.problem, "authentication_failed");
    assert.equal((await countsOf(server, keyId)).total, 0);
  });

  it("leave out what the workspace does not have (rule 173)", async () => {
    const apiId = await server.createApi();
    const { identityId } = await server.ok("identities.createIdentity", { externalId: "owner" });
    const { keyId } = await server.createKey(apiId, { externalId: "owner" });
    const { key: as } = await server.workspace("forger");
    const { apiId: own } = await server.ok("apis.createApi", { name: "own" }, { as });
    const ownKey = await server.ok("keys.createKey", { apiId: own }, { as });
    const minute = minuteOf(server);
    const cells = [
      [minute, apiId, keyId, identityId, "", "VALID", 5, 5],
      [minute, own, keyId, null, "", "VALID", 5, 5],
      [minute, own, ownKey.keyId, identityId, '["forged"]', "VALID", 5, 5],
      [minute, own, "key_never0existed000", null, "", "VALID", 5, 5],
    ];
    await server.ok("replica.report", report(cells, { uses: [{ keyId, at: server.clock.now() }] }), { as });
    await server.pass(2_000);
    assert.equal((await countsOf(server, keyId)).total, 0);
    const range = { start: minute - MINUTE, end: minute + MINUTE };
    const ofIdentity = await server.ok("analytics.getIdentityStats", { identity: identityId, ...range });
    assert.equal(ofIdentity.total, 0);
    assert.equal((await server.getKey(keyId)).lastUsedAt, undefined);
    const ofOwn = await server.ok("analytics.getApiStats", { apiId: own, ...range }, { as });
    assert.equal(ofOwn.total, 5);
  });

  it("of deleted keys count for their owners (rule 173)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    await server.ok("keys.deleteKey", { keyId });
    await server.ok(
      "replica.report",
      report([[minuteOf(server), apiId, keyId, null, "", "NOT_FOUND", 4, 4]], { recorder: "rec_deleted" }),
    );
    assert.equal((await countsOf(server, keyId)).total, 4);
  });

  it("leave out what is more than a day old, and take a clock that is ahead for the present (rule 173)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const minute = minuteOf(server);
    const cell = (at: number, count: number) => [at, apiId, keyId, null, "", "VALID", count, 1];
    const cells = [cell(minute - 86_400_000 - MINUTE, 10), cell(minute + 90 * MINUTE, 3), cell(minute, 4), cell(0, 1)];
    const uses = [{ keyId, at: server.clock.now() + 90 * MINUTE }];
    const body = report(cells, { recorder: "rec_clock", uses });
    assert.deepEqual(await server.ok("replica.report", body), { sequence: 1, leftOut: 11 });
    assert.equal((await countsOf(server, keyId)).total, 7);
    const usedAt = server.clock.now();
    await server.pass(2_000);
    assert.equal((await server.getKey(keyId)).lastUsedAt, usedAt);
  });

  it("say when root keys of callers were last used, and touch no others (rule 181)", async () => {
    const [used, future] = [await server.grant("apis.*.verify_key"), await server.grant("apis.*.verify_key")];
    const other = await server.workspace("user");
    const foreign = await server.ok(
      "rootKeys.createRootKey",
      { name: "foreign", permissions: ["apis.*.verify_key"] },
      { as: other.key },
    );
    const at = server.clock.now() - 5_000;
    const rootKeyUses = [
      { rootKeyId: used.rootKeyId, at },
      { rootKeyId: future.rootKeyId, at: at + 3_600_000 },
      { rootKeyId: foreign.rootKeyId, at },
      { rootKeyId: "rk_never0existed000", at },
    ];
    const now = server.clock.now();
    await server.ok("replica.report", report([], { recorder: "rec_root", rootKeyUses }));
    await server.pass(61_000);
    assert.equal(await lastUse(server, used.rootKeyId), at);
    assert.equal(await lastUse(server, future.rootKeyId), now);
    assert.equal(await lastUse(server, foreign.rootKeyId, other.key), undefined);
    const many = Array.from({ length: 2_001 }, () => ({ rootKeyId: used.rootKeyId, at }));
    await server.rejected("replica.report", report([], { rootKeyUses: many }), "invalid_input");
  });

  it("refuse what cannot have been counted, and change nothing", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const minute = minuteOf(server);
    const cell = [minute, apiId, keyId, null, "", "VALID", 1, 1];
    const wrong: [number, unknown][] = [
      [0, minute + 1],
      [0, -MINUTE],
      [1, null],
      [2, null],
      [2, "no id"],
      [4, '["b","a"]'],
      [4, '["a","a"]'],
      [4, "[]"],
      [4, "text"],
      [4, '[""]'],
      [4, "[1]"],
      [4, JSON.stringify(Array.from({ length: 11 }, (_, i) => `tag${10 + i}`))],
      [5, "UNKNOWN"],
      [6, 0],
      [6, 1_000_000_001],
      [7, -1],
    ];
    for (const [at, value] of wrong) {
      const changed = cell.with(at, value as never);
      await server.rejected("replica.report", report([cell, changed], { recorder: "rec_wrong" }), "invalid_input");
    }
    for (const more of [{ sequence: 0 }, { recorder: "" }, { recorder: "x".repeat(65) }, { workspaceId: "ws_1" }]) {
      await server.rejected("replica.report", report([cell], more), "invalid_input");
    }
    assert.equal((await countsOf(server, keyId)).total, 0);
  });

  it("of two thousand counts with tags are taken (rule 172)", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const minute = minuteOf(server);
    const tags = (i: number) =>
      JSON.stringify(Array.from({ length: 5 }, (_, n) => `tag ${n} of ${i % 40} ${"x".repeat(40)}`));
    const cells = Array.from({ length: 2_000 }, (_, i) => [minute, apiId, keyId, null, tags(i), "VALID", 1, 10]);
    await server.ok("replica.report", report(cells, { recorder: "rec_long" }));
    assert.equal((await countsOf(server, keyId)).total, 2_000);
    const more = report([...cells, cells[0]], { recorder: "rec_long", sequence: 2 });
    await server.rejected("replica.report", more, "invalid_input");
  });
});

it("Reports are acknowledged and dropped where analytics are off", async (t) => {
  const server = await openTestServer({ settings: { ANALYTICS: "off" } });
  t.after(() => server.close());
  const apiId = await server.createApi();
  const { keyId } = await server.createKey(apiId);
  const { rootKeyId } = await server.grant("apis.*.verify_key");
  const at = server.clock.now();
  const cell = [minuteOf(server), apiId, keyId, null, "", "VALID", 1, 1];
  const body = report([cell], { rootKeyUses: [{ rootKeyId, at }] });
  assert.deepEqual(await server.ok("replica.report", body), { sequence: 1, leftOut: 0 });
  // Last uses of root keys are none.
  await server.pass(61_000);
  assert.equal(await lastUse(server, rootKeyId), at);
});
