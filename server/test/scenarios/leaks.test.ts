/** Reports of leaked keys, by anybody and by GitHub, and what scanners ask. */
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import inject from "light-my-request";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { stores, TestServer } from "../harness.ts";
import type { Interception } from "../intercepted-store.ts";

const IDENTIFIER = "a".repeat(64);
const github = generateKeyPairSync("ec", { namedCurve: "P-256" });
const keysFile = join(tmpdir(), `latchkey-github-keys-${process.pid}.json`);

/** The signed example in GitHub's documentation of the partner program. */
const documented = {
  identifier: "bcb53661c06b4728e59d897fb6165d5c9cda0fd9cdf9d09ead458168deb7518c",
  key:
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYAGMWO8XgCamYKMJS6jc/qgvSlAd\n" +
    "AjPuDPRcXU22YxgBrz+zoN19MzuRyW87qEt9/AmtoNP5GrobzUvQSyJFVw==\n-----END PUBLIC KEY-----\n",
  signature: "MEQCIQDaMKqrGnE27S0kgMrEK0eYBmyG0LeZismAEz/BgZyt7AIfXt9fErtRS4XaeSt/AO1RtBY66YcAdjxji410VQV4xg==",
  body: '[{"source":"commit","token":"some_token","type":"some_type","url":"https://example.com/base-repo-url/"}]',
};

before(() => {
  const key = github.publicKey.export({ type: "spki", format: "pem" });
  const public_keys = [
    { key_identifier: documented.identifier, key: documented.key, is_current: false },
    { key_identifier: IDENTIFIER, key, is_current: true },
  ];
  writeFileSync(keysFile, JSON.stringify({ public_keys }));
});
after(() => rmSync(keysFile));

const unsafeAddresses = [
  "javascript:alert(document.cookie)",
  "JavaScript:alert(1)//https://github.com/octocat",
  "data:text/html,<script>alert(1)</script>",
  "https://user:password@github.com/octocat",
  "https://github.com/octocat\nhttps://evil.example",
];

/** The database is unavailable for reports. */
const failing: Interception = async (name, proceed) => {
  if (name === "leakedHashes") throw new StoreUnavailable("for this test");
  return proceed();
};

function signed(body: string, identifier = IDENTIFIER) {
  const signature = sign("sha256", Buffer.from(body), { key: github.privateKey, dsaEncoding: "der" });
  return {
    raw: body,
    headers: {
      "content-type": "application/json",
      "github-public-key-identifier": identifier,
      "github-public-key-signature": signature.toString("base64"),
    },
  };
}

for (const store of stores) {
  describe(`leaks on ${store}`, () => {
    const server = new TestServer({ store, settings: { GITHUB_KEYS: keysFile, VERIFY_AUTH: "required" } });
    const URL = "https://github.com/octocat/hello-world/blob/main/config.js";
    before(() => server.open());
    after(() => server.close());

    /** A key of an API that does this with leaked keys. */
    async function newKey(leakAction?: "mark" | "disable", more: object = {}) {
      const apiId = await server.createApi();
      if (leakAction) await server.ok("apis.updateApi", { apiId, leakAction });
      return { apiId, ...(await server.createKey(apiId, { prefix: "prod", ...more })) };
    }
    const report = async (key: string, more: object = {}) => {
      const answer = await server.ok("keys.reportLeak", { key, ...more }, { as: null });
      await server.store.settled();
      return answer;
    };
    const eventsOf = async (keyId: string) => {
      const rows = (await server.rowsOf("events")) as { object_id: string; type: string; data: string }[];
      return rows
        .filter((row) => row.object_id === keyId && row.type !== "key.created")
        .map(({ type, data }) => ({ type, ...JSON.parse(data) }));
    };
    const auditOf = async (keyId: string) =>
      (await server.ok("audit.listEvents", { target: keyId, action: "keys.reportLeak" })).map(
        ({ actor, meta }: { actor: string; meta: object }) => ({ actor, ...meta }),
      );

    it("marks a reported key, which still verifies, unless its API says otherwise", async () => {
      const { apiId, keyId, key } = await newKey(undefined, { externalId: "acme" });
      assert.equal((await server.getKey(keyId)).leakedAt, undefined);
      assert.deepEqual(await report(key, { location: URL }), {});
      const found = await server.getKey(keyId);
      assert.equal(found.leakedAt, server.clock.now());
      assert.equal(found.enabled, true);
      assert.equal((await server.verify(key)).code, "VALID");
      const reported = { source: "report", url: URL, disabled: false };
      assert.deepEqual(await eventsOf(keyId), [
        { type: "leak.reported", keyId, apiId, externalId: "acme", ...reported },
      ]);
      assert.deepEqual(await auditOf(keyId), [{ actor: "system", ...reported }]);
    });

    it("disables a reported key at once if its API says so", async () => {
      const { apiId, keyId, key } = await newKey("disable");
      assert.equal((await server.ok("apis.getApi", { apiId })).leakAction, "disable");
      assert.equal((await server.verify(key)).code, "VALID");
      await report(key);
      assert.equal((await server.verify(key)).code, "DISABLED");
      assert.deepEqual(await eventsOf(keyId), [
        { type: "leak.reported", keyId, apiId, source: "report", disabled: true },
        { type: "key.disabled", keyId, apiId, actor: "system" },
      ]);
      assert.deepEqual(await auditOf(keyId), [{ actor: "system", source: "report", disabled: true }]);
    });

    it("tells nothing new by a second report, and disables a key again that was enabled", async () => {
      for (const action of ["mark", "disable"] as const) {
        const { keyId, key } = await newKey(action);
        await report(key);
        const before = await server.rows();
        await server.advance(1_000);
        await report(key);
        assert.deepEqual(await server.rows(), before);
        const { leakedAt } = await server.getKey(keyId);
        await server.ok("keys.updateKey", { keyId, enabled: true });
        await report(key);
        assert.equal((await server.verify(key)).code, action === "disable" ? "DISABLED" : "VALID");
        assert.equal((await server.getKey(keyId)).leakedAt, leakedAt);
      }
    });

    it("finds the key in every workspace, and keys imported by SHA-256 and SHA-512", async () => {
      const { key: as } = await server.workspace("elsewhere");
      const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as });
      await server.ok("apis.updateApi", { apiId, leakAction: "disable" }, { as });
      const made = await server.ok("keys.createKey", { apiId }, { as });
      const strings = { sha256: "sk_imported_as_256", sha512: "sk_imported_as_512" };
      for (const [algorithm, key] of Object.entries(strings)) {
        const hash = createHash(algorithm).update(key).digest("hex");
        await server.ok("keys.migrateKeys", { migrationId: algorithm, apiId, algorithm, keys: [{ hash }] }, { as });
      }
      for (const key of [made.key, ...Object.values(strings)]) {
        assert.equal((await server.verify(key, {}, { as })).code, "VALID");
        await report(key);
        assert.equal((await server.verify(key, {}, { as })).code, "DISABLED");
      }
    });

    it("answers alike for every key string, before the key is looked up, and changes nothing for unknown keys", async () => {
      const { key } = await newKey("disable");
      const deleted = await newKey("disable");
      await server.ok("keys.deleteKey", { keyId: deleted.keyId });
      const before = await server.rows();
      const gate = Promise.withResolvers<void>();
      server.store.interception = async (name, proceed) => {
        if (name === "leakedHashes") await gate.promise;
        return proceed();
      };
      const bodies: string[] = [];
      for (const one of [key, deleted.key, `${key.slice(0, -1)}!`, "x", "ü".repeat(512)]) {
        const { body, headers } = await server.call("keys.reportLeak", { key: one }, { as: null });
        assert.equal(headers["x-request-id"], body.meta.requestId);
        bodies.push(JSON.stringify({ ...body, meta: undefined }));
      }
      assert.equal(new Set(bodies).size, 1);
      assert.deepEqual(await server.rows(), before);
      gate.resolve();
      server.store.interception = undefined;
      await server.store.settled();
      assert.equal((await server.verify(key)).code, "DISABLED");
      const isOf = (row: unknown) => String(row).includes(deleted.keyId);
      // A deleted key is marked, because it can be restored, and has no event.
      const marked = before.keys!.filter(isOf).map((row) => {
        const at = server.clock.now();
        return JSON.stringify({ ...JSON.parse(String(row)), updated_at: at, leaked_at: at });
      });
      assert.deepEqual((await server.rows()).keys!.filter(isOf), marked);
      assert.deepEqual(await server.ok("events.listEvents", { types: ["leak.reported"], objectId: deleted.keyId }), []);
    });

    it("needs no root key, accepts any, and rejects an invalid address", async () => {
      const { key } = await newKey();
      assert.deepEqual(
        await server.ok("keys.reportLeak", { key }, { as: (await server.grant("apis.*.read_api")).key }),
        {},
      );
      for (const location of [...unsafeAddresses, "github.com/x", `https://x/${"a".repeat(2_000)}`]) {
        await server.rejected("keys.reportLeak", { key, location }, "invalid_input", { as: null });
      }
    });

    it("takes the key from a report of GitHub, and no address that reportLeak rejects", async () => {
      for (const url of unsafeAddresses) {
        const { apiId, keyId, key } = await newKey("disable");
        const { status } = await server.request("POST", "/leaks/github", signed(JSON.stringify([{ token: key, url }])));
        assert.equal(status, 200, url);
        assert.equal((await server.verify(key)).code, "DISABLED");
        const reported = { source: "github", disabled: true };
        assert.deepEqual((await eventsOf(keyId))[0], { type: "leak.reported", keyId, apiId, ...reported }, url);
        assert.deepEqual(await auditOf(keyId), [{ actor: "system", ...reported }], url);
      }
    });

    it("marks a reported root key, which still works, unless it says otherwise", async () => {
      for (const leakAction of [undefined, "mark", "disable"] as const) {
        const body = { name: "leaked", permissions: ["apis.*.create_api"], ...(leakAction && { leakAction }) };
        const { rootKeyId, key } = await server.ok("rootKeys.createRootKey", body);
        const call = async () =>
          (await server.call("apis.createApi", { name: "probe" }, { as: key })).problem ?? "passed";
        const shown = async () => (await server.ok("rootKeys.listRootKeys", { search: rootKeyId }))[0];
        assert.equal(await call(), "passed");
        await report(key, { location: URL });
        const disabled = leakAction === "disable";
        assert.equal(await call(), disabled ? "root_key_disabled" : "passed");
        const { enabled, leakedAt, leakAction: action } = await shown();
        assert.deepEqual([enabled, leakedAt, action], [!disabled, server.clock.now(), leakAction]);
        const found = (await server.ok("system.getFindings", {})).rootKeysLeaked as { rootKeyId: string }[];
        assert.equal(found.map((one) => one.rootKeyId).includes(rootKeyId), !disabled);
        const reported = { source: "report", url: URL, disabled };
        const events = (await eventsOf(rootKeyId)).filter(({ type }) => type !== "root_key.created");
        assert.deepEqual(events, [
          { type: "root_key.leaked", rootKeyId, name: "leaked", ...reported },
          ...(disabled ? [{ type: "root_key.disabled", rootKeyId, name: "leaked", actor: "system" }] : []),
        ]);
        assert.deepEqual(await auditOf(rootKeyId), [{ actor: "system", ...reported }]);

        // A second report tells nothing new, and disables it again if it was enabled.
        const before = await server.rows();
        await server.advance(1_000);
        await report(key);
        assert.deepEqual(await server.rows(), before);
        await server.ok("rootKeys.updateRootKey", { rootKeyId, enabled: true });
        assert.equal(await call(), "passed");
        await server.request("POST", "/leaks/github", signed(JSON.stringify([{ token: key, url: URL }])));
        assert.equal(await call(), disabled ? "root_key_disabled" : "passed");
        assert.equal((await shown()).leakedAt, leakedAt);
        // A replacement is not leaked, and keeps what happens to it.
        const roll = await server.ok("rootKeys.rerollRootKey", { rootKeyId, expiration: 0 });
        const [next] = await server.ok("rootKeys.listRootKeys", { search: roll.rootKeyId });
        assert.deepEqual([next.leakedAt, next.leakAction], [undefined, leakAction]);
      }
    });

    it("marks the last administrator of a workspace, and the root key of the configuration, and disables neither", async () => {
      const { rootKeyId, key } = await server.workspace("last administrator");
      await server.ok("rootKeys.updateRootKey", { rootKeyId, leakAction: "disable" }, { as: key });
      await report(key);
      const [shown] = await server.ok("rootKeys.listRootKeys", {}, { as: key });
      assert.deepEqual([shown.enabled, shown.leakedAt], [true, server.clock.now()]);
      const given = "root_key_of_the_environment_1";
      await server.store.transact("establish", { now: server.clock.now(), rootKey: given });
      await server.pass(500);
      await report(given);
      const all = await server.ok("rootKeys.listRootKeys", { limit: 100 }, { as: given });
      const own = all.find(({ source }: { source: string }) => source === "environment");
      assert.deepEqual([own.enabled, own.leakedAt], [true, server.clock.now()]);
    });

    it("takes the signed example of GitHub's documentation", async () => {
      const { identifier, signature, body } = documented;
      const headers = {
        "content-type": "application/json",
        "github-public-key-identifier": identifier,
        "github-public-key-signature": signature,
      };
      assert.equal((await server.request("POST", "/leaks/github", { raw: body, headers })).status, 200);
      const altered = body.replace("some_token", "some_tokem");
      const reply = await server.request("POST", "/leaks/github", { raw: altered, headers });
      assert.equal(reply.problem, "authentication_failed");
    });

    it("stores reports of GitHub before it answers, the known among many", async () => {
      const [first, second] = [await newKey("disable"), await newKey()];
      const matches = [first.key, "unknown", second.key, "x".repeat(600), first.key].map((token) => ({
        token,
        type: "prod_api_key",
        url: URL,
        source: "content",
      }));
      const { status, body } = await server.request("POST", "/leaks/github", signed(JSON.stringify(matches)));
      assert.equal(status, 200);
      assert.deepEqual(body.data, {});
      assert.equal((await server.verify(first.key)).code, "DISABLED");
      assert.equal((await server.getKey(second.keyId)).leakedAt, server.clock.now());
      assert.deepEqual(
        (await eventsOf(second.keyId)).map(({ source, url }) => ({ source, url })),
        [{ source: "github", url: URL }],
      );
      const unknown = await server.request("POST", "/leaks/github", signed('[{"token":"unknown"}]'));
      assert.deepEqual({ ...unknown.body, meta: 0 }, { ...body, meta: 0 });
    });

    it("takes a report of GitHub with a thousand matches", async () => {
      const { key } = await newKey("disable");
      const matches = Array.from({ length: 1_000 }, (_, i) => ({ token: i === 999 ? key : `prod_${i}`, url: URL }));
      const { status } = await server.request("POST", "/leaks/github", signed(JSON.stringify(matches)));
      assert.equal(status, 200);
      assert.equal((await server.verify(key)).code, "DISABLED");
    });

    it("answers GitHub with 503 if the report could not be stored, so that it is sent again", async () => {
      const { key } = await newKey("disable");
      server.store.interception = failing;
      const body = JSON.stringify([{ token: key }]);
      assert.equal((await server.request("POST", "/leaks/github", signed(body))).problem, "service_unavailable");
      server.store.interception = undefined;
      assert.equal((await server.request("POST", "/leaks/github", signed(body))).status, 200);
      assert.equal((await server.verify(key)).code, "DISABLED");
    });

    it("keeps accepted reports while the database is unavailable", async () => {
      const { key } = await newKey("disable");
      server.store.interception = failing;
      await report(key);
      server.store.interception = undefined;
      assert.equal((await server.verify(key)).code, "VALID");
      await server.pass(1_000);
      assert.equal((await server.verify(key)).code, "DISABLED");
    });

    it("rejects reports without GitHub's signature, unread if they have none", async () => {
      const body = '[{"token":"some_token"}]';
      const { raw, headers } = signed(body);
      const send = async (changed: Record<string, string | undefined>, text = raw) =>
        (await server.request("POST", "/leaks/github", { raw: text, headers: { ...headers, ...changed } })).problem;
      assert.equal(await send({ "github-public-key-identifier": undefined }), "authentication_failed");
      assert.equal(await send({ "github-public-key-signature": undefined }), "authentication_failed");
      assert.equal(await send({ "github-public-key-signature": "AAAA" }), "authentication_failed");
      assert.equal(await send({ "github-public-key-signature": "a".repeat(300) }), "authentication_failed");
      assert.equal(await send({ "github-public-key-identifier": "b".repeat(64) }), "authentication_failed");
      assert.equal(await send({}, `${body} `), "authentication_failed");
      assert.equal(await send({ "content-type": "text/plain" }), "invalid_input");
      for (const wrong of ["{}", "[1]", "null", "nonsense", '[{"token":1}]']) {
        assert.equal((await server.request("POST", "/leaks/github", signed(wrong))).problem, "invalid_input", wrong);
      }
      const long = JSON.stringify([{ token: "x".repeat(1024 * 1024) }]);
      assert.equal((await server.request("POST", "/leaks/github", signed(long))).problem, "request_body_too_large");
    });

    it("tells TruffleHog which keys are live, without spending their credits", async () => {
      const { keyId, key } = await newKey(undefined, { credits: { remaining: 5 } });
      const ask = async (one: string, authorization: string | undefined = `Bearer ${server.rootKey}`) => {
        const raw = JSON.stringify({ prod_api_key: { key: [one] } });
        // Not through the harness, which knows the problems of operations only.
        const headers = { authorization };
        const request = { method: "POST", url: "/leaks/verify", headers, payload: raw } as const;
        return (await inject(server.service.dispatch, request)).statusCode;
      };
      assert.equal(await ask(key), 200);
      assert.equal((await server.getKey(keyId)).credits.remaining, 5);
      assert.equal(await ask(`${key.slice(0, -2)}11`), 404);
      await server.ok("keys.updateKey", { keyId, enabled: false });
      assert.equal(await ask(key), 404);
      const withoutRootKey = await server.request("POST", "/leaks/verify", { raw: '{"a":{"key":["x"]}}' });
      assert.equal(withoutRootKey.problem, "authentication_missing");
      for (const raw of ["", "[]", '{"a":{}}', '{"a":{"key":["x"]},"b":{"key":["x"]}}', "x".repeat(70_000)]) {
        const reply = await server.request("POST", "/leaks/verify", { raw });
        assert.match(String(reply.problem), /invalid_input|request_body_too_large/, raw.slice(0, 50));
      }
    });
  });
}

describe("reports of leaked keys", () => {
  it("count against the budget for look-ups, also if the key exists", async (t) => {
    const server = await new TestServer({ settings: { LOOKUPS_PER_SECOND: "3" } }).open();
    t.after(() => server.close());
    const { key } = await server.createKey(await server.createApi());
    for (const one of [key, "unknown", key]) await server.ok("keys.reportLeak", { key: one }, { as: null });
    await server.rejected("keys.reportLeak", { key }, "lookups_exhausted", { as: null });
  });

  it("are handled before a stop", async (t) => {
    const server = await new TestServer().open();
    t.after(() => server.close());
    const beside = await new TestServer({ beside: server }).open();
    const { key, keyId } = await server.createKey(await server.createApi());
    await beside.ok("keys.reportLeak", { key }, { as: null });
    await beside.close();
    assert.equal((await server.getKey(keyId)).leakedAt, server.clock.now());
  });

  it("of GitHub need a setting", async (t) => {
    const server = await new TestServer().open();
    t.after(() => server.close());
    const { problem, body } = await server.request("POST", "/leaks/github", signed("[]"));
    assert.equal(problem, "route_not_found");
    assert.match(body.error.detail, /LATCHKEY_GITHUB_KEYS/);
  });

  it("stop the start if the file with GitHub's keys is none", async () => {
    await assert.rejects(
      new TestServer({ settings: { GITHUB_KEYS: "/nonexistent/keys.json" } }).open(),
      /^OperatorError: LATCHKEY_GITHUB_KEYS=\/nonexistent\/keys.json: give https:.*ENOENT/,
    );
  });
});
