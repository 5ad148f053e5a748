import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOnStores, type TestServer } from "../harness.ts";

const NOT_FOUND = { valid: false, code: "NOT_FOUND" };

describeOnStores("keys.verifyKey", (server) => {
  const keyWith = async (more: object = {}) => server.createKey(await server.createApi(), more);

  it("returns a valid key as it is stored (rule 35)", async () => {
    await server.createRole("verify_support", "tickets.read");
    const apiId = await server.createApi();
    const { keyId, key } = await server.createKey(apiId, {
      name: "production",
      meta: { plan: "pro" },
      externalId: "verify_alice",
      roles: ["verify_support"],
      permissions: ["documents.read", "tickets.read"],
      expires: 4_000_000_000_000,
    });
    const { identity } = await server.getKey(keyId);
    assert.deepEqual(await server.verify(key, { tags: ["region=eu", "☂"] }), {
      valid: true,
      code: "VALID",
      keyId,
      apiId,
      enabled: true,
      name: "production",
      meta: { plan: "pro" },
      expires: 4_000_000_000_000,
      identity,
      roles: ["verify_support"],
      permissions: ["documents.read", "tickets.read"],
    });
    assert.deepEqual(identity, { id: identity.id, externalId: "verify_alice", meta: {}, ratelimits: [] });
    const plain = await server.createKey(apiId);
    assert.deepEqual(await server.verify(plain.key), {
      valid: true,
      code: "VALID",
      keyId: plain.keyId,
      apiId,
      enabled: true,
      meta: {},
    });
  });

  it("returns nothing about a key that is not found, for any reason (rules 36, 48)", async () => {
    const apiId = await server.createApi();
    const other = await server.createApi("other");
    const { key } = await server.createKey(apiId, { name: "hidden", permissions: ["a.b"] });
    assert.equal((await server.verify(key)).code, "VALID");
    const mistyped = key.slice(0, -1) + (key.endsWith("1") ? "2" : "1");
    for (const invented of [
      "x",
      "sk_1",
      mistyped,
      `${key} `,
      key.toUpperCase(),
      "k".repeat(512),
      "ключ",
      "a".repeat(28),
    ]) {
      assert.deepEqual(await server.verify(invented), NOT_FOUND);
      assert.deepEqual(await server.verify(invented), NOT_FOUND);
    }
    for (const grants of [["apis.*.read_key"], [`apis.${other}.verify_key`], ["apis.*.create_key", "identities.*.*"]]) {
      const { key: as } = await server.grant(...grants);
      assert.deepEqual(await server.verify(key, {}, { as }), NOT_FOUND);
      // The answer does not mention the invalid query either.
      assert.deepEqual(await server.verify(key, { permissions: "(" }, { as }), NOT_FOUND);
    }
    assert.deepEqual(await server.verify(key, {}, { as: (await server.workspace("stranger")).key }), NOT_FOUND);
    for (const elsewhere of [{ apiId: other }, { keyspaces: [other] }, { keyspaces: [apiId], apiId: other }]) {
      assert.deepEqual(await server.verify(key, elsewhere), NOT_FOUND);
    }
    for (const keyspaces of [[apiId], [other, apiId], [apiId, apiId]]) {
      assert.equal((await server.verify(key, { keyspaces })).code, "VALID");
    }
    for (const grants of [[`apis.${apiId}.verify_key`], ["apis.*.verify_key"], ["api.*.verify_key"], ["*"]]) {
      const { key: as } = await server.grant(...grants);
      assert.equal((await server.verify(key, { apiId }, { as })).code, "VALID");
    }
  });

  it("expires at the exact millisecond (rule 37)", async () => {
    const expires = server.clock.now() + 3_000;
    const { key } = await keyWith({ expires });
    assert.equal((await server.verify(key)).code, "VALID");
    await server.pass(expires - 1 - server.clock.now());
    assert.equal((await server.verify(key)).code, "VALID");
    await server.pass(1);
    const { code, valid, ...rest } = await server.verify(key);
    assert.deepEqual([valid, code], [false, "EXPIRED"]);
    assert.equal(rest.expires, expires);
    assert.equal((await server.verify((await keyWith({ expires: 0 })).key)).code, "EXPIRED");
  });

  it("answers with the first failing check, in the contract's order (rule 38)", async () => {
    await server.createRole("verify_order", "order.read");
    const apiId = await server.createApi();
    await server.ok("apis.updateApi", { apiId, allowedIps: ["10.0.0.0/8"] });
    const given = {
      expires: 100_000_000_000,
      enabled: false,
      name: "described",
      roles: ["verify_order"],
      meta: { kept: 1 },
    };
    const { keyId, key } = await server.createKey(apiId, given);
    const query = { permissions: "order.write" };
    const code = async () => {
      const { code, valid, keyId: shown, name, roles, meta } = await server.verify(key, query);
      assert.equal(valid, code === "VALID");
      // A rejected key is still described.
      assert.deepEqual(
        { shown, name, roles, meta },
        { shown: keyId, name: "described", roles: ["verify_order"], meta: { kept: 1 } },
      );
      return code;
    };
    const error = await server.rejected(
      "keys.verifyKey",
      { key, permissions: "a AND" },
      "permissions_query_syntax_error",
    );
    assert.deepEqual(error.errors, []);
    assert.equal(await code(), "DISABLED");
    await server.ok("keys.updateKey", { keyId, enabled: true });
    assert.equal(await code(), "EXPIRED");
    await server.ok("keys.updateKey", { keyId, expires: null });
    assert.equal(await code(), "FORBIDDEN");
    await server.ok("apis.updateApi", { apiId, allowedIps: null });
    assert.equal(await code(), "INSUFFICIENT_PERMISSIONS");
    await server.ok("keys.updateKey", { keyId, permissions: ["order.write"] });
    assert.equal(await code(), "VALID");
  });

  it("evaluates permission queries over direct and inherited permissions (rule 39)", async () => {
    await server.createRole("verify_query", "role.read", "shared.x");
    const permissions = [
      "documents.read",
      "team:eu/west-1_a",
      "Case.Sensitive",
      "order.read",
      "shared.x",
      "star.*.middle",
    ];
    const { key } = await keyWith({ roles: ["verify_query"], permissions });
    const satisfied = async (query: string) => {
      const { code } = await server.verify(key, { permissions: query });
      assert(code === "VALID" || code === "INSUFFICIENT_PERMISSIONS", code);
      return code === "VALID";
    };
    for (const query of [
      "documents.read",
      "role.read AND documents.read",
      "nope OR role.read",
      "nope AND nope OR documents.read",
      "documents.read or (nope and nope)",
      "((documents.read))",
      " \tdocuments.read\r\nAnD  team:eu/west-1_a ",
      "order.read",
      "star.*.middle",
      Array.from({ length: 50 }, () => "role.read").join(" AND "),
    ]) {
      assert(await satisfied(query), query);
    }
    for (const query of [
      "nope",
      "documents.read AND nope",
      "documents.read AND (nope OR never)",
      "case.sensitive",
      "documents",
      "documents.*",
      "star.x.middle",
    ]) {
      assert(!(await satisfied(query)), query);
    }
  });

  it("accepts wildcards as the last segment of a grant only", async () => {
    const satisfied = async (granted: string, query: string) =>
      (await server.verify((await keyWith({ permissions: [granted] })).key, { permissions: query })).code === "VALID";
    assert(await satisfied("documents.*", "documents.read"));
    assert(await satisfied("documents.*", "documents.read.own"));
    assert(!(await satisfied("documents.*", "documents")));
    assert(!(await satisfied("documents.*", "documentsx.read")));
    assert(await satisfied("*", "anything.at:all"));
    assert(await satisfied("a:*", "a:b"));
    assert(await satisfied("a/*", "a/b/c"));
    assert(!(await satisfied("a*", "ab")));
    assert(!(await satisfied("a.*.c", "a.b.c")));
  });

  it("returns the position of an error in a permission query (rule 39)", async () => {
    const { key } = await keyWith({ enabled: false });
    for (const [permissions, kind, position] of [
      ["a AND", /end/i, 5],
      ["(a", /unclosed/i, 0],
      ["()", /empty/i, 0],
      ["AND a", /unexpected/i, 0],
      ["a OR OR b", /unexpected/i, 5],
      ["a)", /unexpected/i, 1],
      ["a b", /trailing/i, 2],
      ["a $ b", /illegal/i, 2],
      ["   ", /end/i, 3],
    ] as const) {
      const error = await server.rejected("keys.verifyKey", { key, permissions }, "permissions_query_syntax_error");
      assert.match(error.detail, kind);
      assert.match(error.detail, new RegExp(`position ${position}\\b`));
    }
    for (const permissions of ["", "a".repeat(1_001)]) {
      await server.rejected("keys.verifyKey", { key, permissions }, "invalid_input");
    }
    // A missing key has no error in its query.
    assert.deepEqual(await server.verify("never_existed", { permissions: "a AND" }), NOT_FOUND);
  });

  it("limits the sizes of its input (rules 45, 46)", async () => {
    const { key } = await keyWith();
    await server.verify(key, { tags: Array.from({ length: 10 }, (_, i) => `${i} ☂ = `.padEnd(128, "x")) });
    for (const more of [
      { tags: [""] },
      { tags: ["x".repeat(129)] },
      { tags: Array.from({ length: 11 }, () => "x") },
      { clientIp: "10.0.0" },
      { apiId: "ab" },
      { keyspaces: [] },
      { keyspaces: ["ab"] },
      { keyspaces: Array(101).fill("api_1") },
    ]) {
      await server.rejected("keys.verifyKey", { key, ...more }, "invalid_input");
    }
    for (const body of [{}, { key: "" }, { key: "k".repeat(513) }, { key: null }]) {
      await server.rejected("keys.verifyKey", body, "invalid_input");
    }
  });

  it("rejects a limit that is not stored anywhere, after all other checks (rule 44)", async () => {
    const { keyId, key } = await keyWith({ externalId: "verify_limitless" });
    const ratelimits = [{ name: "unheard of" }];
    const error = await server.rejected("keys.verifyKey", { key, ratelimits }, "precondition_failed");
    assert.match(error.detail, /unheard of/);
    assert.match(error.detail, /verify_limitless/);
    await server.ok("keys.updateKey", { keyId, enabled: false });
    assert.equal((await server.verify(key, { ratelimits })).code, "DISABLED");
  });

  it("works without an identity that was deleted (rule 49)", async () => {
    const { keyId, key } = await keyWith({ externalId: "verify_leaving" });
    const { identity } = await server.verify(key);
    await server.change([identity.id], async ({ db }) => {
      await db.updateTable("identities").set({ deleted_at: 1 }).where("id", "=", identity.id).execute();
    });
    assert.equal((await server.verify(key)).identity, undefined);
    assert.equal((await server.getKey(keyId)).identity, undefined);
    const again = await keyWith({ externalId: "verify_leaving" });
    assert.notEqual((await server.verify(again.key)).identity.id, identity.id);
  });

  it("answers many concurrent calls, of cached, uncached and unknown keys", async () => {
    const apiId = await server.createApi();
    const keys = await Promise.all(Array.from({ length: 30 }, () => server.createKey(apiId)));
    const answers = await Promise.all(
      keys.flatMap(({ key }) => [server.verify(key), server.verify(key), server.verify(`invented_${key}`)]),
    );
    for (const [i, { keyId }] of keys.entries()) {
      assert.equal(answers[3 * i].keyId, keyId);
      assert.equal(answers[3 * i + 1].keyId, keyId);
      assert.deepEqual(answers[3 * i + 2], NOT_FOUND);
    }
  });

  describe("without a root key", () => {
    const anonymously = { as: null };

    it("omits what end users must not see", async () => {
      await server.createRole("anonymous_role", "a.read");
      const apiId = await server.createApi();
      const { keyId, key } = await server.createKey(apiId, {
        name: "never shown",
        roles: ["anonymous_role"],
        permissions: ["a.write"],
        meta: { plan: "pro" },
        externalId: "anonymous_alice",
        expires: 4_000_000_000_000,
      });
      const { identity, ...shown } = await server.verify(key, { permissions: "a.read AND a.write" }, anonymously);
      assert.equal(identity.externalId, "anonymous_alice");
      const rest = { keyId, apiId, enabled: true, meta: { plan: "pro" }, expires: 4_000_000_000_000 };
      assert.deepEqual(shown, { valid: true, code: "VALID", ...rest });
      const rejected = await server.verify(key, { permissions: "nope" }, anonymously);
      assert.equal(rejected.code, "INSUFFICIENT_PERMISSIONS");
      for (const member of ["name", "roles", "permissions"]) assert.equal(rejected[member], undefined);
      assert.equal((await server.verify(key)).name, "never shown");
    });

    it("finds keys of the default workspace only", async () => {
      const { key: as } = await server.workspace("other");
      const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
      const { key } = await server.ok("keys.createKey", { apiId }, { as });
      assert.deepEqual(await server.verify(key, {}, anonymously), NOT_FOUND);
      assert.deepEqual(await server.verify(key), NOT_FOUND);
      assert.equal((await server.verify(key, {}, { as })).code, "VALID");
    });

    it("rejects an address in the body", async () => {
      const { key } = await server.createKey(await server.createApi());
      await server.rejected("keys.verifyKey", { key, clientIp: "10.0.0.1" }, "authentication_missing", anonymously);
      await server.ok("keys.verifyKey", { key, clientIp: "10.0.0.1" });
    });

    it("checks a root key that is sent", async () => {
      const { key } = await server.createKey(await server.createApi());
      await server.rejected("keys.verifyKey", { key }, "authentication_failed", { as: "unknown" });
      await server.rejected("keys.verifyKey", { key }, "authentication_malformed", {
        headers: { authorization: "Basic x" },
      });
    });
  });
});

describeOnStores(
  "keys.verifyKey where a root key is required",
  (server) => {
    it("rejects calls without one", async () => {
      const { key } = await server.createKey(await server.createApi());
      await server.rejected("keys.verifyKey", { key }, "authentication_missing", { as: null });
      assert.equal((await server.verify(key)).code, "VALID");
    });
  },
  { VERIFY_AUTH: "required" },
);

describeOnStores(
  "an API's allow-list",
  (server) => {
    const PROXY = "192.0.2.1";
    const codeFrom = async (target: TestServer, key: string, from: string, forwarded?: string, more: object = {}) =>
      (await target.verify(key, more, { from, headers: { "x-forwarded-for": forwarded } })).code;
    const listed = async (...cidrs: string[]) => {
      const apiId = await server.createApi();
      await server.ok("apis.updateApi", { apiId, allowedIps: cidrs });
      return (await server.createKey(apiId)).key;
    };

    it("accepts listed addresses and CIDRs, of both families (rule 47)", async () => {
      const key = await listed("10.1.0.0/16", "203.0.113.7", "2001:db8::/32");
      for (const [from, code] of [
        ["10.1.2.3", "VALID"],
        ["::ffff:10.1.2.3", "VALID"],
        ["10.2.0.1", "FORBIDDEN"],
        ["203.0.113.7", "VALID"],
        ["203.0.113.8", "FORBIDDEN"],
        ["2001:db8::1", "VALID"],
        ["2001:db9::1", "FORBIDDEN"],
      ] as const) {
        assert.equal(await codeFrom(server, key, from), code, from);
      }
    });

    it("uses X-Forwarded-For as far as trusted proxies forwarded it (rule 47)", async () => {
      const key = await listed("10.1.0.0/16");
      for (const [from, forwarded, code] of [
        [PROXY, "10.1.2.3", "VALID"],
        [PROXY, "198.51.100.1", "FORBIDDEN"],
        [PROXY, "10.1.2.3, 198.51.100.1", "FORBIDDEN"],
        [PROXY, "198.51.100.1, 10.1.2.3", "VALID"],
        [PROXY, `10.1.2.3, ${PROXY}`, "VALID"],
        ["198.51.100.1", "10.1.2.3", "FORBIDDEN"],
        ["10.1.2.3", "198.51.100.1", "VALID"],
        [PROXY, "invalid", "FORBIDDEN"],
        [PROXY, "", "FORBIDDEN"],
      ] as const) {
        assert.equal(await codeFrom(server, key, from, forwarded), code, `${forwarded} by ${from}`);
      }
    });

    it("rejects a caller whose forwarded address is invalid, even if the proxy's address is listed", async () => {
      const key = await listed("192.0.2.0/24", "203.0.113.0/24");
      for (const [forwarded, code] of [
        [undefined, "VALID"],
        ["203.0.113.5:4711", "VALID"],
        ["198.51.100.1:4711", "FORBIDDEN"],
        ["unknown", "FORBIDDEN"],
        ["", "FORBIDDEN"],
        ["203.0.113.5, unknown", "FORBIDDEN"],
      ] as const) {
        assert.equal(await codeFrom(server, key, PROXY, forwarded), code, String(forwarded));
      }
      const open = (await server.createKey(await server.createApi())).key;
      assert.equal(await codeFrom(server, open, PROXY, "unknown"), "VALID");
    });

    it("uses the address in the body of a caller with a root key", async () => {
      const key = await listed("10.1.0.0/16");
      assert.equal(await codeFrom(server, key, "198.51.100.1", undefined, { clientIp: "10.1.2.3" }), "VALID");
      assert.equal(await codeFrom(server, key, "10.1.2.3", undefined, { clientIp: "198.51.100.1" }), "FORBIDDEN");
      assert.equal(await codeFrom(server, key, "10.1.2.3", undefined, { clientIp: "::1" }), "FORBIDDEN");
    });
  },
  { TRUSTED_PROXIES: "192.0.2.0/24" },
);
