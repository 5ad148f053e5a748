import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { describedEdge, TestEdge } from "../edge.ts";
import { describeOnStores, openTestServer, stores, type TestServer } from "../harness.ts";

/** Another node on the same database. */
async function nodeBeside(t: TestContext, server: TestServer): Promise<TestServer> {
  const node = await openTestServer({ ...server.options, beside: server });
  t.after(() => node.close());
  return node;
}

/** Lets calls that were sent arrive. */
async function arrive(): Promise<void> {
  for (let i = 0; i < 50; i++) await setImmediate();
}

/** Passes time until the work has ended, two seconds at most. `isHeld`: reads of the store do not end. */
async function passUntil<T>(server: TestServer, work: Promise<T>, isHeld = false): Promise<T> {
  let hasEnded = false;
  const settled = work.finally(() => {
    hasEnded = true;
  });
  settled.catch(() => {});
  for (let passed = 0; passed < 2_000; passed += 50) {
    await arrive();
    if (hasEnded) return settled;
    if (isHeld) await server.advance(50);
    else await server.pass(50);
  }
  throw new Error("It has not ended in two seconds");
}

/** Lets no read of `changes` on this server end. Returns what lets them. */
function holdReads(server: TestServer): () => void {
  const released = Promise.withResolvers<void>();
  server.store.interception = async (name, proceed) => {
    if (name === "readChanges") await released.promise;
    return proceed();
  };
  return () => {
    server.store.interception = undefined;
    released.resolve();
  };
}

describeOnStores("Changes for edges", (server) => {
  it("begin at the present, and bring a change of this node within 200 ms (rule 165)", async () => {
    const { keyId } = await server.createKey(await server.createApi());
    const edge = new TestEdge(server);
    const first = await edge.poll();
    assert.deepEqual([first.tags, first.isLost, first.hasMore, first.allowsAnonymous], [[], false, false, true]);
    await server.ok("keys.updateKey", { keyId, enabled: false });
    await server.pass(200);
    const { tags, isLost } = await edge.poll();
    assert(tags.includes(edge.tag(keyId)));
    assert.equal(isLost, false);
    assert.deepEqual((await edge.poll()).tags, []);
  });

  it("bring a change of another node (rule 165)", async (t) => {
    const node = await nodeBeside(t, server);
    const { keyId } = await server.createKey(await server.createApi());
    await server.pass(500);
    const edge = new TestEdge(server);
    await edge.poll();
    await node.ok("keys.updateKey", { keyId, enabled: false });
    await server.pass(200);
    assert((await edge.poll()).tags.includes(edge.tag(keyId)));
  });

  it("are keyed by the edge (rule 165)", async () => {
    const { keyId } = await server.createKey(await server.createApi());
    const [one, other] = [new TestEdge(server, server.rootKey, 1), new TestEdge(server, server.rootKey, 2)];
    await one.poll();
    await other.poll();
    await server.ok("keys.updateKey", { keyId, name: "changed" });
    await server.pass(200);
    const [ofOne, ofOther] = [(await one.poll()).tags, (await other.poll()).tags];
    assert.notDeepEqual(ofOne, ofOther);
    assert(ofOne.includes(one.tag(keyId)) && ofOther.includes(other.tag(keyId)));
    for (const tag of [...ofOne, ...ofOther]) assert.match(tag, /^[\w-]{11}$/);
  });

  it("leave out those of other workspaces, whatever changes there (rule 165)", async () => {
    const { key: as, workspaceId } = await server.workspace("other");
    const [mine, theirs] = [new TestEdge(server), new TestEdge(server, as, 2)];
    await server.pass(500);
    await mine.poll();
    await theirs.poll();
    const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
    const { keyId } = await server.ok("keys.createKey", { apiId }, { as });
    await server.ok("keys.updateKey", { keyId, meta: { changed: true } }, { as });
    await server.ok("keys.deleteKey", { keyId }, { as });
    await server.ok("ratelimits.limit", { namespace: "mails", identifier: "x", limit: 1, duration: 60_000 }, { as });
    const { rootKeyId } = await server.ok("rootKeys.createRootKey", { name: "new", permissions: ["*"] }, { as });
    await server.ok("rootKeys.deleteRootKey", { rootKeyId }, { as });
    await server.pass(200);
    assert.deepEqual((await mine.poll()).tags, []);
    const { tags } = await theirs.poll();
    for (const tag of [keyId, rootKeyId]) assert(tags.includes(theirs.tag(tag)), tag);
    // The administrator of all workspaces changes another one: that one must hear of it.
    await server.ok("workspaces.updateWorkspace", { workspaceId, name: "renamed" });
    await server.pass(200);
    assert((await theirs.poll()).tags.includes(theirs.tag(workspaceId)));
  });

  it("bring what may concern any workspace, as rows of earlier releases do (rule 165)", async () => {
    const edge = new TestEdge(server, (await server.workspace("any")).key);
    await server.pass(500);
    await edge.poll();
    await server.change(["of an earlier release"], async () => {});
    assert.deepEqual((await edge.poll()).tags, [edge.tag("of an earlier release")]);
  });

  it("are waited for (rule 165)", async () => {
    const { keyId } = await server.createKey(await server.createApi());
    await server.pass(500);
    const edge = new TestEdge(server);
    await edge.poll();
    await server.pass(100);
    let isAnswered = false;
    const waiting = edge.poll({ wait: 300 }).finally(() => {
      isAnswered = true;
    });
    await arrive();
    await server.pass(50);
    assert.equal(isAnswered, false);
    await server.ok("keys.updateKey", { keyId, name: "changed" });
    const { tags, age } = await passUntil(server, waiting);
    assert(tags.includes(edge.tag(keyId)));
    assert(age < 0, "the node has read since the question arrived");
    const askedAt = server.clock.monotonic();
    const { tags: none } = await passUntil(server, edge.poll({ wait: 300 }));
    assert.deepEqual(none, []);
    assert.equal(server.clock.monotonic() - askedAt, 300);
  });

  it("say how old they are, and end on a node that cannot read (rule 166)", async () => {
    const edge = new TestEdge(server);
    await edge.poll();
    const { key } = await server.createKey(await server.createApi());
    await server.pass(200);
    assert((await edge.poll()).age <= 200);
    const release = holdReads(server);
    for (const age of [250, 400, 999, 1_000]) {
      await server.advance(age - (await edge.poll()).age);
      assert.equal((await edge.poll()).age, age);
    }
    await server.advance(1);
    const refused = edge.send();
    const resolving = server.call("replica.resolveKeys", { workspace: true });
    const charging = server.call("replica.charge", {
      calls: [{ hash: "h".repeat(43), isAnonymous: false, address: "203.0.113.7" }],
    });
    for (const reply of await passUntil(server, Promise.all([refused, resolving, charging]), true)) {
      assert.equal(reply.problem, "service_unavailable");
      assert.equal(reply.headers["retry-after"], "1");
    }
    // Other callers are served from the caches, because this node may.
    assert.equal((await server.call("keys.verifyKey", { key })).status, 200);
    release();
    let again = await edge.send();
    for (let i = 0; i < 20 && again.status !== 200; i++) {
      await server.pass(500);
      again = await edge.send();
    }
    assert.equal(again.body.data.isLost, false);
    assert(again.body.data.age <= 500);
  });

  it("end with the root key, also for a question that waits (rule 174)", async () => {
    const { rootKeyId, key } = await server.grant("replicas.*.open");
    const edge = new TestEdge(server, key);
    await server.pass(500);
    await edge.poll();
    const waiting = edge.send({ wait: 300 });
    await arrive();
    await server.ok("rootKeys.deleteRootKey", { rootKeyId });
    const reply = await passUntil(server, waiting);
    assert.deepEqual([reply.problem, reply.body.data], ["authentication_failed", undefined]);
    assert.equal((await edge.send()).problem, "authentication_failed");
  });

  it("need `open` for some API (rule 174)", async () => {
    const edge = { tagKey: "k".repeat(22), edge: describedEdge() };
    const apiId = await server.createApi();
    for (const grant of [`replicas.${apiId}.open`, "replicas.*.*", "*"]) {
      await server.ok("replica.listChanges", edge, { as: (await server.grant(grant)).key });
    }
    for (const grant of ["apis.*.verify_key", "ratelimits.*.*"]) {
      const { key: as } = await server.grant(grant);
      await server.rejected("replica.listChanges", edge, "insufficient_permissions", { as });
    }
    await server.rejected("replica.listChanges", edge, "authentication_missing", { as: null });
  });

  it("refuse what is no position", async () => {
    for (const position of ["", "1", "a.b.c.d.e.f", "x".repeat(200)]) {
      const body = { tagKey: "k".repeat(22), position, edge: describedEdge() };
      await server.rejected("replica.listChanges", body, "invalid_input");
    }
  });
});

for (const store of stores) {
  describe(`An edge that asks another node on ${store}`, () => {
    it(
      store === "postgres"
        ? "continues there, after a start too (rule 166)"
        : "has lost everything: only one process reads this database (rule 166)",
      async (t) => {
        const server = await openTestServer({ store });
        t.after(() => server.close());
        const { keyId } = await server.createKey(await server.createApi());
        await server.pass(500);
        const edge = new TestEdge(server);
        await edge.poll();
        await server.ok("keys.updateKey", { keyId, enabled: false });
        await server.pass(500);
        // It starts after the change that the edge has not seen.
        const node = await nodeBeside(t, server);
        const there = edge.at(node);
        const { isLost, tags } = await there.poll();
        assert.equal(isLost, store === "sqlite");
        assert.deepEqual(tags.includes(edge.tag(keyId)), store === "postgres");
        assert.equal((await there.poll()).isLost, false);
      },
    );
  });
}

describe("A node behind the position of an edge on postgres", () => {
  it("reads first, and answers nothing while it cannot (rule 166)", async (t) => {
    const server = await openTestServer({ store: "postgres" });
    t.after(() => server.close());
    const node = await nodeBeside(t, server);
    const { keyId, key } = await server.createKey(await server.createApi());
    await server.pass(500);
    const edge = new TestEdge(server);
    await edge.poll();
    const release = holdReads(node);
    t.after(release);
    await server.ok("keys.updateKey", { keyId, enabled: false });
    await server.pass(200);
    assert((await edge.poll()).tags.includes(edge.tag(keyId)));
    // The node has not read the change, and is younger than a second.
    const there = edge.at(node);
    const { position } = edge;
    const asked = [
      there.send(),
      node.call("replica.resolveKeys", { position, workspace: true }),
      node.call("replica.charge", {
        position,
        calls: [{ hash: "h".repeat(43), isAnonymous: false, address: "203.0.113.7" }],
      }),
    ];
    for (const reply of await passUntil(server, Promise.all(asked), true))
      assert.equal(reply.problem, "service_unavailable");
    release();
    const answers = await Promise.all([there.poll(), there.at(node).resolve(key)]);
    assert.equal(answers[0].isLost, false);
    assert.equal(answers[1][0].enabled, false);
  });
});

describeOnStores("Edges in the status of a node (rule 165)", (server) => {
  it("are those of the workspace, for ten seconds after their last question", async () => {
    assert.equal((await server.ok("system.getStatus", {})).edges, undefined);
    const { key: rootKey } = await server.workspace("other");
    await new TestEdge(server, server.rootKey, 1).poll({
      edge: describedEdge(1, { name: "eu", records: 7, leases: 3 }),
    });
    await new TestEdge(server, rootKey, 2).poll();
    await server.pass(3_000);
    const { edges } = await server.ok("system.getStatus", {});
    assert.equal(edges.count, 1);
    const [{ id, kind, name, records, reports, leases, ageMs }] = edges.list;
    assert.deepEqual([id, kind, name, ageMs], [describedEdge(1).id, "process", "eu", 3_000]);
    assert.deepEqual([records, reports, leases], [7, 0, 3]);
    await server.pass(8_000);
    assert.equal((await server.ok("system.getStatus", {})).edges, undefined);
  });
});
