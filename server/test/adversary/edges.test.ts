/** Callers of an edge, and a service that hangs: what one of them can do to the others. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { eventually, makeFolder, ROOT_KEY, start, startEdge } from "../process.ts";

async function open(t: TestContext) {
  const folder = makeFolder(t);
  const home = await start({ directory: folder });
  const { key: rootKey } = await home.ok("rootKeys.createRootKey", {
    name: "edge",
    permissions: ["replicas.*.open", "ratelimits.*.limit"],
  });
  const edge = await startEdge(home, rootKey, { directory: folder });
  const { apiId } = await home.ok("apis.createApi", { name: "images" });
  return { home, edge, apiId };
}

describe("an edge (rules 176 to 179)", () => {
  it("follows changes and charges while callers send hundreds of requests that never end", async (t) => {
    const { home, edge, apiId } = await open(t);
    const { hostname, port } = new URL(edge.address);
    const head =
      `POST /v2/keys.createKey HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${ROOT_KEY}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"apiId":"';
    const slow: Socket[] = [];
    t.after(() => {
      for (const socket of slow) socket.destroy();
    });
    for (let i = 0; i < 600; i++) {
      const socket = connect(Number(port), hostname);
      socket.on("error", () => {});
      slow.push(socket);
      await once(socket, "connect");
      socket.write(head);
    }
    const { key, keyId } = await home.ok("keys.createKey", { apiId });
    const limited = await home.ok("keys.createKey", { apiId, credits: { remaining: 3 } });
    for (let i = 0; i < 5; i++) assert.equal((await edge.ok("keys.verifyKey", { key }, null)).valid, true);
    for (let i = 0; i < 5; i++)
      assert.equal((await edge.ok("keys.verifyKey", { key: limited.key }, null)).valid, i < 3);
    await home.ok("keys.deleteKey", { keyId });
    await eventually("the revocation", async () => !(await edge.ok("keys.verifyKey", { key }, null)).valid);
  });

  it("answers each call while the service is frozen, and nothing that it does not know", async (t) => {
    const { home, edge, apiId } = await open(t);
    const { key, keyId } = await home.ok("keys.createKey", { apiId });
    assert.equal((await edge.ok("keys.verifyKey", { key }, null)).valid, true);
    await home.ok("keys.deleteKey", { keyId });
    home.signal("SIGSTOP");
    const answers = await Promise.all(Array.from({ length: 200 }, () => edge.call("keys.verifyKey", { key }, null)));
    assert.ok(answers.every(({ status }) => status === 200 || status === 503));
    await eventually("its end", async () => (await edge.call("keys.verifyKey", { key }, null)).status === 503);
    home.signal("SIGCONT");
    await eventually("the service", async () => (await edge.call("keys.verifyKey", { key }, null)).status === 200);
    assert.equal((await edge.ok("keys.verifyKey", { key }, null)).valid, false);
  });

  it("counts for nobody who may not count, although its own root key may (rules 183 and 184)", async (t) => {
    const { home, edge } = await open(t);
    const limit = { namespace: "mails", identifier: "a", limit: 5, duration: 3_600_000 };
    await home.ok("ratelimits.limit", { ...limit, cost: 0 });
    const { key } = await home.ok("rootKeys.createRootKey", { name: "weak", permissions: ["apis.*.verify_key"] });
    const namespaces = (await home.ok("ratelimits.listNamespaces", {})) as { id: string; name: string }[];
    const own = namespaces.find(({ name }) => name === "mails");
    for (let i = 0; i < 5; i++) {
      for (const namespace of ["mails", own?.id, "never made"]) {
        assert.equal((await edge.call("ratelimits.limit", { ...limit, namespace }, key)).status, 403);
        assert.equal((await edge.call("ratelimits.limit", { ...limit, namespace }, null)).status, 401);
      }
      assert.equal((await edge.call("ratelimits.multiLimit", [limit, { ...limit, namespace: "x" }], key)).status, 403);
    }
    assert.equal((await home.ok("ratelimits.listNamespaces", {})).length, namespaces.length);
    assert.equal((await edge.ok("ratelimits.limit", { ...limit, cost: 0 })).remaining, 5);
    const tooMany = Array.from({ length: 101 }, () => limit);
    assert.equal((await edge.call("ratelimits.multiLimit", tooMany)).status, 400);
    // The longest call shares no question, and keeps nobody waiting.
    const long = Array.from({ length: 100 }, (_, i) => ({ ...limit, identifier: `${i}`.padEnd(200, "ü") }));
    const [many, ...others] = await Promise.all([
      edge.call("ratelimits.multiLimit", long),
      ...Array.from({ length: 20 }, () => edge.call("ratelimits.limit", limit)),
    ]);
    assert.equal(many.status, 200);
    assert.equal(others.filter(({ body }) => body.data.success).length, 5);
    // A frozen service: each call ends, and none is charged twice.
    home.signal("SIGSTOP");
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => edge.call("ratelimits.limit", { ...limit, identifier: "frozen" })),
    );
    home.signal("SIGCONT");
    assert.ok(
      answers.every(({ status }) => status === 503),
      JSON.stringify(answers.map(({ status }) => status)),
    );
  });

  it("takes no hash and no root key of its own from callers", async (t) => {
    const { home, edge, apiId } = await open(t);
    const { key } = await home.ok("keys.createKey", { apiId });
    const { createHash } = await import("node:crypto");
    const hash = createHash("sha256").update(key).digest("base64url");
    assert.equal((await edge.ok("keys.verifyKey", { key: hash }, null)).code, "NOT_FOUND");
    assert.equal((await edge.call("replica.resolveKeys", { keys: [hash] }, null)).status, 401);
    assert.equal((await edge.call("keys.getKey", { keyId: "key_0000000000000000" }, null)).status, 401);
  });

  it("takes at most a tenth of a limit ahead, however busy a caller makes it look (rule 194)", async (t) => {
    const { home, edge, apiId } = await open(t);
    const ratelimits = [{ name: "r", limit: 2_000, duration: 3_600_000, autoApply: true }];
    const { key } = await home.ok("keys.createKey", { apiId, ratelimits });
    let spent = 0;
    for (let i = 0; i < 20; i++) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => edge.ok("keys.verifyKey", { key }, null)));
      spent += answers.filter(({ valid }) => valid).length;
      // More than any lease: the service denies it.
      const dear = await edge.ok("keys.verifyKey", { key, ratelimits: [{ name: "r", cost: 1_000_000 }] }, null);
      assert.equal(dear.valid, false);
    }
    const { ratelimits: left } = await home.ok("keys.verifyKey", { key, ratelimits: [{ name: "r", cost: 0 }] });
    assert.ok(left[0].remaining >= 2_000 - spent - 200, `${left[0].remaining} after ${spent}`);
  });
});
