/** Forged and stolen tokens, floods of unknown ones, and what a tenant can do with those of another. */
import assert from "node:assert/strict";
import { createHmac, createPublicKey, generateKeyPairSync, type JsonWebKey, sign } from "node:crypto";
import { describe, it } from "node:test";
import { decodeJwt } from "jose";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { formatKey } from "../../../engine/src/rules/key-string.ts";
import { TOKENS_PER_KEY } from "../../src/features/oauth/issueToken.ts";
import { cpuTimeOf } from "../cpu-time.ts";
import { describeOnStores, openTestServer, type TestServer, VAULT_KEY } from "../harness.ts";
import { basic, getDocument, introspect, postForm, requestToken } from "../oauth-caller.ts";

const settings = { OAUTH_TOKENS: "on", PUBLIC_URL: "https://keys.example.com", VAULT_KEY };
const RESOURCE = "https://api.example.com";
const MINUTE = 60_000;
const inactive = { active: false };

const random = seededRandom(56);
/** A key string that was never issued, with a valid checksum. */
const inventedKey = () =>
  formatKey(
    null,
    Uint8Array.from({ length: 16 }, () => random.below(256)),
  ).key;

const encode = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

async function keyWithTokens(server: TestServer, as?: string) {
  const options = as === undefined ? {} : { as };
  const { apiId } = await server.ok("apis.createApi", { name: "tokens" }, options);
  await server.ok("apis.updateApi", { apiId, resources: [RESOURCE] }, options);
  const made: { keyId: string; key: string } = await server.ok(
    "keys.createKey",
    { apiId, permissions: ["read"] },
    options,
  );
  return { apiId, ...made };
}

/** How often the service read each procedure of the database during some work, except for its periodic reads. */
async function readsOf(server: TestServer, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const reads: Record<string, number> = {};
  server.store.interception = (name, proceed) => {
    if (name !== "readChanges") reads[name] = (reads[name] ?? 0) + 1;
    return proceed();
  };
  await work();
  server.store.interception = undefined;
  return reads;
}

describeOnStores(
  "forged access tokens",
  (server) => {
    it("are inactive, whatever their header says (rule 129)", async () => {
      const made = await keyWithTokens(server);
      const { access_token: token } = (await requestToken(server, made)).body as { access_token: string };
      const [header, payload, signature] = token.split(".") as [string, string, string];
      const { kid } = JSON.parse(Buffer.from(header, "base64url").toString()) as { kid: string };
      const claims = decodeJwt(token);
      assert.equal((await introspect(server, token)).active, true);
      const [jwk] = (await getDocument(server, "/oauth/jwks")).body.keys as JsonWebKey[];
      const publicPem = createPublicKey({ key: jwk!, format: "jwk" }).export({ type: "spki", format: "pem" });
      const own = generateKeyPairSync("rsa", { modulusLength: 2_048 });
      const ownJwk = own.publicKey.export({ format: "jwk" });
      const curve = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const at = { typ: "at+jwt" };

      const hmac = (head: object, secret: string | Buffer, body: unknown = claims) => {
        const text = `${encode(head)}.${encode(body)}`;
        return `${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
      };
      const rsa = (head: object, body: unknown = claims) => {
        const text = `${encode(head)}.${encode(body)}`;
        return `${text}.${sign("sha256", Buffer.from(text), own.privateKey).toString("base64url")}`;
      };
      const ecdsa = (head: object) => {
        const text = `${encode(head)}.${encode(claims)}`;
        const bytes = sign("sha256", Buffer.from(text), { key: curve.privateKey, dsaEncoding: "ieee-p1363" });
        return `${text}.${bytes.toString("base64url")}`;
      };
      const withHeader = (head: unknown) => `${encode(head)}.${payload}.${signature}`;
      const forged: Record<string, string> = {
        "no signature": `${header}.${payload}.`,
        "alg none": `${encode({ ...at, alg: "none", kid })}.${payload}.`,
        "alg none with the signature": withHeader({ ...at, alg: "none", kid }),
        "alg nOnE": `${encode({ ...at, alg: "nOnE", kid })}.${payload}.${signature}`,
        "HMAC with the public key in PEM": hmac({ ...at, alg: "HS256", kid }, publicPem),
        "HMAC with the public key as JWK": hmac({ ...at, alg: "HS256", kid }, JSON.stringify(jwk)),
        "HMAC with the modulus": hmac({ ...at, alg: "HS256", kid }, Buffer.from(jwk!.n!, "base64url")),
        "HMAC with nothing": hmac({ ...at, alg: "HS256", kid }, ""),
        "an own key under our kid": rsa({ ...at, alg: "RS256", kid }),
        "an own key in the header": rsa({ ...at, alg: "RS256", kid, jwk: ownJwk }),
        "an own key at an address": rsa({
          ...at,
          alg: "RS256",
          kid,
          jku: "https://evil.example/jwks",
          x5u: "https://evil.example",
        }),
        "ECDSA under our kid": ecdsa({ ...at, alg: "ES256", kid }),
        "the algorithm PS256": withHeader({ ...at, alg: "PS256", kid }),
        "the algorithm RS512": withHeader({ ...at, alg: "RS512", kid }),
        "no algorithm": withHeader({ ...at, kid }),
        "another type": withHeader({ typ: "JWT", alg: "RS256", kid }),
        "a critical extension": withHeader({ ...at, alg: "RS256", kid, crit: ["b64"], b64: false }),
        "a changed scope": `${header}.${encode({ ...claims, scope: "admin" })}.${signature}`,
        "a later expiry": `${header}.${encode({ ...claims, exp: claims.exp! + 3_600 })}.${signature}`,
        "another key": `${header}.${encode({ ...claims, sub: "key_0000000000000000" })}.${signature}`,
        "a payload that is no JSON": `${header}.${encode("no JSON")}.${signature}`,
        "a payload that is null": `${header}.${encode("null")}.${signature}`,
        "a header that is no JSON": `${encode("no JSON")}.${payload}.${signature}`,
        "a header that is an array": withHeader([]),
        "a header that is null": withHeader(null),
        "four parts": `${token}.${signature}`,
        "a cut signature": token.slice(0, -4),
        "a longer signature": `${token}AAAA`,
        "a space": `${token} `,
        "a giant payload": `${header}.${encode({ ...claims, more: "a".repeat(5_000) })}.${signature}`,
        "a giant header": withHeader({ ...at, alg: "RS256", kid, more: "a".repeat(6_000) }),
        "a deep header": `${encode(`{"kid":${"[".repeat(3_000)}${"]".repeat(3_000)}}`)}.${payload}.${signature}`,
      };
      const kids = [
        "",
        "..",
        "../../../../dev/null",
        "' or 1=1 --",
        `${kid}\0`,
        kid.toLowerCase(),
        "__proto__",
        "constructor",
      ];
      for (const injected of [...kids, null, 0, {}, [kid], "k".repeat(5_000)]) {
        forged[`the kid ${JSON.stringify(injected).slice(0, 60)}`] = rsa({ ...at, alg: "RS256", kid: injected });
      }
      const before = await server.rows();
      const reads = await readsOf(server, async () => {
        for (const [what, one] of Object.entries(forged))
          assert.deepEqual(await introspect(server, one), inactive, what);
      });
      // None of them is looked up: no key string has such a form, and no kid leads to a query.
      assert.deepEqual(reads, {});
      assert.deepEqual(await server.rows(), before);
      assert.equal((await introspect(server, token)).active, true);
    });

    it("of another workspace are unknown, also under its kid, and its keys are not those of the vault row of another", async () => {
      const ours = await keyWithTokens(server);
      const stranger = await server.workspace("strangers");
      const theirs = await keyWithTokens(server, stranger.key);
      const path = `/oauth/${stranger.workspaceId}`;
      const theirToken = (await requestToken(server, theirs, {}, `${path}/token`)).body.access_token as string;
      const ourToken = (await requestToken(server, ours)).body.access_token as string;
      assert.deepEqual(await introspect(server, theirToken), inactive);
      assert.deepEqual(await introspect(server, ourToken, { as: stranger.key }), inactive);
      // A root key of the workspace that may not verify keys of the API.
      const { key: as } = await server.grant("apis.api_0000000000000000.verify_key");
      assert.deepEqual(await introspect(server, ourToken, { as }), inactive);
      const mixed = [ourToken.split(".")[0], theirToken.split(".")[1], theirToken.split(".")[2]].join(".");
      assert.deepEqual(await introspect(server, mixed), inactive);
      // Whoever can write to the database cannot let one workspace sign with the key of another.
      const rows = (await server.rowsOf("signing_keys")) as { id: string; workspace_id: string }[];
      const row = rows.find(({ workspace_id }) => workspace_id === stranger.workspaceId)!;
      const moveTo = (workspaceId: string) =>
        server.change([], ({ db }) =>
          db.updateTable("signing_keys").set({ workspace_id: workspaceId }).where("id", "=", row.id).execute(),
        );
      await moveTo(server.workspaceId);
      await server.advance(2 * MINUTE);
      const { status, body } = await requestToken(server, ours);
      assert.deepEqual([status, body.error], [500, "server_error"]);
      assert(!JSON.stringify(body).includes("seal"));
      await moveTo(stranger.workspaceId);
      assert.equal((await requestToken(server, ours)).status, 200);
    });

    it("in great numbers take little time", async () => {
      const made = await keyWithTokens(server);
      const { access_token: token } = (await requestToken(server, made)).body as { access_token: string };
      const [header, payload] = token.split(".") as [string, string, string];
      const forge = (i: number) => `${header}.${payload}.${Buffer.alloc(256, i).toString("base64url")}`;
      const spent = async (of: (i: number) => string) => {
        await introspect(server, of(0));
        return cpuTimeOf(async () => {
          for (let i = 0; i < 200; i++) await introspect(server, of(i));
        });
      };
      const invented = await spent(() => "3kAqEg4u4qMxCGFAVMuGsb3cijGp");
      const forged = await spent(forge);
      // The check of a signature, beside a request without one.
      assert(forged < 5 * invented + 200, `${forged} ms for forged tokens, ${invented} ms for invented keys`);
    });
  },
  settings,
);

describeOnStores(
  "strangers at the routes of OAuth",
  (server) => {
    it("cause the same query for an unknown key as for one that is not theirs", async () => {
      const stranger = await server.workspace("others");
      const { apiId } = await server.ok("apis.createApi", { name: "theirs" }, { as: stranger.key });
      const foreign = await server.ok("keys.createKey", { apiId }, { as: stranger.key });
      const made = await keyWithTokens(server);
      await introspect(server, inventedKey());
      for (const key of [inventedKey(), foreign.key]) {
        assert.deepEqual(await readsOf(server, () => introspect(server, key)), { keysAt: 1 });
      }
      for (const key of [inventedKey(), (await server.ok("keys.createKey", { apiId }, { as: stranger.key })).key]) {
        const reads = await readsOf(server, async () => {
          const { status, body } = await requestToken(server, { keyId: made.keyId, key });
          assert.deepEqual([status, body.error], [401, "invalid_client"]);
        });
        assert.deepEqual(reads, { keysAt: 1 });
      }
      // A mistyped key costs nothing.
      const mistyped = `${inventedKey().slice(0, -1)}1`;
      assert.deepEqual(await readsOf(server, () => introspect(server, mistyped)), {});
      assert.deepEqual(await readsOf(server, () => requestToken(server, { keyId: made.keyId, key: mistyped })), {});
    });

    it("get a bounded number of tokens with one key", async () => {
      const made = await keyWithTokens(server);
      const other = await keyWithTokens(server);
      await server.pass(MINUTE - (server.clock.now() % MINUTE));
      for (let i = 0; i < TOKENS_PER_KEY; i++) assert.equal((await requestToken(server, made)).status, 200);
      const { status, headers, body } = await requestToken(server, made);
      assert.deepEqual([status, body.error], [429, "temporarily_unavailable"]);
      assert(Number(headers["retry-after"]) > 0);
      assert.equal((await requestToken(server, other)).status, 200);
      // Verifications do not share this limit.
      assert.equal((await server.verify(made.key)).valid, true);
    });

    it("cannot say anything that is sent on: headers, line breaks, quotation marks", async () => {
      const texts = ['a"b', "a\\b", "a\r\nSet-Cookie: a=b", "a\0b", "☂", "\ud800".toWellFormed(), "a".repeat(5_000)];
      for (const text of texts) {
        const form = {
          grant_type: "client_credentials",
          scope: text,
          resource: text,
          client_id: text,
          client_secret: text,
        };
        const { headers, body } = await postForm(server, "/oauth/token", form);
        assert.match(body.error_description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
        assert.equal(headers["set-cookie"], undefined);
        const asked = { token: text, client_ip: text, token_type_hint: text };
        await postForm(server, "/oauth/introspect", asked, { authorization: `Bearer ${server.rootKey}` });
      }
    });
  },
  settings,
);

describe("a flood of unknown keys", () => {
  it("stays within the budget of look-ups, apart for each caller", async (t) => {
    const server = await openTestServer({ settings: { ...settings, LOOKUPS_PER_SECOND: "5" } });
    t.after(() => server.close());
    const made = await keyWithTokens(server);
    await requestToken(server, made);
    const stranger = await server.workspace("flooding");
    const ask = {
      introspect: () =>
        postForm(server, "/oauth/introspect", { token: inventedKey() }, { authorization: `Bearer ${stranger.key}` }),
      token: () =>
        postForm(
          server,
          "/oauth/token",
          { grant_type: "client_credentials" },
          { authorization: basic(made.keyId, inventedKey()), from: "198.51.100.1" },
        ),
      workspace: () =>
        postForm(
          server,
          `/oauth/ws_${String(random.below(1e9)).padStart(16, "0")}/token`,
          { grant_type: "client_credentials" },
          { authorization: basic(made.keyId, made.key), from: "203.0.113.1" },
        ),
    };
    for (const [what, flood] of Object.entries(ask)) {
      await server.advance(2_000);
      await server.store.settled();
      let refused = 0;
      const reads = await readsOf(server, async () => {
        for (let i = 0; i < 30; i++) {
          const { status, headers } = await flood();
          if (status !== 503) continue;
          refused++;
          assert.match(headers["retry-after"]!, /^\d+$/);
        }
      });
      assert(refused >= 24, `${what}: ${refused} of 30 were refused`);
      assert((reads.keysAt ?? 0) + (reads.workspaces ?? 0) <= 6, `${what}: ${JSON.stringify(reads)}`);
      // Nobody else notices.
      assert.equal((await introspect(server, made.key)).active, true, what);
      assert.equal((await requestToken(server, made)).status, 200, what);
    }
  });
});
