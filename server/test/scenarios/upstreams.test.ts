/** Upstream verifiers: endpoints of another system that are asked about keys which are unknown here. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { stores, TestServer } from "../harness.ts";

/** What another system answers to a key. */
type Answer = { status?: number; body: string; headers?: Record<string, string> } | "nothing";

/** Another system with an endpoint that verifies its keys. */
class OtherSystem {
  readonly questions: { key: string; apiId: string; headers: IncomingMessage["headers"] }[] = [];
  answer: (key: string) => Answer = () => ({ body: '{"valid":false}' });
  /** Answers wait for it. */
  gate: Promise<void> | undefined;
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/verify`;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => void this.#server.listen(0, "127.0.0.1", resolve));
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** The keys of the questions since the last call. */
  takeKeys(): string[] {
    return this.questions.splice(0).map(({ key }) => key);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const question = JSON.parse(Buffer.concat(chunks).toString());
    assert.equal(request.method, "POST");
    assert.equal(request.headers["content-type"], "application/json");
    this.questions.push({ ...question, headers: request.headers });
    await this.gate;
    const answer = this.answer(question.key);
    if (answer === "nothing") return;
    response.writeHead(answer.status ?? 200, answer.headers).end(answer.body);
  }
}

const yes = (attributes: object = {}): Answer => ({ body: JSON.stringify({ valid: true, ...attributes }) });

for (const store of stores) {
  describe(`upstream verifiers on ${store}`, () => {
    const settings = { UPSTREAM_ALLOW_PRIVATE: "yes", VAULT_KEY: Buffer.alloc(32, 7).toString("base64") };
    const server = new TestServer({ store, settings });
    const other = new OtherSystem();
    before(async () => {
      await other.listen();
      await server.open();
    });
    after(async () => {
      await server.close();
      other.close();
    });
    afterEach(() => {
      other.answer = () => ({ body: '{"valid":false}' });
      other.gate = undefined;
      other.takeKeys();
    });

    let made = 0;
    const newSecret = () => `old_${++made}_${store}_secret`;
    /** A workspace of its own with an API that has the other system as its verifier. */
    async function newWorkspace(more: object = {}) {
      const { workspaceId, key: as } = await server.ok("workspaces.createWorkspace", { name: "moving" });
      const { apiId } = await server.ok("apis.createApi", { name: "moved" }, { as });
      await server.ok("apis.updateApi", { apiId, upstream: { url: other.url, ...more } }, { as });
      const verify = (key: string, fields: object = {}) => server.call("keys.verifyKey", { key, ...fields }, { as });
      const code = async (key: string, fields: object = {}) => {
        const { body, problem } = await verify(key, fields);
        return problem ?? body.data.code;
      };
      return { workspaceId, apiId, as, verify, code };
    }

    it("do not get keys created against the policy of the API, which is logged (rule 138)", async () => {
      const limits = { ratelimits: [{ name: "requests", limit: 5, duration: 60_000 }] };
      for (const [onOutage, refusal] of [
        ["unavailable", "service_unavailable"],
        ["not_found", "NOT_FOUND"],
      ]) {
        const { apiId, as, verify, code } = await newWorkspace({ onOutage });
        const policy = { expiry: { default: 1_000_000, max: 2_000_000 }, limitsRequired: true, prefixFixed: true };
        await server.ok("apis.updateApi", { apiId, prefix: "old", policy }, { as });
        for (const attributes of [
          {},
          { ...limits, expires: server.clock.now() + 2_000_001 },
          { ratelimits: [], externalId: "acme" },
        ]) {
          other.answer = () => yes(attributes);
          assert.equal(await code(newSecret()), refusal);
        }
        assert.equal((await server.ok("apis.countKeys", { apiId }, { as })).count, 0);
        await server.rejected("identities.getIdentity", { identity: "acme" }, "identity_not_found", { as });
        other.answer = () => yes(limits);
        const { body } = await verify(newSecret());
        const { expires } = await server.ok("keys.getKey", { keyId: body.data.keyId }, { as });
        assert.equal(expires, server.clock.now() + 1_000_000);
        await server.ok("apis.updateApi", { apiId, prefix: "new" }, { as });
        assert.equal(await code(newSecret()), refusal);
      }
    });

    it("that name a plan which does not exist give no answer, which is logged", async () => {
      for (const [onOutage, refusal] of [
        ["unavailable", "service_unavailable"],
        ["not_found", "NOT_FOUND"],
      ]) {
        const { apiId, as, code } = await newWorkspace({ onOutage });
        other.answer = () => yes({ plan: "pro", externalId: "acme" });
        const secret = newSecret();
        assert.equal(await code(secret), refusal);
        assert.equal((await server.ok("apis.countKeys", { apiId }, { as })).count, 0);
        await server.ok("plans.createPlan", { name: "pro" }, { as });
        assert.equal(await code(secret), "VALID");
      }
    });

    it("are asked once about an unknown key, which gets the attributes of the answer", async () => {
      const { workspaceId, apiId, as, verify } = await newWorkspace();
      const secret = newSecret();
      const limit = { name: "requests", limit: 5, duration: 60_000, autoApply: true };
      other.answer = () =>
        yes({
          name: "ci",
          externalId: "acme",
          meta: { plan: "pro" },
          expires: 4e12,
          permissions: ["documents.read"],
          roles: ["editor"],
          credits: { remaining: 10 },
          ratelimits: [limit],
          notDocumented: true,
        });
      const { body } = await verify(secret, { permissions: "documents.read" });
      assert.equal(body.data.code, "VALID");
      assert.equal(body.data.apiId, apiId);
      assert.equal(body.data.credits, 9);
      assert.equal(body.data.ratelimits[0].remaining, 4);
      const key = await server.ok("keys.getKey", { keyId: body.data.keyId }, { as });
      assert.equal(key.start, "old_");
      assert.deepEqual(
        [key.name, key.identity.externalId, key.meta, key.expires],
        ["ci", "acme", { plan: "pro" }, 4e12],
      );
      assert.deepEqual([key.roles, key.permissions], [["editor"], ["documents.read"]]);

      assert.equal((await verify(secret)).body.data.credits, 8);
      assert.deepEqual(
        other.questions.map(({ key, apiId }) => ({ key, apiId })),
        [{ key: secret, apiId }],
      );
      const own = (rows: unknown[]) => rows.filter((row) => JSON.stringify(row).includes(workspaceId));
      assert(!JSON.stringify(own(await server.rowsOf("keys"))).includes(secret));
      const events = own(await server.rowsOf("events")) as { type: string; object_id: string; data: string }[];
      const created = events.find(({ type, object_id }) => type === "key.created" && object_id === key.keyId)!;
      assert.equal(JSON.parse(created.data).actor, "system");
      const [entry] = await server.ok("audit.listEvents", { target: key.keyId }, { as });
      assert.deepEqual([entry.actor, entry.action, entry.meta.upstream], ["system", "keys.verifyKey", true]);
    });

    it("are not asked again about a key that they refused, until 30 seconds or a change of the API", async () => {
      const { apiId, as, code } = await newWorkspace();
      const secret = newSecret();
      for (let i = 0; i < 3; i++) assert.equal(await code(secret), "NOT_FOUND");
      assert.deepEqual(other.takeKeys(), [secret]);
      await server.pass(30_000);
      assert.equal(await code(secret), "NOT_FOUND");
      assert.deepEqual(other.takeKeys(), [secret]);
      other.answer = () => yes();
      await server.ok("apis.updateApi", { apiId, name: "changed" }, { as });
      assert.equal(await code(secret), "VALID");
    });

    it("are not asked about root keys and tokens of the portal", async () => {
      const { apiId, as, code } = await newWorkspace();
      const session = { apiId, externalId: "acme", actions: ["list"] };
      const { token } = await server.ok("portal.createSession", session, { as });
      other.answer = () => yes();
      for (const secret of [as, token, `${as.slice(0, -1)}1`]) assert.equal(await code(secret), "NOT_FOUND");
      assert.deepEqual(other.takeKeys(), []);
    });

    it("are asked once by verifications at the same time", async () => {
      const { code } = await newWorkspace();
      const secret = newSecret();
      other.answer = () => yes();
      const gate = Promise.withResolvers<void>();
      other.gate = gate.promise;
      const codes = Array.from({ length: 20 }, () => code(secret));
      while (other.questions.length === 0) await setImmediate();
      gate.resolve();
      assert.deepEqual(new Set(await Promise.all(codes)), new Set(["VALID"]));
      assert.deepEqual(other.takeKeys(), [secret]);
    });

    it("give one key when two nodes ask at the same time", async (t) => {
      const { as, apiId, code } = await newWorkspace();
      const beside = await new TestServer({ store, settings, beside: server }).open();
      t.after(() => beside.close());
      const secret = newSecret();
      other.answer = () => yes({ credits: { remaining: 10 } });
      const gate = Promise.withResolvers<void>();
      other.gate = gate.promise;
      const codes = [code(secret), beside.verify(secret, {}, { as }).then((data) => data.code)];
      while (other.questions.length < 2) await setImmediate();
      gate.resolve();
      assert.deepEqual(await Promise.all(codes), ["VALID", "VALID"]);
      const [key, ...more] = await server.ok("apis.listKeys", { apiId }, { as });
      assert.deepEqual(more, []);
      assert.equal(key.credits.remaining, 8);
    });

    it("do not revive keys that were deleted here", async () => {
      const { as, code, verify } = await newWorkspace();
      other.answer = () => yes();
      for (const permanent of [false, true]) {
        const secret = newSecret();
        const { keyId } = (await verify(secret)).body.data;
        await server.ok("keys.deleteKey", { keyId, permanent }, { as });
        other.takeKeys();
        for (let i = 0; i < 2; i++) assert.equal(await code(secret), "NOT_FOUND");
        // Nothing but its hash is left of the second one.
        assert.deepEqual(other.takeKeys(), permanent ? [secret] : []);
      }
    });

    it("are asked only for APIs that the call accepts and the root key may verify", async () => {
      const { as, apiId, code } = await newWorkspace();
      const { apiId: elsewhere } = await server.ok("apis.createApi", { name: "elsewhere" }, { as });
      other.answer = () => yes();
      assert.equal(await code(newSecret(), { apiId: elsewhere }), "NOT_FOUND");
      assert.equal(await code(newSecret(), { keyspaces: [elsewhere] }), "NOT_FOUND");
      const permissions = [`apis.${elsewhere}.verify_key`];
      const { key: limited } = await server.ok("rootKeys.createRootKey", { name: "limited", permissions }, { as });
      assert.equal((await server.verify(newSecret(), {}, { as: limited })).code, "NOT_FOUND");
      assert.equal((await server.verify(newSecret())).code, "NOT_FOUND");
      assert.deepEqual(other.takeKeys(), []);
      assert.equal(await code(newSecret(), { apiId, keyspaces: [elsewhere, apiId] }), "VALID");
    });

    it("get their headers, which are sealed in the database and returned by name only", async () => {
      const value = "Bearer of-the-other-system";
      const { as, apiId, code } = await newWorkspace({ headers: [{ name: "Authorization", value }], timeout: 500 });
      await code(newSecret());
      assert.equal(other.questions[0]!.headers.authorization, value);
      assert.deepEqual((await server.ok("apis.getApi", { apiId }, { as })).upstream, {
        url: other.url,
        headers: ["Authorization"],
        timeout: 500,
        onOutage: "unavailable",
      });
      const stored = JSON.stringify([await server.rowsOf("apis"), await server.rowsOf("audit_events")]);
      assert(!stored.includes("of-the-other-system"));
      await server.ok("apis.updateApi", { apiId, upstream: null }, { as });
      other.takeKeys();
      assert.equal(await code(newSecret()), "NOT_FOUND");
      assert.deepEqual(other.takeKeys(), []);
    });

    it("that fail make unknown keys undecided, or not found, as the API says, and leave known keys alone", async () => {
      const outages: Answer[] = [
        { status: 500, body: "{}" },
        { status: 404, body: '{"valid":true}' },
        { status: 302, body: "", headers: { location: other.url } },
        { body: "nonsense" },
        { body: "null" },
        { body: '{"valid":"yes"}' },
        { body: '{"valid":true,"expires":"tomorrow"}' },
        { body: '{"valid":true,"credits":{"remaining":null,"refill":{"interval":"daily","amount":1}}}' },
        { body: `{"valid":true,"meta":{"a":"${"x".repeat(300_000)}"}}` },
      ];
      const [first, second] = [await newWorkspace(), await newWorkspace({ onOutage: "not_found" })];
      const { key: known } = await server.ok("keys.createKey", { apiId: first.apiId }, { as: first.as });
      for (const outage of outages) {
        other.answer = () => outage;
        const before = (await server.rowsOf("keys")).length;
        const text = JSON.stringify(outage).slice(0, 60);
        assert.equal(await first.code(newSecret()), "service_unavailable", text);
        assert.equal(await second.code(newSecret()), "NOT_FOUND", text);
        assert.equal(await first.code(known), "VALID");
        assert.equal((await server.rowsOf("keys")).length, before);
        await server.advance(1_000);
      }
      const line = server.logged.findLast(({ message }) => message.includes("upstream verifier"))!;
      assert(!JSON.stringify(line).includes("_secret"));
      other.answer = () => yes();
      assert.equal(await first.code(newSecret()), "VALID");
    });

    it("that do not answer in time are left alone for a second after three failures", async () => {
      const { code } = await newWorkspace({ timeout: 1_000 });
      other.answer = () => "nothing";
      for (let i = 0; i < 3; i++) {
        const undecided = code(newSecret());
        while (other.questions.length <= i) await setImmediate();
        await server.advance(999);
        await setImmediate();
        await server.advance(1);
        assert.equal(await undecided, "service_unavailable");
      }
      assert.equal(other.takeKeys().length, 3);
      assert.equal(await code(newSecret()), "service_unavailable");
      assert.deepEqual(other.takeKeys(), []);
      await server.advance(1_000);
      other.answer = () => yes();
      assert.equal(await code(newSecret()), "VALID");
    });

    it("need update_api and create_key, and are at most five in a workspace", async () => {
      const { as, apiId } = await newWorkspace();
      const upstream = { url: other.url };
      const { key: limited } = await server.ok(
        "rootKeys.createRootKey",
        { name: "limited", permissions: ["apis.*.update_api"] },
        { as },
      );
      await server.rejected("apis.updateApi", { apiId, upstream }, "insufficient_permissions", { as: limited });
      await server.ok("apis.updateApi", { apiId, upstream: null }, { as: limited });
      const ids: string[] = [];
      for (let i = 0; i < 6; i++) ids.push((await server.ok("apis.createApi", { name: "one more" }, { as })).apiId);
      for (const id of ids.slice(0, 5)) await server.ok("apis.updateApi", { apiId: id, upstream }, { as });
      await server.ok("apis.updateApi", { apiId: ids[0], upstream }, { as });
      await server.rejected("apis.updateApi", { apiId: ids[5], upstream }, "precondition_failed", { as });
      for (const headers of [
        [{ name: "Host", value: "x" }],
        [{ name: "a b", value: "x" }],
        [{ name: "A", value: "x\r\ny" }],
      ]) {
        await server.rejected(
          "apis.updateApi",
          { apiId: ids[0], upstream: { ...upstream, headers } },
          "invalid_input",
          { as },
        );
      }
      await server.rejected(
        "apis.updateApi",
        { apiId: ids[0], upstream: { url: "file:///etc/passwd" } },
        "invalid_input",
        { as },
      );
    });
  });
}

describe("questions to upstream verifiers", () => {
  const upstreamServer = async (
    t: { after(undo: () => Promise<void> | void): void },
    settings: Record<string, string>,
  ) => {
    const other = new OtherSystem();
    await other.listen();
    t.after(() => other.close());
    const server = await new TestServer({ settings }).open();
    t.after(() => server.close());
    const apiId = await server.createApi();
    await server.ok("apis.updateApi", { apiId, upstream: { url: other.url } });
    return { other, server };
  };

  it("count against the budget for look-ups, unless the key exists", async (t) => {
    const { other, server } = await upstreamServer(t, { UPSTREAM_ALLOW_PRIVATE: "yes", LOOKUPS_PER_SECOND: "4" });
    other.answer = (key) => (key.startsWith("good") ? yes() : { body: '{"valid":false}' });
    for (let i = 0; i < 10; i++) {
      assert.equal((await server.verify(`good_${i}`)).code, "VALID");
      await server.advance(250);
    }
    await server.advance(10_000);
    let refused = 0;
    for (let i = 0; i < 10; i++) {
      const { problem } = await server.call("keys.verifyKey", { key: `bad_${i}` });
      if (problem === "lookups_exhausted") refused++;
    }
    assert(refused >= 6, `${refused}`);
    assert(other.takeKeys().filter((key) => key.startsWith("bad")).length <= 4);
  });

  it("are not asked for a workspace with its maximum number of keys", async (t) => {
    const { other, server } = await upstreamServer(t, { UPSTREAM_ALLOW_PRIVATE: "yes", KEYS_PER_WORKSPACE: "1" });
    other.answer = () => yes();
    assert.equal((await server.verify("first")).code, "VALID");
    await server.store.settled();
    await server.rejected("keys.verifyKey", { key: "second" }, "workspace_quota_exceeded");
    assert.deepEqual(other.takeKeys(), ["first"]);
    assert.equal((await server.verify("first")).code, "VALID");
  });

  it("go to public addresses only, unless the configuration allows others", async (t) => {
    const server = await new TestServer({}).open();
    t.after(() => server.close());
    const apiId = await server.createApi();
    for (const [url, fault] of [
      ["http://example.com/verify", "must begin with https://"],
      ["https://127.0.0.1/verify", "must be a public address"],
      ["https://[::ffff:10.0.0.1]/verify", "must be a public address"],
      ["https://user:word@example.com/verify", "must not contain a user name or a password"],
    ] as const) {
      const { status, problem, body } = await server.call("apis.updateApi", { apiId, name: "x", upstream: { url } });
      assert.deepEqual([status, problem, body.error.detail], [400, "invalid_input", `\`upstream.url\` ${fault}.`]);
    }
    const api = await server.ok("apis.getApi", { apiId });
    assert.deepEqual([api.name, api.upstream], ["payments", undefined]);
    // What a name stands for is found at each question.
    await server.ok("apis.updateApi", { apiId, upstream: { url: "https://localhost/verify" } });
    await server.rejected("keys.verifyKey", { key: "unknown" }, "service_unavailable");
  });

  it("about keys of callers without a root key are asked too", async (t) => {
    const { other, server } = await upstreamServer(t, { UPSTREAM_ALLOW_PRIVATE: "yes" });
    other.answer = () => yes({ name: "hidden" });
    const data = await server.verify("old_key_of_somebody", {}, { as: null });
    assert.equal(data.code, "VALID");
    assert.equal(data.name, undefined);
  });
});
