/** Introspection of keys, and access tokens for them. What strangers can try is in `adversary/oauth.test.ts`. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from "jose";
import { ClientSecretBasic, ClientSecretPost } from "oauth4webapi";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { describeOnStores, openTestServer, TestServer, VAULT_KEY } from "../harness.ts";
import { basic, getDocument, introspect, OAuthCaller, postForm, requestToken } from "../oauth-caller.ts";

const PUBLIC_URL = "https://keys.example.com";
const RESOURCE = "https://api.example.com/v1";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const settings = { OAUTH_TOKENS: "on", PUBLIC_URL, VAULT_KEY };
const inactive = { active: false };

async function apiWithTokens(server: TestServer, resources: readonly string[] = [RESOURCE]): Promise<string> {
  const apiId = await server.createApi();
  await server.ok("apis.updateApi", { apiId, resources });
  return apiId;
}

const seconds = (time: number) => Math.floor(time / 1_000);

describeOnStores("introspection of keys", (server) => {
  it("says what a key is, with a root key in any of its three places (rule 125)", async () => {
    const apiId = await server.createApi();
    const expires = server.clock.now() + DAY;
    const created = seconds(server.clock.now());
    const { keyId, key } = await server.createKey(apiId, {
      name: "a name",
      externalId: "acme",
      meta: { plan: "pro" },
      permissions: ["documents.read", "documents.write"],
      expires,
    });
    await server.advance(5_000);
    const verified = await server.verify(key);
    const { valid: _valid, code: _code, ...latchkey } = verified;
    const expected = {
      active: true,
      sub: keyId,
      client_id: keyId,
      scope: "documents.read documents.write",
      exp: seconds(expires),
      iat: created,
      latchkey,
    };
    const { key: root, rootKeyId } = await server.grant(`apis.${apiId}.verify_key`);
    const form = { token: key, token_type_hint: "access_token" };
    const asked = [
      postForm(server, "/oauth/introspect", form, { authorization: `Bearer ${root}` }),
      postForm(server, "/oauth/introspect", form, { authorization: basic(rootKeyId, root) }),
      postForm(server, "/oauth/introspect", form, { authorization: basic("", root) }),
      postForm(server, "/oauth/introspect", { ...form, client_id: rootKeyId, client_secret: root }),
    ];
    for (const { status, body } of await Promise.all(asked)) {
      assert.equal(status, 200);
      assert.deepEqual(body, expected);
    }
    const { key: plain } = await server.createKey(apiId);
    const answer = await introspect(server, plain, { as: root });
    assert.deepEqual(Object.keys(answer), ["active", "sub", "client_id", "iat", "latchkey"]);
  });

  it("answers everything that cannot be verified alike (rule 126)", async () => {
    const apiId = await server.createApi();
    const other = await server.createApi("other");
    const { key: as } = await server.grant(`apis.${apiId}.verify_key`);
    const { key: disabled } = await server.createKey(apiId, { enabled: false });
    const { key: expired } = await server.createKey(apiId, { expires: server.clock.now() + 1_000 });
    const deleted = await server.createKey(apiId);
    await server.ok("keys.deleteKey", { keyId: deleted.keyId });
    const { key: elsewhere } = await server.createKey(apiId, { allowedIps: ["192.0.2.0/24"] });
    const stranger = await server.workspace("strangers");
    const theirs = await server.ok("apis.createApi", { name: "theirs" }, { as: stranger.key });
    const foreign = await server.ok("keys.createKey", { apiId: theirs.apiId }, { as: stranger.key });
    await server.advance(1_000);
    const { key: ofOther } = await server.createKey(other);
    for (const [what, token] of Object.entries({
      unknown: "3kAqEg4u4qMxCGFAVMuGsb3cijGp",
      mistyped: `${(await server.createKey(apiId)).key}x`,
      disabled,
      expired,
      deleted: deleted.key,
      "of another address": elsewhere,
      "of another workspace": foreign.key,
      "of another API": ofOther,
      "a root key": as,
      "too long": "k".repeat(9_000),
      "not ASCII": "naïve ☂",
      "no token of ours": "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.",
    })) {
      assert.deepEqual(await introspect(server, token, { as }), inactive, what);
    }
    assert.equal((await introspect(server, elsewhere, { as, client_ip: "192.0.2.7" })).active, true);
    assert.equal((await introspect(server, elsewhere, { as, from: "192.0.2.7" })).active, true);
    assert.equal((await introspect(server, ofOther)).active, true);
    assert.equal((await introspect(server, foreign.key, { as: stranger.key })).active, true);
  });

  it("charges nothing, and counts as a verification that costs nothing (rule 127)", async () => {
    const apiId = await server.createApi();
    const limit = { name: "requests", limit: 2, duration: 60_000, autoApply: true };
    const { keyId, key } = await server.createKey(apiId, { credits: { remaining: 2 }, ratelimits: [limit] });
    const before = await server.rows();
    for (let i = 0; i < 5; i++) assert.equal((await introspect(server, key)).active, true);
    await server.store.settled();
    assert.deepEqual(await server.rows(), before);
    assert.equal((await server.verify(key)).credits, 1);
    assert.equal((await server.verify(key)).credits, 0);
    assert.equal((await server.verify(key)).code, "RATE_LIMITED");
    assert.equal((await introspect(server, key)).active, true);
    await server.ok("keys.updateKey", { keyId, enabled: false });
    assert.deepEqual(await introspect(server, key), inactive);
    await server.pass(10_000);
    const { total, valid, outcomes, creditsSpent } = await server.ok("analytics.getKeyStats", {
      keyId,
      start: server.clock.now() - HOUR,
      end: server.clock.now() + 1,
    });
    assert.deepEqual([total, valid, creditsSpent], [10, 8, 2]);
    assert.deepEqual(outcomes, { VALID: 8, RATE_LIMITED: 1, DISABLED: 1 });
  });

  it("needs a root key, and says what is wrong in the form of RFC 6749", async () => {
    const token = "3kAqEg4u4qMxCGFAVMuGsb3cijGp";
    const expired = await server.grant("apis.*.verify_key");
    await server.ok("rootKeys.updateRootKey", { rootKeyId: expired.rootKeyId, enabled: false });
    const challenge = 'Basic realm="latchkey", Bearer realm="latchkey"';
    for (const [what, authorization, form] of [
      ["none", undefined, {}],
      ["unknown", "Bearer lk_root_unknown", {}],
      ["unknown in Basic", basic("rk_0000000000000000", "lk_root_unknown"), {}],
      ["another id in Basic", basic("rk_0000000000000000", server.rootKey), {}],
      ["Basic that cannot be read", "Basic !", {}],
      ["Basic without a colon", `Basic ${Buffer.from("abc").toString("base64")}`, {}],
      ["Basic with a broken escape", `Basic ${Buffer.from("a:%zz").toString("base64")}`, {}],
      ["disabled", `Bearer ${expired.key}`, {}],
      ["a key of a user", `Bearer ${token}`, {}],
      ["unknown in the body", undefined, { client_id: "rk_0000000000000000", client_secret: "lk_root_unknown" }],
    ] as const) {
      const { status, headers, body } = await postForm(
        server,
        "/oauth/introspect",
        { token, ...form },
        { authorization },
      );
      assert.deepEqual([status, body.error], [401, "invalid_client"], what);
      assert.equal(headers["www-authenticate"], challenge, what);
      assert.match(body.error_description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
      assert.deepEqual(Object.keys(body), ["error", "error_description"]);
    }
    const authorization = `Bearer ${server.rootKey}`;
    for (const [what, form, headers] of [
      ["without a token", { hint: "a" }, {}],
      ["with an empty token", { token: "" }, {}],
      ["with two tokens", "token=a&token=b", {}],
      ["as JSON", '{"token":"a"}', { "content-type": "application/json" }],
      ["compressed", "token=a", { "content-encoding": "gzip" }],
      ["with two credentials", { token, client_secret: server.rootKey }, {}],
      ["of another scheme", { token }, { authorization: "Digest a" }],
      ["with a wrong address", { token, client_ip: "nowhere" }, {}],
    ] as const) {
      const answer = await postForm(server, "/oauth/introspect", form, { authorization, headers });
      assert.deepEqual([answer.status, answer.body.error], [400, "invalid_request"], what);
    }
    const large = await postForm(server, "/oauth/introspect", { token: "k".repeat(17_000) }, { authorization });
    assert.deepEqual([large.status, large.body.error], [413, "invalid_request"]);
  });

  it("counts against the limit of the workspace, and is 503 without an answer of the database", async () => {
    const { workspaceId, key: as } = await server.workspace("limited");
    await server.ok("workspaces.updateWorkspace", { workspaceId, requestsPerMinute: 1 });
    await server.pass(60_000 - (server.clock.now() % 60_000));
    assert.deepEqual(await introspect(server, "unknown", { as }), inactive);
    const { status, headers, body } = await postForm(
      server,
      "/oauth/introspect",
      { token: "unknown" },
      { authorization: `Bearer ${as}` },
    );
    assert.deepEqual([status, body.error], [429, "temporarily_unavailable"]);
    assert.match(headers["retry-after"]!, /^\d+$/);
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    server.store.interception = async (name, proceed) => {
      if (name === "keysAt" || name === "keyCreation") throw new StoreUnavailable("for this test");
      return proceed();
    };
    const away = await postForm(
      server,
      "/oauth/introspect",
      { token: key },
      { authorization: `Bearer ${server.rootKey}` },
    );
    assert.deepEqual([away.status, away.body.error], [503, "temporarily_unavailable"]);
    server.store.interception = undefined;
    await server.verify(key);
    server.store.interception = async (name, proceed) => {
      if (name === "keyCreation") throw new StoreUnavailable("for this test");
      return proceed();
    };
    const answer = await introspect(server, key);
    assert.deepEqual([answer.active, "iat" in answer], [true, false]);
    server.store.interception = undefined;
    assert.equal("iat" in (await introspect(server, key)), true);
  });
});

for (const algorithm of ["RS256", "ES256"] as const) {
  describeOnStores(
    `access tokens with ${algorithm}`,
    (server) => {
      it("are issued to a client of RFC 8414 and 6749, and accepted by a resource server of RFC 9068 (rule 128)", async () => {
        const apiId = await apiWithTokens(server);
        const made = await server.createKey(apiId, {
          externalId: "acme",
          permissions: ["documents.*", "billing.read"],
        });
        const caller = new OAuthCaller(server);
        const metadata = await caller.discover(PUBLIC_URL);
        assert.deepEqual(metadata, {
          issuer: PUBLIC_URL,
          token_endpoint: `${PUBLIC_URL}/oauth/token`,
          jwks_uri: `${PUBLIC_URL}/oauth/jwks`,
          introspection_endpoint: `${PUBLIC_URL}/oauth/introspect`,
          response_types_supported: [],
          grant_types_supported: ["client_credentials"],
          token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
          introspection_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "Bearer"],
        });
        for (const authentication of [ClientSecretBasic, ClientSecretPost]) {
          const asked = { scope: "documents.read billing.read", resource: RESOURCE };
          const answer = await caller.token(made, asked, authentication);
          assert.deepEqual(Object.keys(answer).sort(), ["access_token", "expires_in", "scope", "token_type"]);
          assert.deepEqual([answer.expires_in, answer.scope], [300, asked.scope]);
          assert.equal(decodeProtectedHeader(answer.access_token).alg, algorithm);
          assert.equal(decodeProtectedHeader(answer.access_token).typ, "at+jwt");
          const claims = await caller.validate(answer.access_token, RESOURCE);
          const now = seconds(server.clock.now());
          const { jti, ...rest } = claims;
          assert.match(jti, /^tok_[0-9A-Za-z]{16}$/);
          assert.deepEqual(rest, {
            iss: PUBLIC_URL,
            aud: RESOURCE,
            sub: made.keyId,
            client_id: made.keyId,
            iat: now,
            exp: now + 300,
            scope: asked.scope,
            latchkey: { apiId, externalId: "acme" },
          });
          await assert.rejects(caller.validate(answer.access_token, "https://other.example.com"), /aud/);
          const { key: root, rootKeyId } = await server.grant(`apis.${apiId}.verify_key`);
          const seen = await caller.introspect(answer.access_token, { rootKeyId, key: root }, authentication);
          const { latchkey, ...standard } = seen;
          const { latchkey: _ofToken, ...ofToken } = claims;
          assert.deepEqual(standard, { active: true, ...ofToken, token_type: "Bearer" });
          assert.deepEqual((latchkey as { keyId: string }).keyId, made.keyId);
        }
      });

      it("have all permissions of the key without a scope, and never others", async () => {
        const apiId = await apiWithTokens(server);
        const made = await server.createKey(apiId, { permissions: ["documents.*", "billing.read"] });
        assert.equal((await requestToken(server, made)).body.scope, "billing.read documents.*");
        const { body: without } = await requestToken(server, await server.createKey(apiId));
        assert.equal("scope" in without || "scope" in decodeJwt(without.access_token), false);
        for (const scope of ["admin", "billing.read admin", "billing.*", "documents", "*", "billing.read ", 'a"b']) {
          const { status, body } = await requestToken(server, made, { scope });
          assert.deepEqual([status, body.error], [400, "invalid_scope"], scope);
        }
        const { body } = await requestToken(server, made, { scope: "documents.read documents.read documents.a.b" });
        assert.equal(body.scope, "documents.read documents.a.b");
        const permissions = Array.from({ length: 200 }, (_, i) => `a.permission.${i}`);
        const many = await server.createKey(apiId, { permissions });
        assert.equal((await requestToken(server, many)).body.error, "invalid_scope");
        assert.equal((await requestToken(server, many, { scope: permissions[7]! })).body.scope, permissions[7]);
      });

      it("are for the resources of the API of the key only", async () => {
        const [one, two] = ["https://one.example.com", "urn:example:two"];
        const made = await server.createKey(await apiWithTokens(server, [one, two]));
        const ask = (...resources: string[]) =>
          postForm(
            server,
            "/oauth/token",
            [["grant_type", "client_credentials"], ...resources.map((one) => ["resource", one] as [string, string])],
            { authorization: basic(made.keyId, made.key) },
          );
        assert.equal(decodeJwt((await ask(two)).body.access_token).aud, two);
        assert.deepEqual(decodeJwt((await ask(two, one)).body.access_token).aud, [two, one]);
        for (const resources of [
          [],
          ["https://three.example.com"],
          [one, "https://three.example.com"],
          Array(11).fill(one),
        ]) {
          const { status, body } = await ask(...resources);
          assert.deepEqual([status, body.error], [400, "invalid_target"], resources.join());
        }
        const closed = await server.createKey(await server.createApi());
        const { status, body } = await requestToken(server, closed, { resource: one });
        assert.deepEqual([status, body.error], [400, "unauthorized_client"]);
      });

      it("end with the key: the token at its expiry, its introspection at its revocation (rule 129)", async () => {
        const apiId = await apiWithTokens(server);
        const made = await server.createKey(apiId, { expires: server.clock.now() + 100_000, permissions: ["a", "b"] });
        const { body } = await requestToken(server, made);
        assert.equal(body.expires_in, 100);
        assert.equal((await introspect(server, body.access_token)).scope, "a b");
        await server.ok("keys.removePermissions", { keyId: made.keyId, permissions: ["a"] });
        assert.equal((await introspect(server, body.access_token)).scope, "b");
        await server.ok("keys.updateKey", { keyId: made.keyId, enabled: false });
        assert.deepEqual(await introspect(server, body.access_token), inactive);
        // A resource server that verifies the token itself does not learn of it.
        const jwks = (await getDocument(server, "/oauth/jwks")).body as JSONWebKeySet;
        const validated = await jwtVerify(body.access_token, createLocalJWKSet(jwks), {
          issuer: PUBLIC_URL,
          audience: RESOURCE,
          typ: "at+jwt",
          currentDate: new Date(server.clock.now()),
        });
        assert.equal(validated.payload.sub, made.keyId);
        await server.ok("keys.updateKey", { keyId: made.keyId, enabled: true });
        assert.equal((await introspect(server, body.access_token)).active, true);
        await server.advance(99_500);
        assert.equal((await introspect(server, body.access_token)).active, true);
        assert.equal((await requestToken(server, made)).body.expires_in, 1);
        await server.advance(500);
        assert.equal((await requestToken(server, made)).body.error, "invalid_client");
        assert.deepEqual(await introspect(server, body.access_token), inactive);
        const lasting = await server.createKey(apiId);
        const token = (await requestToken(server, lasting)).body.access_token;
        await server.advance(299_000);
        assert.equal((await introspect(server, token)).active, true);
        await server.advance(1_000);
        assert.deepEqual(await introspect(server, token), inactive);
        await server.ok("keys.deleteKey", { keyId: lasting.keyId });
        assert.equal((await requestToken(server, lasting)).body.error, "invalid_client");
      });

      it("of derived keys are within what each level has then, and end with all of them (rules 109, 111, 128 and 129)", async () => {
        const apiId = await apiWithTokens(server);
        const permissions = ["documents.*", "billing.read"];
        const top = await server.createKey(apiId, { permissions, meta: { tenant: 7 } });
        const derive = (keyId: string, more: object = {}) =>
          server.ok("keys.deriveKey", { keyId, ttl: HOUR, ...more }) as Promise<typeof top & { expires: number }>;
        const child = await derive(top.keyId, { permissions: ["documents.read", "billing.*", "admin"] });
        const grandchild = await derive(child.keyId, { permissions: ["documents.*"], ttl: 100_000 });
        const scopeOf = async (made: typeof top) => (await requestToken(server, made)).body.scope;
        assert.equal(await scopeOf(child), "billing.read documents.read");
        assert.equal(await scopeOf(grandchild), "documents.read");
        for (const scope of ["admin", "documents.write", "documents.*", "billing.read"]) {
          const { status, body } = await requestToken(server, grandchild, { scope });
          assert.deepEqual([status, body.error], [400, "invalid_scope"], scope);
        }
        // The id and the string are of one key.
        for (const mixed of [
          { keyId: top.keyId, key: child.key },
          { keyId: child.keyId, key: top.key },
          { keyId: child.keyId, key: grandchild.key },
        ]) {
          const { status, body } = await requestToken(server, mixed);
          assert.deepEqual([status, body.error], [401, "invalid_client"]);
        }

        const { body } = await requestToken(server, grandchild);
        const claims = decodeJwt(body.access_token);
        assert.equal(body.expires_in, 100);
        assert.deepEqual(
          [claims.sub, claims.client_id, claims.exp],
          [grandchild.keyId, grandchild.keyId, seconds(grandchild.expires)],
        );
        const { latchkey, ...seen } = await introspect(server, body.access_token);
        assert.deepEqual([seen.active, seen.sub, seen.scope], [true, grandchild.keyId, "documents.read"]);
        assert.deepEqual(latchkey.meta, { tenant: 7 });
        assert.equal(latchkey.derived.parentKeyId, child.keyId);

        // What the key at the top loses, the token loses at its introspection, and the next token.
        await server.ok("keys.setPermissions", { keyId: top.keyId, permissions: ["billing.read"] });
        assert.deepEqual(
          [(await introspect(server, body.access_token)).scope, await scopeOf(grandchild)],
          [undefined, undefined],
        );
        await server.ok("keys.setPermissions", { keyId: top.keyId, permissions });
        assert.equal((await introspect(server, body.access_token)).scope, "documents.read");

        // The expiry of the key at the top applies, when it is earlier, to each level below.
        await server.ok("keys.updateKey", { keyId: top.keyId, expires: server.clock.now() + 40_000 });
        assert.equal((await requestToken(server, grandchild)).body.expires_in, 40);
        await server.ok("keys.updateKey", { keyId: top.keyId, expires: null });
        const ofChild = (await requestToken(server, child)).body;
        assert.equal(ofChild.expires_in, 300);
        await server.ok("keys.updateKey", { keyId: top.keyId, enabled: false });
        assert.deepEqual(await introspect(server, body.access_token), inactive);
        assert.equal((await requestToken(server, child)).body.error, "invalid_client");
        await server.ok("keys.updateKey", { keyId: top.keyId, enabled: true });
        assert.equal((await introspect(server, body.access_token)).active, true);
        await server.advance(100_000);
        assert.deepEqual(await introspect(server, body.access_token), inactive);
        assert.equal((await requestToken(server, grandchild)).body.error, "invalid_client");
        assert.equal((await introspect(server, ofChild.access_token)).active, true);
        await server.ok("keys.deleteKey", { keyId: child.keyId });
        assert.deepEqual(await introspect(server, ofChild.access_token), inactive);
        assert.equal((await requestToken(server, child)).body.error, "invalid_client");
      });

      it("are refused in the form of RFC 6749", async () => {
        const apiId = await apiWithTokens(server);
        const made = await server.createKey(apiId);
        const other = await server.createKey(apiId);
        const disabled = await server.createKey(apiId, { enabled: false });
        const authorization = basic(made.keyId, made.key);
        const grant_type = "client_credentials";
        const client_id = made.keyId;
        for (const [what, form, header, expected] of [
          ["no grant", {}, authorization, "invalid_request"],
          ["another grant", { grant_type: "password" }, authorization, "unsupported_grant_type"],
          ["two credentials", { grant_type, client_id, client_secret: made.key }, authorization, "invalid_request"],
          ["two scopes", "grant_type=client_credentials&scope=a&scope=b", authorization, "invalid_request"],
          ["no credentials", { grant_type }, undefined, "invalid_client"],
          ["no key", { grant_type, client_id }, undefined, "invalid_client"],
          ["no id", { grant_type, client_secret: made.key }, undefined, "invalid_client"],
          ["the id of another key", { grant_type }, basic(other.keyId, made.key), "invalid_client"],
          ["an unknown key", { grant_type }, basic(made.keyId, "3kAqEg4u4qMxCGFAVMuGsb3cijGp"), "invalid_client"],
          ["a long key", { grant_type }, basic(made.keyId, "k".repeat(600)), "invalid_client"],
          ["a disabled key", { grant_type }, basic(disabled.keyId, disabled.key), "invalid_client"],
          ["a root key", { grant_type }, basic("rk_0000000000000000", server.rootKey), "invalid_client"],
          ["a bearer", { grant_type }, `Bearer ${made.key}`, "invalid_client"],
        ] as const) {
          const answer = await postForm(server, "/oauth/token", form, { authorization: header });
          const isClient = expected === "invalid_client";
          assert.deepEqual([answer.status, answer.body.error], [isClient ? 401 : 400, expected], what);
          assert.equal(answer.headers["www-authenticate"], isClient ? 'Basic realm="latchkey"' : undefined, what);
          assert(!JSON.stringify(answer).includes(made.key), what);
        }
        const { status } = await getDocument(server, "/oauth/token");
        assert.equal(status, 405);
      });
    },
    { ...settings, OAUTH_ALGORITHM: algorithm },
  );
}

describeOnStores(
  "issuers",
  (server) => {
    it("are one for each workspace, with keys and metadata of its own", async () => {
      const { workspaceId, key: as } = await server.workspace("theirs");
      const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
      // Nothing says that a resource belongs to somebody: the issuer tells them apart.
      await server.ok("apis.updateApi", { apiId, resources: [RESOURCE] }, { as });
      const theirs = await server.ok("keys.createKey", { apiId }, { as });
      const ours = await server.createKey(await apiWithTokens(server));
      const issuer = `${PUBLIC_URL}/oauth/${workspaceId}`;
      const caller = new OAuthCaller(server);
      const metadata = await caller.discover(issuer);
      assert.deepEqual([metadata.token_endpoint, metadata.jwks_uri], [`${issuer}/token`, `${issuer}/jwks`]);
      const { access_token } = await caller.token(theirs);
      assert.equal((await caller.validate(access_token, RESOURCE)).iss, issuer);
      const ourCaller = new OAuthCaller(server);
      await ourCaller.discover(PUBLIC_URL);
      await assert.rejects(ourCaller.validate(access_token, RESOURCE));
      await assert.rejects(caller.validate((await ourCaller.token(ours)).access_token, RESOURCE));
      const kids = async (path: string) =>
        (await getDocument(server, path)).body.keys.map(({ kid }: { kid: string }) => kid);
      assert.notDeepEqual(await kids("/oauth/jwks"), await kids(`/oauth/${workspaceId}/jwks`));
      // A key gets tokens of its own workspace only.
      assert.equal((await requestToken(server, theirs)).body.error, "invalid_client");
      assert.equal((await requestToken(server, ours, {}, `/oauth/${workspaceId}/token`)).body.error, "invalid_client");
      assert.deepEqual(await introspect(server, access_token), inactive);
      assert.equal((await introspect(server, access_token, { as })).active, true);
    });

    it("that do not exist or are disabled are 404, and one has one address", async () => {
      const { workspaceId } = await server.workspace("to be disabled");
      const of = (id: string) => [`/oauth/${id}/jwks`, `/.well-known/oauth-authorization-server/oauth/${id}`];
      for (const path of of(workspaceId)) assert.equal((await getDocument(server, path)).status, 200, path);
      await server.ok("workspaces.updateWorkspace", { workspaceId, enabled: false });
      for (const id of [workspaceId, server.workspaceId, "ws_0000000000000000", "ws_1", "token", "introspect"]) {
        for (const path of of(id)) assert.equal((await getDocument(server, path)).status, 404, path);
        const { body } = await requestToken(server, { keyId: "key_1", key: "k" }, {}, `/oauth/${id}/token`);
        assert.equal(body.error, "invalid_client");
      }
    });

    it("publish documents that may be cached, by any host name", async () => {
      for (const path of ["/oauth/jwks", "/.well-known/oauth-authorization-server"]) {
        const { status, headers, body } = await getDocument(server, path);
        assert.equal(status, 200);
        assert.equal(headers["cache-control"], "public, max-age=300");
        assert(!("meta" in body));
      }
      const { keys } = (await getDocument(server, "/oauth/jwks")).body;
      assert.equal(keys.length, 1);
      assert.deepEqual(Object.keys(keys[0]).sort(), ["alg", "e", "kid", "kty", "n", "use"]);
    });
  },
  settings,
);

for (const store of ["sqlite", "postgres"] as const) {
  describe(`signing keys on ${store}`, () => {
    const kidsOf = async (server: TestServer) =>
      (await getDocument(server, "/oauth/jwks")).body.keys.map(({ kid }: { kid: string }) => kid) as string[];

    it("change in step on two nodes, each published an hour before its use and until its tokens have ended (rule 130)", async (t) => {
      const options = { ...settings, OAUTH_ALGORITHM: "ES256", OAUTH_ROTATION: "6h" };
      const one = await new TestServer({ store, settings: options }).open();
      t.after(() => one.close());
      const two = await new TestServer({ store, settings: options, beside: one }).open();
      t.after(() => two.close());
      const made = await one.createKey(await apiWithTokens(one));
      const kidOf = async (server: TestServer) => {
        const { status, body } = await requestToken(server, made);
        assert.equal(status, 200, JSON.stringify(body));
        return { kid: decodeProtectedHeader(body.access_token).kid!, token: body.access_token as string };
      };
      // Both make the first one at the same time.
      const [first, alike] = await Promise.all([kidOf(one), kidOf(two)]);
      assert.equal(first.kid, alike.kid);
      const start = one.clock.now();
      const seen = new Map<string, { published: number; used: number; lastUsed: number; lastPublished: number }>();
      const steps = 20 * 60_000;
      for (let now = 0; now <= 20 * HOUR; now += steps) {
        const [ours, theirs] = [await kidOf(one), await kidOf(two)];
        assert.equal(ours.kid, theirs.kid, `after ${now} ms`);
        const published = await kidsOf(one);
        assert.deepEqual(await kidsOf(two), published);
        assert(published.length <= 2, `${published.length} keys`);
        for (const kid of published) {
          const entry = seen.get(kid) ?? { published: now, used: Number.NaN, lastUsed: 0, lastPublished: 0 };
          seen.set(kid, { ...entry, lastPublished: now });
        }
        const used = seen.get(ours.kid)!;
        if (Number.isNaN(used.used)) used.used = now;
        used.lastUsed = now;
        for (const server of [one, two]) {
          for (const { token } of [ours, theirs]) assert.equal((await introspect(server, token)).active, true);
        }
        // Short steps at the end: after a long one, a read of `changes` may count as late.
        for (const step of [steps - 1_000, 500, 500]) {
          await one.advance(step);
          await one.store.settled();
          await two.store.settled();
        }
      }
      assert.equal(one.clock.now() - start, 20 * HOUR + steps);
      const keys = [...seen.values()];
      assert(keys.length >= 3 && keys.length <= 5, `${keys.length} keys in 20 hours`);
      for (const [i, { published, used }] of keys.entries()) {
        if (i > 0 && !Number.isNaN(used))
          assert(used - published >= HOUR, `published ${used - published} ms before its use`);
      }
      for (const { lastUsed, lastPublished } of keys.slice(0, -2)) {
        assert(lastPublished >= lastUsed, `published until ${lastPublished}, used until ${lastUsed}`);
        assert(lastPublished - lastUsed <= 2 * steps, "an old key stays published");
      }
      const rows = await one.rowsOf("signing_keys");
      assert(rows.length <= 3, `${rows.length} rows`);
      const audited = await one.ok("audit.listEvents", { action: "oauth.createSigningKey", limit: 100 });
      assert.equal(audited.length, seen.size);
      assert.equal(audited[0].actor, "system");
    });

    it("serve from memory for as long as a next key is published before its use", async (t) => {
      const server = await new TestServer({
        store,
        settings: { ...settings, OAUTH_ALGORITHM: "ES256", STALE_MAX: "2h" },
      }).open();
      t.after(() => server.close());
      await kidsOf(server);
      server.store.interception = async (name, proceed) => {
        if (name === "signingKeys") throw new StoreUnavailable("for this test");
        return proceed();
      };
      await server.advance(30 * 60_000);
      assert.equal((await kidsOf(server)).length, 1);
      await server.advance(30 * 60_000);
      assert.equal((await getDocument(server, "/oauth/jwks")).status, 503);
      server.store.interception = undefined;
      assert.equal((await kidsOf(server)).length, 1);
    });

    it("are sealed under the master key, which a rotation does not end", async (t) => {
      const next = Buffer.alloc(32, 9).toString("base64");
      const server = await new TestServer({ store, settings }).open();
      t.after(() => server.close());
      const made = await server.createKey(await apiWithTokens(server));
      const { access_token } = (await requestToken(server, made)).body;
      const rows = (await server.rowsOf("signing_keys")) as { sealed: string; public_key: string }[];
      assert(
        rows.every((row) => !JSON.stringify(row).includes("PRIVATE KEY") && !('"d"' in JSON.parse(row.public_key))),
      );
      const both = await new TestServer({
        store,
        settings: { ...settings, VAULT_KEY: `${VAULT_KEY},${next}` },
        beside: server,
      }).open();
      t.after(() => both.close());
      const { to } = await both.store.transact("vaultRotation", null);
      for (let done = false; !done; ) ({ done } = await both.store.transact("rotateVault", { to: to! }));
      const after = await new TestServer({ store, settings: { ...settings, VAULT_KEY: next }, beside: server }).open();
      t.after(() => after.close());
      assert.equal((await introspect(after, access_token)).active, true);
      assert.equal((await requestToken(after, made)).status, 200);
    });
  });
}

describe("access tokens", () => {
  it("are off by default, and introspection is not", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const { apiId } = await server.ok("apis.createApi", { name: "closed" });
    await server.ok("apis.updateApi", { apiId, resources: [RESOURCE] });
    assert.deepEqual((await server.ok("apis.getApi", { apiId })).resources, [RESOURCE]);
    const made = await server.createKey(apiId);
    for (const path of ["/oauth/jwks", "/.well-known/oauth-authorization-server"]) {
      assert.equal((await getDocument(server, path)).status, 404);
    }
    for (const path of ["/oauth/token", "/oauth/ws_1234567890/token"]) {
      const { status, body } = await server.request("POST", path, { raw: "grant_type=client_credentials" });
      assert.equal(status, 404);
      assert.match(body.error.detail, /^Access tokens are off\. .*LATCHKEY_OAUTH_TOKENS=on/);
    }
    assert.equal((await introspect(server, made.key)).active, true);
    assert.deepEqual(await server.rowsOf("signing_keys"), []);
  });

  it("need a public address, and on PostgreSQL a vault", async () => {
    const open = (store: "sqlite" | "postgres", more: Record<string, string>) =>
      new TestServer({ store, settings: { OAUTH_TOKENS: "on", ...more } }).open();
    const expected = /^ConfigurationError: LATCHKEY_OAUTH_TOKENS=on: access tokens name their issuer/;
    for (const address of ["", "http://keys.example.com", "https://keys.example.com?a=b"]) {
      await assert.rejects(open("sqlite", address === "" ? {} : { PUBLIC_URL: address }), expected, address);
    }
    await assert.rejects(open("postgres", { PUBLIC_URL }), /^OperatorError: LATCHKEY_OAUTH_TOKENS=on: .* vault/);
    for (const address of ["http://localhost:3000", "http://127.0.0.1:3000", "http://[::1]:3000"]) {
      const server = await open("sqlite", { PUBLIC_URL: address });
      const { body } = await getDocument(server, "/.well-known/oauth-authorization-server");
      assert.equal(body.issuer, address);
      await server.close();
    }
  });

  it("reject resources that are no absolute URIs, or have a fragment", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const apiId = await server.createApi();
    for (const resource of [
      "api.example.com",
      "/v1",
      "https://api.example.com/#a",
      "https://api.example.com/a b",
      "",
    ]) {
      await server.rejected("apis.updateApi", { apiId, resources: [resource] }, "invalid_input");
    }
    await server.rejected("apis.updateApi", { apiId, resources: [] }, "invalid_input");
    const many = Array.from({ length: 11 }, (_, i) => `https://${i}.example.com`);
    await server.rejected("apis.updateApi", { apiId, resources: many }, "invalid_input");
    await server.ok("apis.updateApi", { apiId, resources: [RESOURCE] });
    await server.ok("apis.updateApi", { apiId, resources: null });
    assert.equal("resources" in (await server.ok("apis.getApi", { apiId })), false);
  });
});
