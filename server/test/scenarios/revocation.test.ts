import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { describeOnStores, stores, TestServer } from "../harness.ts";

/** Every way in which a key ends, and the code of a verification from then on. */
const ends: {
  how: string;
  end(server: TestServer, made: { apiId: string; keyId: string }): Promise<unknown>;
  code: string;
}[] = [
  {
    how: "disabled",
    end: (server, { keyId }) => server.ok("keys.updateKey", { keyId, enabled: false }),
    code: "DISABLED",
  },
  {
    how: "expired",
    end: (server, { keyId }) => server.ok("keys.updateKey", { keyId, expires: 100_000_000_000 }),
    code: "EXPIRED",
  },
  { how: "deleted", end: (server, { keyId }) => server.ok("keys.deleteKey", { keyId }), code: "NOT_FOUND" },
  {
    how: "erased",
    end: (server, { keyId }) => server.ok("keys.deleteKey", { keyId, permanent: true }),
    code: "NOT_FOUND",
  },
  {
    how: "deleted with its API",
    end: (server, { apiId }) => server.ok("apis.deleteApi", { apiId }),
    code: "NOT_FOUND",
  },
];

async function newKey(server: TestServer) {
  const apiId = await server.createApi();
  return { apiId, ...(await server.createKey(apiId)) };
}

/** Delays the next answer of `procedure`, which the database has already given, until `release` is called. */
function holdAnswer(server: TestServer, procedure: string): { held: Promise<void>; release(): void } {
  const held = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  server.store.interception = async (name, proceed) => {
    if (name !== procedure) return proceed();
    server.store.interception = undefined;
    const answer = await proceed();
    held.resolve();
    await gate.promise;
    return answer;
  };
  return { held: held.promise, release: gate.resolve };
}

describeOnStores("a revoked key", (server) => {
  for (const { how, end, code } of ends) {
    it(`is rejected by the next verification after it was ${how}`, async () => {
      const made = await newKey(server);
      for (const as of [server.rootKey, null]) assert.equal((await server.verify(made.key, {}, { as })).code, "VALID");
      await end(server, made);
      for (const as of [server.rootKey, null]) assert.equal((await server.verify(made.key, {}, { as })).code, code);
    });

    it(`is rejected although it was read before it was ${how} and the answer came later`, async () => {
      const made = await newKey(server);
      const { held, release } = holdAnswer(server, "keysAt");
      const first = server.verify(made.key);
      await held;
      await end(server, made);
      // Called after the change was acknowledged, while the old answer is still in flight.
      const second = server.verify(made.key);
      release();
      assert.equal((await second).code, code);
      // At an edge it is decided by what was true when it began.
      if (!server.hasEdge) assert.equal((await first).code, code);
      assert.equal((await server.verify(made.key)).code, code);
    });
  }

  it("verifies again at once when it is enabled", async () => {
    const made = await newKey(server);
    assert.equal((await server.verify(made.key)).code, "VALID");
    await server.ok("keys.updateKey", { keyId: made.keyId, enabled: false });
    assert.equal((await server.verify(made.key)).code, "DISABLED");
    await server.ok("keys.updateKey", { keyId: made.keyId, enabled: true });
    assert.equal((await server.verify(made.key)).code, "VALID");
  });

  describe("a revoked root key", () => {
    it("is rejected although it was read before it was deleted and the answer came later", async () => {
      const { rootKeyId, workspaceId, key: as } = await server.grant("*");
      const { held, release } = holdAnswer(server, "rootKeysByHashes");
      const first = server.call("apis.createApi", { name: "late" }, { as });
      await held;
      const act = { now: server.clock.now(), actor: "cli", workspaceId };
      await server.store.transact("deleteRootKey", { ...act, rootKeyId });
      await server.pass(500);
      release();
      assert.equal((await first).problem, "authentication_failed");
      await server.rejected("apis.createApi", { name: "later" }, "authentication_failed", { as });
    });
  });
});

for (const store of stores) {
  describe(`two services on one ${store} database`, () => {
    const one = new TestServer({ store });
    const other = new TestServer({ store, beside: one });
    before(async () => {
      await one.open();
      await other.open();
    });
    after(async () => {
      await other.close();
      await one.close();
    });

    /** Advances the clock until the other service has read the changes. */
    const known = async () => {
      await one.pass(500);
      await other.store.settled();
    };

    for (const { how, end, code } of ends) {
      it(`reject on one a key that was ${how} on the other`, async () => {
        const made = await newKey(one);
        await known();
        for (const server of [one, other]) assert.equal((await server.verify(made.key)).code, "VALID");
        await end(other, made);
        assert.equal((await other.verify(made.key)).code, code);
        await known();
        assert.equal((await one.verify(made.key)).code, code);
      });
    }

    it("find on one what was created on the other, although it was cached as missing", async () => {
      const gone = await newKey(one);
      await one.ok("keys.deleteKey", { keyId: gone.keyId, permanent: true });
      await known();
      for (const server of [one, other]) assert.equal((await server.verify(gone.key)).code, "NOT_FOUND");
      // Only an imported key string can be known before its key exists.
      const made = await newKey(one);
      const hash = hashSecret(gone.key);
      await one.change([hash], async ({ db }) => {
        await db.updateTable("keys").set({ hash }).where("id", "=", made.keyId).execute();
      });
      await known();
      for (const server of [one, other]) assert.equal((await server.verify(gone.key)).keyId, made.keyId);
    });

    it("reject a root key on both once its workspace is disabled", async () => {
      const { workspaceId, key: as } = await one.workspace("suspended");
      for (const server of [one, other]) await server.ok("apis.createApi", { name: "theirs" }, { as });
      const act = { now: one.clock.now(), actor: "cli", workspaceId };
      await one.store.transact("setWorkspaceEnabled", { ...act, enabled: false });
      await known();
      for (const server of [one, other]) {
        await server.rejected("apis.createApi", { name: "theirs" }, "workspace_disabled", { as });
      }
    });

    it("read changes before they serve after a suspension", async () => {
      const made = await newKey(one);
      await known();
      assert.equal((await one.verify(made.key)).code, "VALID");
      await other.ok("keys.updateKey", { keyId: made.keyId, enabled: false });
      // The clock advances without a timer of the service, as when a machine was suspended.
      one.clock.step(60_000);
      assert.equal((await one.verify(made.key)).code, "DISABLED");
      one.clock.step(-60_000);
      await known();
    });
  });
}

describe("changes that are committed in another order than numbered", () => {
  it("are all read", async () => {
    const server = await new TestServer({ store: "postgres" }).open();
    try {
      const [early, late] = [await newKey(server), await newKey(server)];
      await server.pass(500);
      for (const { key } of [early, late]) assert.equal((await server.verify(key)).code, "VALID");

      const slow = await server.openTransaction([early.keyId], async ({ db }) => {
        await db.updateTable("keys").set({ enabled: 0 }).where("id", "=", early.keyId).execute();
      });
      // Later numbers are committed and read first, several times.
      for (let turn = 0; turn < 3; turn++) {
        await server.change([late.keyId], async ({ db }) => {
          await db.updateTable("keys").set({ enabled: 0 }).where("id", "=", late.keyId).execute();
        });
      }
      assert.equal((await server.verify(late.key)).code, "DISABLED");
      assert.equal((await server.verify(early.key)).code, "VALID");
      await slow.commit();
      await server.pass(500);
      assert.equal((await server.verify(early.key)).code, "DISABLED");
    } finally {
      await server.close();
    }
  });
});
