/**
 * What edges, and who has the root key of one, can do to others: thousands of questions that wait, guessed hashes, long
 * reports, and names of another tenant. Direct callers and edges of other workspaces are served meanwhile.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { FEED_ROWS_MAX, FEED_WAITERS_MAX } from "../../../engine/src/directory/changes-feed.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { insertChange } from "../../src/platform/store/changes.ts";
import { askedLease, describedEdge, TestEdge } from "../edge.ts";
import { describeOnStores, openTestServer, type Reply } from "../harness.ts";

describe("Questions that wait", () => {
  it("are bounded per workspace, and cost nobody else an answer", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const { key: flooder } = await server.workspace("flooder");
    const { keyId, key } = await server.createKey(await server.createApi());
    await server.pass(1_000);
    const flood = new TestEdge(server, flooder);
    const innocent = new TestEdge(server, server.rootKey, 2);
    await flood.poll();
    await innocent.poll();
    const more = 500;
    let answered = 0;
    const replies: Promise<Reply>[] = [];
    for (let i = 0; i < FEED_WAITERS_MAX.perWorkspace + more; i++) {
      const reply = flood.send({ wait: 300, edge: describedEdge(i) });
      replies.push(reply.finally(() => answered++));
      if (i % 100 === 0) await setImmediate();
    }
    for (let i = 0; i < 2_000 && answered < more; i++) await setImmediate();
    assert.equal(answered, more, "those beyond the bound are answered at once");
    // Others are answered meanwhile.
    assert.equal((await server.verify(key)).code, "VALID");
    await server.ok("keys.updateKey", { keyId, name: "changed" });
    await server.pass(200);
    assert((await innocent.poll()).tags.includes(innocent.tag(keyId)));
    assert.equal(answered, more, "a change of another workspace wakes none of them");
    for (let i = 0; i < 4; i++) await server.pass(50);
    for (const reply of await Promise.all(replies)) assert.equal(reply.status, 200);
    // The list of edges is bounded as well.
    assert.match(await server.scrape(), /^latchkey_edges 2001$/m);
    await server.pass(10_000);
    assert.match(await server.scrape(), /^latchkey_edges 0$/m);
  });

  it("are told that they lost everything, rather than kept from forgetting", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const edge = new TestEdge(server);
    await edge.poll();
    const tags = ["some tag"];
    for (let i = 0; i < 5; i++) {
      await server.change([], async (sql) => {
        for (let n = 0; n < FEED_ROWS_MAX / 4; n++)
          await insertChange(sql, tags, server.clock.now(), server.workspaceId);
      });
    }
    assert.equal((await edge.poll()).isLost, true);
    assert.deepEqual((await edge.poll()).tags, []);
  });
});

describe("Edges that lost their position", () => {
  it("are told so in turns, of which another workspace's flood takes every second one at most (rule 166)", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const { key: flooder } = await server.workspace("flooder");
    const [flood, innocent] = [new TestEdge(server, flooder), new TestEdge(server, server.rootKey, 2)];
    await server.pass(1_000);
    await flood.poll();
    await innocent.poll();
    flood.position = flood.position!.replace(/^[^.]*/, "another");
    innocent.position = flood.position;
    const bound = 1_000;
    const more = 50;
    const replies: Promise<Reply>[] = [];
    for (let i = 0; i < bound + 2 + more; i++) {
      replies.push(flood.send());
      if (i % 100 === 0) await setImmediate();
    }
    const refused = (await Promise.all(replies.slice(-more))).map(({ status }) => status);
    assert.deepEqual(refused, Array(more).fill(429));
    const asked = innocent.poll();
    const start = server.clock.monotonic();
    for (let i = 0; i < 4; i++) await server.pass(1);
    assert.equal((await asked).isLost, true);
    assert(server.clock.monotonic() - start < 10);
    for (let i = 0; i < bound / 2; i++) await server.pass(1);
    for (const reply of await Promise.all(replies.slice(0, -more))) assert.equal(reply.body.data.isLost, true);
  });
});

describeOnStores("Somebody with the root key of an edge", (server) => {
  it("learns nothing by hashes of another workspace, nor by positions", async () => {
    const victim = await server.workspace("victim");
    const { apiId } = await server.ok("apis.createApi", { name: "victim" }, { as: victim.key });
    const { keyId, key } = await server.ok("keys.createKey", { apiId, credits: { remaining: 3 } }, { as: victim.key });
    const { key: thief } = await server.workspace("thief");
    await server.pass(500);
    const [edge, own] = [new TestEdge(server, thief), new TestEdge(server, victim.key, 2)];
    await edge.poll();
    await own.poll();
    assert.deepEqual(await edge.resolve(key, "never issued"), [null, null]);
    const charged = await edge.charge({ key }, { key, isAnonymous: true }, { key: "never issued" });
    for (const { data } of charged) assert.deepEqual(data, { valid: false, code: "NOT_FOUND" });
    await server.ok("keys.updateKey", { keyId, enabled: false }, { as: victim.key });
    await server.pass(200);
    // The position of the other edge does not open its changes.
    const { position } = own;
    const stolen = await edge.poll({ position });
    assert.deepEqual(stolen.tags, []);
    assert((await own.poll()).tags.includes(own.tag(keyId)));
  });

  it("gets no answer to invented positions but that everything is lost", async () => {
    const edge = new TestEdge(server);
    await edge.poll();
    const parts = edge.position!.split(".");
    const random = seededRandom(36);
    for (let i = 0; i < 200; i++) {
      const changed = parts.with(random.below(parts.length), String(random.below(1_000_000)));
      edge.position = changed.join(".");
      const answered = edge.send();
      await server.pass(1);
      const { status, body } = await answered;
      assert.equal(status, 200, JSON.stringify(body));
      assert.deepEqual(body.data.tags, []);
    }
  });

  it("cannot use the numbers of another edge's reports up", async () => {
    const apiId = await server.createApi();
    const { keyId } = await server.createKey(apiId);
    const minute = server.clock.now() - (server.clock.now() % 60_000);
    const cell = [minute, apiId, keyId, null, "", "VALID", 1, 1];
    const body = (sequence: number) => ({ recorder: "rec_shared", sequence, verifications: [cell], uses: [] });
    const { key: as } = await server.grant("replicas.*.open");
    const { key: foreign } = await server.workspace("foreign");
    await server.ok("replica.report", body(2 ** 40), { as: foreign });
    await server.ok("replica.report", body(2 ** 40), { as });
    await server.ok("replica.report", body(1));
    const range = { start: minute - 60_000, end: minute + 60_000 };
    assert.equal((await server.ok("analytics.getKeyStats", { keyId, ...range })).total, 2);
  });

  it("is answered within bounds for the longest bodies, and refused beyond them", async () => {
    const { key } = await server.grant("replicas.*.open");
    const raw = (bytes: number) => JSON.stringify({ keys: ["h".repeat(43)] }).padEnd(bytes);
    await server.ok("replica.resolveKeys", undefined, { as: key, raw: raw(1024 * 1024) });
    const tooLong = { as: key, raw: raw(1024 * 1024 + 1) };
    await server.rejected("replica.resolveKeys", undefined, "request_body_too_large", tooLong);
    // Without the permission, a long body is not even parsed.
    const { key: other } = await server.grant("apis.*.verify_key");
    const broken = { as: other, raw: "{".padEnd(200_000, "x") };
    await server.rejected("replica.report", undefined, "insufficient_permissions", broken);
  });

  it("is through as soon as the root key is deleted", async () => {
    const { rootKeyId, key: as } = await server.grant("replicas.*.open");
    const { key } = await server.createKey(await server.createApi());
    const edge = new TestEdge(server, as);
    await edge.poll();
    await edge.charge({ key });
    await server.ok("rootKeys.deleteRootKey", { rootKeyId });
    const call = { hash: hashSecret(key), isAnonymous: false, address: "203.0.113.7" };
    const bodies = {
      "replica.listChanges": { tagKey: "k".repeat(22), edge: describedEdge() },
      "replica.resolveKeys": { keys: [hashSecret(key)] },
      "replica.charge": { calls: [call, { ...call, isAnonymous: true }] },
      "replica.lease": { leases: [askedLease(key)] },
      "replica.report": { recorder: "rec", sequence: 1, verifications: [], uses: [] },
    };
    for (const [name, body] of Object.entries(bodies)) {
      await server.rejected(name, body, "authentication_failed", { as });
    }
  });
});
