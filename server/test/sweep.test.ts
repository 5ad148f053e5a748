/** Problems that all operations have in common: a loop over the list of operations. */
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { operations as ofApi, replicaOperations } from "../src/service/operations.ts";
import { describeOnStores, POLL_INTERVAL, type Reply, type StoreKind, type TestServer, VAULT_KEY } from "./harness.ts";
import { invalidBodies, type ViolationKind } from "./invalid-input.ts";
import { samples } from "./samples.ts";

const operations = [...ofApi, ...replicaOperations];

/** Grants for the actions of all operations, except for those that `name` may need. */
function otherGrants(name: string): string[] {
  const action = (permission: string) => permission.split(".")[2]!;
  const own = new Set(operations.find((operation) => operation.name === name)!.declaration.permissions.map(action));
  const all = new Set(operations.flatMap(({ declaration }) => declaration.permissions));
  return [...all]
    .filter((permission) => !own.has(action(permission)))
    .map((permission) => permission.replace(/\{\w+\}/, "*"));
}

/** The outcome of a reply in one word. */
const outcome = ({ problem, body }: Reply): string | undefined =>
  problem ?? (body.data?.valid === false ? body.data.code : undefined);

/** The body without its request id. */
const withoutRequestId = ({ body }: Reply) => ({ ...body, meta: undefined });

/** The kinds of violations whose errors were checked. */
const seenViolations = new Set<ViolationKind>();

after(() => {
  const kinds: ViolationKind[] = [
    "missing",
    "type",
    "null",
    "unknown",
    "enum",
    "pattern",
    "length",
    "fraction",
    "range",
  ];
  assert.deepEqual([...seenViolations].sort(), [...kinds, "items", "duplicate", "seconds"].sort());
});

describeOnStores("every operation", sweep, { VAULT_KEY });

function sweep(server: TestServer, store: StoreKind): void {
  for (const operation of operations) {
    const { name } = operation;
    const sample = samples[name];

    describe(name, () => {
      // Otherwise the events of all later operations are sent to the webhooks of this one.
      after(() =>
        server.change([], async ({ db }) => {
          await db
            .updateTable("webhooks")
            .set({ enabled: 0, disabled_at: server.clock.now(), disabled_reason: "requested" })
            .execute();
        }),
      );

      it("works for an administrator", async () => {
        await server.ok(name, await sample.body(server));
      });

      it("needs authentication", async () => {
        const body = await sample.body(server);
        const before = await server.writes();
        for (const headers of [{ authorization: undefined }, { authorization: "" }, { authorization: "  " }]) {
          if (operation.kind === "metered" && (operation.anonymousCaller || operation.isPublic))
            await server.ok(name, body, { as: null, headers });
          else await server.rejected(name, body, "authentication_missing", { as: null, headers });
        }
        for (const authorization of ["Basic dXNlcjpwYXNz", server.rootKey, "Bearer", "Bearer ", "bearer"]) {
          const error = await server.rejected(name, body, "authentication_malformed", { headers: { authorization } });
          assert.match(error.detail, /valid root key.*Bearer/);
          assert.deepEqual(error.errors, []);
        }
        assert.equal((await server.writes()).keys, before.keys);
        const ordinary = (await server.createKey(await server.createApi())).key;
        const withKey = await server.writes();
        for (const as of ["lk_root_neverissued", ordinary, `${server.rootKey}x`, "x".repeat(600)]) {
          const error = await server.rejected(name, body, "authentication_failed", { as });
          assert.equal(error.detail, "The provided root key is invalid. We could not find the requested key.");
        }
        assert.deepEqual(await server.writes(), withKey);
      });

      it("rejects a root key that is disabled or has expired", async () => {
        const disabled = await server.grant("*");
        const expiring = await server.grant("*");
        await server.ok(name, await sample.body(server), { as: disabled.key });
        await server.ok(name, await sample.body(server), { as: expiring.key });
        const body = await sample.body(server);
        const expires_at = server.clock.now() + POLL_INTERVAL + 2;
        await server.change([disabled.rootKeyId, expiring.rootKeyId], async ({ db }) => {
          await db.updateTable("root_keys").set({ enabled: 0 }).where("id", "=", disabled.rootKeyId).execute();
          await db.updateTable("root_keys").set({ expires_at }).where("id", "=", expiring.rootKeyId).execute();
        });
        await server.rejected(name, body, "root_key_disabled", { as: disabled.key });
        await server.pass(1);
        await server.ok(name, body, { as: expiring.key });
        await server.pass(1);
        await server.rejected(name, body, "root_key_expired", { as: expiring.key });
      });

      it("rejects a root key of a disabled workspace", async () => {
        const { workspaceId, key: as } = await server.workspace("suspended");
        const body = await sample.body(server);
        await server.call(name, body, { as });
        const act = { now: server.clock.now(), actor: "cli", workspaceId };
        await server.store.transact("setWorkspaceEnabled", { ...act, enabled: false });
        await server.pass(500);
        await server.rejected(name, body, "workspace_disabled", { as });
      });

      it("rejects a root key with every permission except its own", async () => {
        const { key: as } = await server.grant(...otherGrants(name));
        const body = await sample.body(server);
        const before = await server.writes();
        const reply = await server.call(name, body, { as });
        assert.equal(outcome(reply), sample.unpermitted);
        if (reply.problem === "insufficient_permissions")
          assert.match(reply.body.error.detail, /^Missing (permission: '|one of these permissions: ')/);
        assert.deepEqual(await server.writes(), before);
        // The same body works with the permission.
        await server.ok(name, body);
      });

      it("answers for resources of another workspace as for missing ones (rule 4)", async () => {
        const { key: as } = await server.workspace("other");
        const body = await sample.body(server);
        const absent = sample.absent(body);
        if (!absent) return;
        const before = await server.writes();
        const foreign = await server.call(name, body, { as });
        const never = await server.call(name, absent, { as });
        assert(outcome(foreign)?.toLowerCase().endsWith("not_found"), JSON.stringify(foreign.body));
        assert.deepEqual(withoutRequestId(foreign), withoutRequestId(never));
        assert.equal(foreign.status, never.status);
        assert.deepEqual(await server.writes(), before);
        await server.ok(name, body);
      });

      // Method, headers and body are judged before the store is asked, so one database shows it.
      if (store === "sqlite") sweepRequests(server, operation);
    });
  }
}

function sweepRequests(server: TestServer, { name, kind, declaration }: (typeof operations)[number]): void {
  const sample = samples[name];

  it("accepts white space around the root key, and its scheme in any case", async () => {
    for (const authorization of [
      `Bearer   ${server.rootKey}  `,
      `bearer ${server.rootKey}`,
      `BEARER ${server.rootKey}`,
    ]) {
      await server.ok(name, await sample.body(server), { headers: { authorization } });
    }
  });

  it("authenticates before it validates the body", async () => {
    const options = { raw: "{ broken", as: "lk_root_neverissued" };
    await server.rejected(name, undefined, "authentication_failed", options);
    await server.rejected(name, undefined, "invalid_input", { raw: "{ broken" });
  });

  it("answers POST only", async () => {
    for (const method of ["GET", "PUT", "PATCH", "DELETE"]) {
      const reply = await server.request(method, `/v2/${name}`);
      assert.equal(reply.problem, "method_not_allowed");
      assert.equal(reply.headers.allow, "POST");
    }
  });

  it("accepts whole numbers in any notation", async () => {
    const body = await sample.body(server);
    const raw = (notation: (digits: string) => string) =>
      JSON.stringify(body).replace(/([:,[])(\d+)(?=[,}\]])/g, (_, before, digits) => before + notation(digits));
    for (const notation of [(digits: string) => `${digits}.0`, (digits: string) => `${digits}e0`]) {
      const reply = await server.call(name, undefined, { raw: raw(notation) });
      assert.notEqual(reply.problem, "invalid_input", JSON.stringify(reply.body));
    }
  });

  it("rejects bodies that parsing would change silently", async () => {
    const body = await sample.body(server);
    const before = await server.writes();
    const text = JSON.stringify(body);
    const [name1, value1] = Object.entries(Array.isArray(body) ? body[0] : body)[0] ?? [];
    const bytes = (at: string, byte: number) => {
      const [head, tail] = [text.slice(0, text.indexOf(at)), text.slice(text.indexOf(at) + at.length)];
      return Buffer.concat([Buffer.from(head), Buffer.from([byte]), Buffer.from(tail)]);
    };
    if (name1 !== undefined) {
      const member = `"${name1}":${JSON.stringify(value1)}`;
      for (const raw of [
        text.replace(member, `${member},${member}`),
        text.replace(member, `${member},"__proto__":{}`),
        text.replace(member, `${member},"\\u005f_proto__":{}`),
      ]) {
        const error = await server.rejected(name, undefined, "invalid_input", { raw });
        assert(error.errors![0]!.fix, raw);
      }
      for (const byte of [0xff, 0xfe, 0xc0, 0x80]) {
        const raw = bytes(name1, byte);
        const error = await server.rejected(name, undefined, "invalid_input", { raw });
        assert.deepEqual(error.errors![0]!.message, "the bytes are not UTF-8");
      }
    }
    assert.deepEqual(await server.writes(), before);
    await server.ok(name, body);
  });

  it("rejects a compressed body, and one in another charset", async () => {
    const body = await sample.body(server);
    const before = await server.writes();
    const compressed = gzipSync(JSON.stringify(body));
    for (const encoding of ["gzip", "br", "deflate", "gzip, identity", "GZIP"]) {
      for (const raw of [compressed, JSON.stringify(body)]) {
        const options = { raw, headers: { "content-encoding": encoding } };
        await server.rejected(name, undefined, "unsupported_content_encoding", options);
      }
    }
    for (const charset of ["utf-16", "latin1", '"iso-8859-1"', "us-ascii"]) {
      const headers = { "content-type": `application/json; charset=${charset}` };
      const error = await server.rejected(name, body, "invalid_input", { headers });
      assert.match(error.errors![0]!.fix!, /UTF-8/);
    }
    assert.deepEqual(await server.writes(), before);
    for (const charset of ["utf-8", "UTF-8", '"utf-8"', "utf8"]) {
      const headers = { "content-type": `application/json;charset=${charset}`, "content-encoding": "identity" };
      await server.ok(name, await sample.body(server), { headers });
    }
  });

  it("rejects an invalid value in every field, with its location, and changes nothing (rule 12)", async () => {
    const body = await sample.body(server);
    const violations = invalidBodies(declaration.input, body);
    const before = await server.writes();
    for (const { what, kind, location, message, raw } of violations) {
      const reply = await server.call(name, undefined, { raw });
      const at = `${what}: ${JSON.stringify(reply.body)}, not ${location}: ${message}`;
      assert.equal(reply.problem, "invalid_input", at);
      const { errors } = reply.body.error as { errors: { location: string; message: string; fix?: string }[] };
      const reported = errors.find((error) => error.location === location && message.test(error.message));
      assert(reported?.fix, at);
      seenViolations.add(kind);
    }
    assert.deepEqual(await server.writes(), before);
    await server.ok(name, body);
  });

  it("rejects a body that is not a JSON object, or has another media type (rule 3)", async () => {
    const body = await sample.body(server);
    const before = await server.writes();
    for (const raw of ["", " ", "{", '{"a":1,}', "null", "[]", '"text"', "1", "\ufeff{}", "{}{}"]) {
      const error = await server.rejected(name, undefined, "invalid_input", { raw });
      assert(error.errors!.length > 0, raw);
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "", undefined]) {
      const error = await server.rejected(name, body, "invalid_input", { headers: { "content-type": type } });
      assert(error.errors!.length > 0, type);
    }
    assert.deepEqual(await server.writes(), before);
    await server.ok(name, body, { headers: { "content-type": "application/json; charset=utf-8" } });
  });

  it("rejects a body that is too large", async () => {
    const bytes = declaration.bodyBytesMax ?? (kind === "metered" ? 64 * 1024 : 10_485_760);
    const body = await sample.body(server);
    const padded = (length: number) => JSON.stringify(body).padEnd(length);
    await server.rejected(name, undefined, "request_body_too_large", { raw: padded(bytes + 1) });
    // The longest body is read in the same way for all operations of a kind.
    const isLike = (other: typeof declaration) => other.bodyBytesMax === declaration.bodyBytesMax;
    if (operations.find((other) => other.kind === kind && isLike(other.declaration))!.name === name)
      await server.ok(name, undefined, { raw: padded(bytes) });
  });
}
