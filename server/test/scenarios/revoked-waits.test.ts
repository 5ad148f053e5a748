/** What happens to a key or a caller while a call waits for Redis, for the ledger or for a look-up. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { type Change, changesOfKeys, changesOfRootKeys } from "../changes-during-waits.ts";
import { TestEdge } from "../edge.ts";
import { GrpcClient } from "../grpc/client.ts";
import { rateLimitRequest, SHOULD_RATE_LIMIT } from "../grpc/rate-limit-messages.ts";
import { describeOnStores, type Reply, TestServer, VAULT_KEY } from "../harness.ts";
import { postForm, requestToken } from "../oauth-caller.ts";
import { sharedRedis } from "../services/redis.ts";
import { TcpProxy } from "../tcp-proxy.ts";

const ofKeys: readonly Change[] = [
  ...changesOfKeys,
  {
    how: "only its name changes",
    change: (server, { keyId }) => server.ok("keys.updateKey", { keyId, name: "renamed" }),
    answer: "VALID",
  },
];

const permissions = ["documents.read"];
const HOUR = 3_600_000;
const counted = { identifier: "a", limit: 100, duration: HOUR };

/** A key with a limit, and a root key that may do everything with it. */
async function make(server: TestServer, more: object = {}) {
  const apiId = await server.createApi();
  const { key: rootKey, rootKeyId } = await server.grant(
    ...["verify_key", "read_key", "create_key"].map((action) => `apis.*.${action}`),
    ...["ratelimits.*.*", "replicas.*.open"],
  );
  const ratelimits = [{ name: "calls", limit: 100, duration: HOUR, autoApply: true }];
  const options = { permissions, expires: server.clock.now() + 60_000, ratelimits, ...more };
  const { key, keyId } = await server.createKey(apiId, options);
  return { apiId, key, keyId, rootKey, rootKeyId };
}

type Everything = Awaited<ReturnType<typeof make>>;

const answerOf = ({ problem, body }: Reply): string => problem ?? body.data.code ?? "VALID";
const codeOf = ([result]: { data?: { code?: string }; problem?: { code: string } }[]) =>
  result?.problem?.code ?? result?.data?.code ?? "VALID";

describe("A call that waits for Redis (rule 208)", () => {
  const settings: Record<string, string> = {
    PORT: "0",
    GRPC_PORT: "0",
    OAUTH_TOKENS: "on",
    PUBLIC_URL: "https://keys.example",
    VAULT_KEY,
  };
  // On SQLite a call with an Idempotency-Key has the only writing transaction while it waits.
  const server = new TestServer({ store: "postgres", settings });
  let proxy: TcpProxy;
  let namespaces = 0;
  before(async () => {
    proxy = await TcpProxy.open(await sharedRedis());
    settings.REDIS_URL = proxy.url;
    await server.open();
    await server.service.listen();
  });
  after(async () => {
    await server.close();
    await proxy.close();
  });

  /** The answer of a call during whose wait something changes. */
  async function during<T>(call: () => Promise<T>, change: () => Promise<unknown>): Promise<T> {
    const heldBack = proxy.heldBack();
    proxy.stall();
    const waiting = call();
    try {
      await heldBack;
      await change();
    } finally {
      proxy.resume();
    }
    return waiting;
  }

  /** The calls, with the answer to a caller whose root key has lost its permissions. */
  const calls: Record<string, { lost: string; call(made: Everything): Promise<string>; ofKey?: true }> = {
    "keys.verifyKey": {
      lost: "NOT_FOUND",
      ofKey: true,
      call: async ({ key, rootKey: as }) =>
        answerOf(await server.call("keys.verifyKey", { key, permissions: "documents.read" }, { as })),
    },
    "keys.verifyKey with an Idempotency-Key": {
      lost: "NOT_FOUND",
      ofKey: true,
      call: async ({ key, rootKey: as }) => {
        const headers = { "idempotency-key": "order-104217" };
        return answerOf(await server.call("keys.verifyKey", { key, permissions: "documents.read" }, { as, headers }));
      },
    },
    "replica.charge": {
      lost: "NOT_FOUND",
      ofKey: true,
      call: async ({ key, rootKey }) =>
        codeOf(await new TestEdge(server, rootKey).charge({ key, permissions: "documents.read" })),
    },
    "replica.charge for another root key": {
      lost: "NOT_FOUND",
      ofKey: true,
      call: async ({ key, rootKey }) =>
        codeOf(await new TestEdge(server).charge({ key, permissions: "documents.read", rootKey: hashSecret(rootKey) })),
    },
    "replica.charge of limits": {
      lost: "insufficient_permissions",
      call: async ({ rootKey }) => {
        const entries = [{ ...counted, namespace: await namespace(), mode: "standard", shadow: false, cost: 1 }];
        return codeOf(await new TestEdge(server, rootKey).limit({ operation: "ratelimits.limit", entries }));
      },
    },
    "ratelimits.limit": {
      lost: "insufficient_permissions",
      call: async ({ rootKey: as }) =>
        answerOf(await server.call("ratelimits.limit", { ...counted, namespace: await namespace() }, { as })),
    },
    "ratelimits.limit with an Idempotency-Key": {
      lost: "insufficient_permissions",
      call: async ({ rootKey: as }) => {
        const headers = { "idempotency-key": "order-104217" };
        const body = { ...counted, namespace: await namespace() };
        return answerOf(await server.call("ratelimits.limit", body, { as, headers }));
      },
    },
    "ratelimits.multiLimit": {
      lost: "insufficient_permissions",
      call: async ({ rootKey: as }) =>
        answerOf(await server.call("ratelimits.multiLimit", [{ ...counted, namespace: await namespace() }], { as })),
    },
  };

  /** Calls that charge nothing to the key, with their answers to changes of the key, if these differ, and to the lost permissions. */
  const readings: Record<
    string,
    { lost: string; call(made: Everything): Promise<string>; answers?: Record<string, string> }
  > = {
    "keys.getOwnKey": {
      lost: "key_not_found",
      answers: { NOT_FOUND: "key_not_found", EXPIRED: "VALID", INSUFFICIENT_PERMISSIONS: "VALID" },
      call: async ({ key, rootKey: as }) => {
        const reply = await server.call("keys.getOwnKey", { key }, { as });
        return reply.body.data?.enabled === false ? "DISABLED" : answerOf(reply);
      },
    },
    "keys.explainVerification": {
      lost: "NOT_FOUND",
      call: async ({ key, rootKey: as }) =>
        answerOf(await server.call("keys.explainVerification", { key, permissions: "documents.read" }, { as })),
    },
    "keys.explainVerification of an id": {
      lost: "insufficient_permissions",
      call: async ({ keyId, rootKey: as }) =>
        answerOf(await server.call("keys.explainVerification", { keyId, permissions: "documents.read" }, { as })),
    },
    "keys.deriveOwnKey": {
      lost: "key_not_found",
      answers: {
        NOT_FOUND: "key_not_found",
        EXPIRED: "precondition_failed",
        DISABLED: "precondition_failed",
        INSUFFICIENT_PERMISSIONS: "VALID",
      },
      call: async ({ key, rootKey: as }) =>
        answerOf(await server.call("keys.deriveOwnKey", { key, ttl: 60_000 }, { as })),
    },
  };

  for (const [name, { lost, answers = {}, call }] of Object.entries(readings)) {
    for (const { how, change, answer } of [...ofKeys, ...changesOfRootKeys(lost)]) {
      it(`is judged again by ${name} when ${how}`, async () => {
        const made = await make(server);
        const access = { ownKeyAccess: true, ownKeyDerivation: true };
        await server.ok("apis.updateApi", { apiId: made.apiId, ...access });
        await server.verify(made.key, { ratelimits: [{ name: "calls", cost: 0 }] }, { as: made.rootKey });
        const before = (await server.rowsOf("derived_keys")).length;
        const got = await during(
          () => call(made),
          () => change(server, made),
        );
        assert.equal(got, answers[answer] ?? answer);
        const isMade = name === "keys.deriveOwnKey" && got === "VALID";
        assert.equal((await server.rowsOf("derived_keys")).length, before + (isMade ? 1 : 0));
      });
    }
  }

  for (const { how, change, answer } of changesOfRootKeys("insufficient_permissions")) {
    it(`is judged again by ratelimits.explainLimit when ${how}`, async () => {
      const made = await make(server);
      const body = { ...counted, namespace: await nextNamespace() };
      const ask = async () => answerOf(await server.call("ratelimits.explainLimit", body, { as: made.rootKey }));
      assert.equal(await ask(), "VALID");
      assert.equal(await during(ask, () => change(server, made)), answer);
    });
  }

  /** A namespace that exists already. */
  const namespace = async () => `waits ${namespaces}`;
  async function nextNamespace(): Promise<string> {
    namespaces++;
    await server.ok("ratelimits.limit", { ...counted, namespace: await namespace(), cost: 0 });
    return namespace();
  }

  for (const [name, { lost, ofKey, call }] of Object.entries(calls)) {
    for (const { how, change, answer } of [...(ofKey ? ofKeys : []), ...changesOfRootKeys(lost)]) {
      it(`is judged again by ${name} when ${how}`, async () => {
        const made = await make(server);
        await nextNamespace();
        // What it looks up is cached then.
        if (ofKey) await server.verify(made.key, { ratelimits: [{ name: "calls", cost: 0 }] }, { as: made.rootKey });
        await server.verify("unknown", {}, { as: made.rootKey });
        const got = await during(
          () => call(made),
          () => change(server, made),
        );
        assert.equal(got, answer);
        if (answer !== "VALID") return;
        const { ratelimits } = await server.verify(made.key, { ratelimits: [{ name: "calls", cost: 0 }] });
        assert.equal(ratelimits[0].remaining, 99, "charged once");
      });
    }
  }

  for (const { how, change, answer } of changesOfRootKeys("insufficient_permissions")) {
    it(`is judged again by ShouldRateLimit when ${how}`, async () => {
      const made = await make(server);
      const domain = await nextNamespace();
      const client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, made.rootKey);
      const message = rateLimitRequest(domain, [{ entries: [["user", "a"]], limit: [5, 4] }]);
      const ask = () => client.call(SHOULD_RATE_LIMIT, message);
      assert.equal((await ask()).status, 0);
      const { status } = await during(ask, () => change(server, made));
      await client.close();
      assert.equal(status, answer === "authentication_failed" ? 16 : 7);
    });
  }

  for (const { how, change, answer } of ofKeys) {
    it(`gets an access token by what its key is then, when ${how}`, async () => {
      const made = await make(server);
      await server.ok("apis.updateApi", { apiId: made.apiId, resources: ["https://files.example"] });
      const got = await during(
        () => requestToken(server, made),
        () => change(server, made),
      );
      if (["DISABLED", "NOT_FOUND", "EXPIRED"].includes(answer)) assert.equal(got.body.error, "invalid_client");
      else assert.equal(got.body.scope, answer === "VALID" ? "documents.read" : undefined);
    });
  }

  it("is judged again when it waits for the limit of its workspace", async () => {
    const calls: Record<string, (key: string, keyId: string, as: string) => Promise<string | number | undefined>> = {
      "keys.verifyKey": async (key, _, as) => (await server.call("keys.verifyKey", { key }, { as })).problem,
      "keys.getKey": async (_, keyId, as) => (await server.call("keys.getKey", { keyId }, { as })).problem,
      ShouldRateLimit: async (_key, _keyId, as) => {
        const client = new GrpcClient(`http://127.0.0.1:${server.service.grpcAddress!.port}`, as);
        const message = rateLimitRequest("no namespace", [{ entries: [["user", "a"]] }]);
        const { status } = await client.call(SHOULD_RATE_LIMIT, message);
        await client.close();
        return status === 0 ? undefined : status;
      },
    };
    for (const [name, call] of Object.entries(calls)) {
      const { workspaceId, key: as } = await server.workspace(`limited, ${name}`);
      const { apiId } = await server.ok("apis.createApi", { name: "api" }, { as });
      const { key, keyId } = await server.ok("keys.createKey", { apiId }, { as });
      await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 100 });
      assert.equal(await call(key, keyId, as), undefined);
      const answer = await during(
        () => call(key, keyId, as),
        () => server.ok("workspaces.updateWorkspace", { workspaceId, enabled: false }),
      );
      assert.equal(answer, name === "ShouldRateLimit" ? 7 : "workspace_disabled");
    }
  });
});

describeOnStores("A call that waits for the database (rule 208)", (server) => {
  let plans = 0;

  /** The answer of a call during whose first read or write of this kind something changes. */
  async function during(procedure: string, call: () => Promise<Reply>, change: () => Promise<unknown>) {
    const held = server.store.holdNext(procedure);
    const waiting = call();
    await held.reached;
    await change();
    held.release();
    return answerOf(await waiting);
  }

  for (const { how, change, answer } of [...ofKeys, ...changesOfRootKeys("NOT_FOUND")]) {
    it(`is judged again when ${how} while its plan is read`, async () => {
      const { planId } = await server.ok("plans.createPlan", { name: `plan-${++plans}` });
      const made = await make(server, { plan: planId });
      const { key, rootKey: as } = made;
      await server.verify("unknown", {}, { as });
      const call = () => server.call("keys.verifyKey", { key, permissions: "documents.read" }, { as });
      assert.equal(await during("plansByIds", call, () => change(server, made)), answer);
    });
  }

  for (const { how, change, answer } of changesOfRootKeys("insufficient_permissions")) {
    it(`is told nothing of a key when ${how} while that is read`, async () => {
      const made = await make(server);
      const call = () => server.call("keys.getKey", { keyId: made.keyId }, { as: made.rootKey });
      assert.equal(answerOf(await call()), "VALID");
      assert.equal(await during("query", call, () => change(server, made)), answer);
    });
  }

  for (const { how, change, answer } of [...ofKeys, ...changesOfRootKeys("NOT_FOUND")]) {
    it(`is introspected by what it is then, when ${how}`, async () => {
      const made = await make(server);
      const held = server.store.holdNext("keyCreation");
      const waiting = postForm(
        server,
        "/oauth/introspect",
        { token: made.key },
        { authorization: `Bearer ${made.rootKey}` },
      );
      await held.reached;
      await change(server, made);
      held.release();
      const { status, body } = await waiting;
      if (answer.startsWith("authentication") || answer.startsWith("root_key")) assert.equal(status, 401);
      else if (["VALID", "INSUFFICIENT_PERMISSIONS"].includes(answer)) {
        assert.equal(body.scope, answer === "VALID" ? "documents.read" : undefined);
        assert.equal(body.active, true);
      } else assert.deepEqual(body, { active: false });
    });
  }

  for (const { how, change, answer } of changesOfRootKeys("key_not_found")) {
    it(`derives no key when ${how}`, async () => {
      const made = await make(server);
      await server.ok("apis.updateApi", { apiId: made.apiId, ownKeyDerivation: true });
      const call = () => server.call("keys.deriveOwnKey", { key: made.key, ttl: 60_000 }, { as: made.rootKey });
      const before = (await server.rowsOf("derived_keys")).length;
      assert.equal(await during("deriveForHolder", call, () => change(server, made)), answer);
      assert.equal((await server.rowsOf("derived_keys")).length, before);
    });
  }

  for (const operation of ["holds.settleHold", "holds.extendHold", "holds.releaseHold"]) {
    for (const { how, change, answer } of changesOfRootKeys("insufficient_permissions")) {
      it(`changes nothing by ${operation} when ${how}`, async () => {
        const made = await make(server, { credits: { remaining: 10 } });
        const { key, rootKey: as } = made;
        const asked = { credits: { cost: 4 }, hold: { ttl: 60_000 }, permissions: "documents.read" };
        const { hold } = await server.verify(key, asked, { as });
        const more = { "holds.settleHold": { credits: 3 }, "holds.extendHold": { ttl: 90_000 } }[operation];
        const body = { holdId: hold.holdId, ...more };
        const call = () => server.call(operation, body, { as });
        assert.equal(await during("spend", call, () => change(server, made)), answer);
        const { state, expiresAt } = await server.ok("holds.getHold", { holdId: hold.holdId });
        assert.deepEqual({ state, expiresAt }, { state: "open", expiresAt: hold.expiresAt });
        assert.equal((await server.call(operation, body)).status, 200);
      });
    }
  }
});
