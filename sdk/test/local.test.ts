/** `LocalLatchkey` with a real service: what it decides itself, and what it leaves to the service. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import express from "express";
import { eventually, makeFolder, Program, ROOT_KEY, type Server, start } from "../../server/test/process.ts";
import { verify } from "../src/express.ts";
import { Latchkey, LatchkeyError, Secret } from "../src/index.ts";
import { LocalLatchkey, type LocalLatchkeyOptions, type LocalState } from "../src/local.ts";
import { inject } from "./inject.ts";

describe("LocalLatchkey (rules 176 to 180)", () => {
  let service: Server;
  let apiId: string;
  let rootKey: { key: string; rootKeyId: string };
  const undo: (() => void | Promise<void>)[] = [];

  before(async () => {
    const directory = makeFolder({ after: (task) => void undo.push(task) });
    service = await start({ directory });
    ({ apiId } = await service.ok("apis.createApi", { name: "images" }));
    const permissions = ["replicas.*.open", "apis.*.verify_key"];
    rootKey = await service.ok("rootKeys.createRootKey", { name: "local", permissions });
  });
  after(async () => {
    for (const task of undo) await task();
  });

  /** A client that decides, with the operations that it asked the service for. */
  async function open(options: Partial<LocalLatchkeyOptions> = {}) {
    const asked: string[] = [];
    const network = { isCut: false };
    const latchkey = new LocalLatchkey({
      url: service.address,
      rootKey: rootKey.key,
      retries: 0,
      fetch: (address, init) => {
        const operation = String(address).replace(/^.*\//, "");
        if (operation !== "replica.listChanges") asked.push(operation);
        return network.isCut ? Promise.reject(new Error("cut")) : fetch(address, init);
      },
      ...options,
    });
    undo.push(() => latchkey.close());
    await latchkey.ready();
    return { latchkey, asked, network };
  }

  const createKey = (members: object = {}) => service.ok("keys.createKey", { apiId, ...members });

  it("asks the service once for a key, and decides further calls itself", async () => {
    const { latchkey, asked } = await open();
    const { key, keyId } = await createKey({ permissions: [], meta: { plan: "pro" } });
    // The change that created the key may arrive after the first look-up, and outdate it. When a later one has arrived, it has too.
    await latchkey.keys.verifyKey({ key });
    await service.ok("keys.updateKey", { keyId, name: "known" });
    await eventually(
      "the changes of the key",
      async () => (await latchkey.keys.verifyKey({ key })).data.name === "known",
    );
    const expected = (await new Latchkey({ url: service.address, rootKey: rootKey.key }).keys.verifyKey({ key })).data;
    assert.deepEqual((await latchkey.keys.verifyKey({ key, apiId })).data, expected);
    assert.equal(expected.keyId, keyId);
    const before = asked.length;
    for (let i = 0; i < 50; i++)
      assert.equal((await latchkey.keys.verifyKey({ key: new Secret(key) })).data.valid, true);
    assert.equal((await latchkey.keys.verifyKey({ key, permissions: "a.b" })).data.code, "INSUFFICIENT_PERMISSIONS");
    assert.equal((await latchkey.keys.verifyKey({ key, apiId: "api_of_others" })).data.code, "NOT_FOUND");
    assert.deepEqual(
      asked.slice(before).filter((operation) => operation !== "replica.report"),
      [],
    );
  });

  it("lets a program end when it has nothing more to do, and reports what it counted before", async () => {
    const { key, keyId } = await createKey();
    const module = new URL("../src/local.ts", import.meta.url).href;
    // The first question is lost, so the program has to wait until it can decide.
    const source = `
      import { LocalLatchkey } from ${JSON.stringify(module)};
      const [url, rootKey, key] = process.argv.slice(2);
      let asked = 0;
      const fetchSecond = (...call) => (asked++ === 0 ? Promise.reject(new Error("away")) : fetch(...call));
      const clients = [new LocalLatchkey({ url, rootKey, fetch: fetchSecond }), new LocalLatchkey({ url, rootKey })];
      for (const latchkey of clients) {
        await latchkey.ready();
        for (let i = 0; i < 20; i++) await latchkey.keys.verifyKey({ key });
      }
      console.log("verified", process.listenerCount("beforeExit"));
    `;
    const directory = makeFolder({ after: (task) => void undo.push(task) });
    writeFileSync(join(directory, "program.mjs"), source);
    const program = new Program(["program.mjs", service.address, rootKey.key, key], { directory });
    assert.deepEqual(await program.ended, { code: 0, signal: null }, program.output);
    assert.equal(program.stdout, "verified 1\n");
    const now = Date.now();
    await eventually("the counts", async () => {
      const range = { start: now - 3_600_000, end: now + 3_600_000 };
      return (await service.ok("analytics.getKeyStats", { keyId, ...range })).total === 40;
    });
  });

  it("charges together what is called together", async () => {
    const { latchkey, asked } = await open();
    const { key } = await createKey({ ratelimits: [{ name: "r", limit: 30, duration: 3_600_000, autoApply: true }] });
    const answers = await Promise.all(Array.from({ length: 100 }, () => latchkey.keys.verifyKey({ key })));
    assert.equal(answers.filter(({ data }) => data.valid).length, 30);
    assert.ok(asked.filter((operation) => operation === "replica.charge").length <= 4, asked.join());
  });

  it("charges limits that a call names as the service does", async () => {
    const { latchkey, asked } = await open();
    const direct = new Latchkey({ url: service.address, rootKey: rootKey.key });
    const limit = { limit: 20, duration: 30 * 86_400_000 };
    const ratelimits = [
      { ...limit, name: "tokens", autoApply: false },
      { ...limit, name: "requests", autoApply: true },
    ];
    const keys = [await createKey({ ratelimits }), await createKey({ ratelimits })];
    const calls = [
      [{ name: "tokens", cost: 7 }],
      [{ name: "tokens", cost: 7 }, { name: "requests" }],
      [{ name: "tokens", cost: 0 }],
      [{ name: "tokens", cost: 7 }],
      [],
      [{ name: "requests", cost: 19 }],
    ];
    await latchkey.keys.verifyKey({
      key: keys[0].key,
      credits: { cost: 0 },
      ratelimits: [{ name: "tokens", cost: 0 }],
    });
    await direct.keys.verifyKey({ key: keys[1].key, ratelimits: [{ name: "tokens", cost: 0 }] });
    asked.length = 0;
    const stateOf = async (client: Latchkey, key: string, named: (typeof calls)[number]) => {
      const { data } = await client.keys.verifyKey({ key, ratelimits: named });
      return { code: data.code, limits: data.ratelimits?.map(({ name, remaining }) => [name, remaining]) };
    };
    const codes: string[] = [];
    for (const named of calls) {
      const expected = await stateOf(direct, keys[1].key, named);
      assert.deepEqual(await stateOf(latchkey, keys[0].key, named), expected);
      codes.push(expected.code);
    }
    assert.deepEqual(codes, ["VALID", "VALID", "VALID", "RATE_LIMITED", "VALID", "RATE_LIMITED"]);
    assert(!asked.includes("keys.verifyKey"), asked.join());
    // What a call brings, and mistakes.
    await latchkey.keys.verifyKey({ key: keys[0].key, ratelimits: [{ name: "own", limit: 5, duration: 60_000 }] });
    assert.equal(asked.filter((operation) => operation === "keys.verifyKey").length, 1);
    for (const named of [
      [{ name: "absent" }],
      [{ name: "tokens" }, { name: "tokens" }],
      [{ name: "tokens", cost: -1 }],
    ])
      await assert.rejects(latchkey.keys.verifyKey({ key: keys[0].key, ratelimits: named }), LatchkeyError);
  });

  it("takes an answer that is none of an operation for an outage, and decides nothing by it (rule 229)", async () => {
    const limit = { name: "r", limit: 1_000, duration: 3_600_000, autoApply: true };
    const [free, limited] = [await createKey(), await createKey({ ratelimits: [limit] })];
    const meta = { requestId: "req_1" };
    const bodies = [
      "<html>",
      "null",
      "[]",
      "{}",
      JSON.stringify({ data: null, meta }),
      JSON.stringify({ data: {}, meta }),
      JSON.stringify({ data: { keys: [], rootKeys: [], namespaces: [], results: [], limits: [], leases: [] }, meta }),
      JSON.stringify({ data: { keys: [null, null, null], results: [{}, {}, {}], limits: [null], rootKeys: {} }, meta }),
      JSON.stringify({ data: { keys: [{}], results: [{ data: { valid: true } }], limits: [{ data: {} }] }, meta }),
    ];
    for (const body of bodies) {
      const damaged = new Set<string>();
      const { latchkey } = await open({
        fetch: (address, init) =>
          damaged.has(String(address).replace(/^.*\//, ""))
            ? Promise.resolve(new Response(body))
            : fetch(address, init),
      });
      const outcome = async (call: Promise<unknown>) => {
        const error = await call.then(
          (answer) => assert.fail(`${body}: ${JSON.stringify(answer)}`),
          (reason) => reason,
        );
        assert(error instanceof LatchkeyError, `${body}: ${error}`);
        assert.equal(error.type, "invalid_answer", `${body}: ${error}`);
      };
      // The root key of the process is known then.
      const { key } = await createKey();
      assert.equal((await latchkey.keys.verifyKey({ key })).data.code, "VALID");
      damaged.add("replica.resolveKeys");
      await outcome(Promise.resolve(latchkey.keys.verifyKey({ key: free.key })));
      damaged.clear();
      damaged.add("replica.charge").add("replica.lease").add("replica.report");
      assert.equal((await latchkey.keys.verifyKey({ key: free.key })).data.code, "VALID");
      await outcome(Promise.resolve(latchkey.keys.verifyKey({ key: limited.key })));
      await outcome(latchkey.ratelimits.limit({ namespace: "n", identifier: "a", limit: 5, duration: 60_000 }));
      damaged.clear();
      assert.equal((await latchkey.keys.verifyKey({ key: limited.key })).data.code, "VALID");
      await latchkey.close();
    }
  });

  it("takes a part of a busy limit ahead, and returns the rest of it (rules 190 and 193)", async () => {
    const ratelimits = [{ name: "r", limit: 100_000, duration: 3_600_000, autoApply: true }];
    for (const leases of [true, false]) {
      const { latchkey, asked } = await open({ leases });
      const { key } = await createKey({ ratelimits });
      let made = 0;
      const call = async () => {
        made++;
        assert.equal((await latchkey.keys.verifyKey({ key })).data.valid, true);
      };
      for (let i = 0; i < 50; i++) await call();
      if (leases) {
        await eventually("a lease", async () => {
          const before = asked.length;
          for (let i = 0; i < 20; i++) await call();
          return !asked.slice(before).includes("replica.charge");
        });
        asked.length = 0;
        for (let i = 0; i < 1_000; i++) await call();
        // They come faster than what the lease was made for, so further ones are asked for.
        assert.ok(asked.filter((operation) => operation !== "replica.report").length < 200, asked.join());
      }
      await latchkey.close();
      assert.equal(asked.includes("replica.lease"), leases);
      const { data } = await latchkey.keys.verifyKey({ key });
      assert.equal(data.ratelimits?.[0]?.remaining, 100_000 - made - 1);
    }
  });

  it("says in explanations what it would decide by (rule 197)", async () => {
    const permissions = ["replicas.*.open", "apis.*.verify_key", "apis.*.read_key"];
    const reader = await service.ok("rootKeys.createRootKey", { name: "reader", permissions });
    const { latchkey } = await open({ rootKey: reader.key, name: "inside" });
    const { key, keyId } = await createKey({
      ratelimits: [{ name: "r", limit: 1_000_000, duration: 3_600_000, autoApply: true }],
    });
    const explain = async (input: { key?: string | Secret; keyId?: string }) =>
      (await latchkey.keys.explainVerification(input)).data;
    const first = await explain({ key });
    assert.deepEqual([first.key?.keyId, first.edge?.name, first.edge?.record], [keyId, "inside", undefined]);
    // A record can be outdated in between. Only a call asks for it again.
    let currentAt = 0;
    await eventually("a lease and a record", async () => {
      await Promise.all(Array.from({ length: 20 }, () => latchkey.keys.verifyKey({ key })));
      const { edge } = await explain({ key: new Secret(key) });
      currentAt = edge?.record?.currentAt ?? 0;
      return edge !== undefined && edge.leases.length > 0 && currentAt > 0;
    });
    assert.ok(Date.now() - currentAt < 2_000);
    const { edge } = await explain({ key });
    const { edges } = await service.ok("system.getStatus", {});
    assert.ok(edges.list.some(({ id, kind }: { id: string; kind: string }) => id === edge?.id && kind === "library"));
    assert.equal((await explain({ keyId })).edge?.record, undefined);
    const blind = await open();
    await blind.latchkey.keys.verifyKey({ key });
    const { code, edge: blinds } = (await blind.latchkey.keys.explainVerification({ key })).data;
    assert.deepEqual([code, blinds?.record, blinds?.leases], ["NOT_FOUND", undefined, []]);
  });

  it("charges limits of namespaces together, and leaves new ones to the service (rules 182 and 183)", async () => {
    const permissions = ["replicas.*.open", "ratelimits.*.limit", "ratelimits.*.create_namespace"];
    const { key } = await service.ok("rootKeys.createRootKey", { name: "limits", permissions });
    const { latchkey, asked } = await open({ rootKey: key });
    const input = { namespace: "mails", identifier: "one", limit: 30, duration: 3_600_000 };
    assert.equal((await latchkey.ratelimits.limit({ ...input, cost: 0 })).data.remaining, 30);
    assert.ok(asked.includes("ratelimits.limit"), "the first call creates the namespace");
    const before = asked.length;
    const answers = await Promise.all(Array.from({ length: 100 }, () => latchkey.ratelimits.limit(input)));
    assert.equal(answers.filter(({ data }) => data.success).length, 30);
    const several = await latchkey.ratelimits.multiLimit([input, { ...input, identifier: "two" }]);
    assert.deepEqual(
      several.data.limits.map(({ passed }) => passed),
      [false, true],
    );
    const charged = asked.slice(before).filter((operation) => operation === "replica.charge");
    assert.ok(charged.length <= 5 && !asked.slice(before).includes("ratelimits.limit"), asked.join());
    await assert.rejects(latchkey.ratelimits.limit({ ...input, limit: 0 }), { type: "application/invalid_input" });
    const weak = await open();
    await assert.rejects(weak.latchkey.ratelimits.limit(input), { status: 403 });
  });

  it("leaves to the service what it does not decide, and its errors are those of the service", async () => {
    const { latchkey, asked } = await open();
    const { key, keyId } = await createKey({ credits: { remaining: 10 }, allowedIps: ["127.0.0.1"] });
    const held = await latchkey.withHold({ key, credits: { cost: 4 } }, (hold) => hold.report({ credits: 3 }));
    assert.equal(held.valid, true);
    assert.equal((await latchkey.keys.verifyKey({ key }, { idempotencyKey: "one" })).data.credits, 6);
    // Without an address, it is that of this process, which only the service knows.
    assert.equal((await latchkey.keys.verifyKey({ key })).data.credits, 5);
    assert.equal((await latchkey.keys.verifyKey({ key, clientIp: "192.0.2.1" })).data.code, "FORBIDDEN");
    const wrong = [
      { key, permissions: "a AND" },
      { key: "" },
      { key, ratelimits: [{ name: "absent" }] },
      { key, tags: ["x".repeat(500)] },
    ];
    for (const input of wrong) await assert.rejects(latchkey.keys.verifyKey(input), LatchkeyError);
    assert.ok(asked.includes("keys.verifyKey"));
    const remote = new LocalLatchkey({ url: service.address, rootKey: ROOT_KEY });
    undo.push(() => remote.close());
    // Not ready: the service answers.
    assert.equal((await remote.keys.getKey({ keyId })).data.keyId, keyId);
    assert.equal((await remote.keys.verifyKey({ key, credits: { cost: 0 } })).data.valid, true);
  });

  it("is what every middleware takes", async () => {
    const { latchkey, asked } = await open();
    const { key, keyId } = await createKey();
    const app = express();
    app.use(verify({ latchkey, apiId }));
    app.get("/", ({ latchkey: found }, response) => void response.send(found?.keyId));
    const ask = async () => inject(app, { url: "/", headers: { authorization: `Bearer ${key}` } });
    assert.equal((await ask()).body, keyId);
    const before = asked.length;
    for (let i = 0; i < 10; i++) assert.equal((await ask()).statusCode, 200);
    assert.deepEqual(
      asked.slice(before).filter((operation) => operation !== "replica.report"),
      [],
    );
    let isNext = false;
    const [request, response] = [new IncomingMessage(new Socket()), {}];
    request.method = "GET";
    request.rawHeaders.push("Authorization", `Bearer ${key}`);
    verify({ latchkey, apiId })(request as never, response as never, () => {
      isNext = true;
    });
    assert(isNext, "a request with a known key had to wait");
    await service.ok("keys.deleteKey", { keyId });
    await eventually("the revocation", async () => (await ask()).statusCode === 401);
  });

  it("counts each verification once", async () => {
    const { latchkey } = await open();
    const { key, keyId } = await createKey();
    const start = Date.now() - 60_000;
    for (let i = 0; i < 30; i++) await latchkey.keys.verifyKey({ key });
    await latchkey.close();
    // The service answers now.
    await latchkey.keys.verifyKey({ key });
    const { data } = await latchkey.keys.verifyKey({ key });
    assert.equal(data.valid, true);
    await eventually("all counts", async () => {
      const { total } = await service.ok("analytics.getKeyStats", { keyId, start, end: Date.now() + 60_000 });
      assert.ok(total <= 32);
      return total === 32;
    });
  });

  it("knows no key without the service, unless it is told to", async () => {
    for (const staleMax of [0, 60_000]) {
      const states: LocalState[] = [];
      const { key } = await createKey();
      const { latchkey, network } = await open({ staleMax, onState: (state) => void states.push(state) });
      // Changes arrive in order. That the key was created is one of them, and would outdate its record in the outage.
      const later = await createKey();
      await latchkey.keys.verifyKey({ key: later.key });
      await service.ok("keys.deleteKey", { keyId: later.keyId });
      await eventually("both", async () => !(await latchkey.keys.verifyKey({ key: later.key })).data.valid);
      await latchkey.keys.verifyKey({ key });
      network.isCut = true;
      await eventually("the cut", () => states.includes("unreachable"));
      if (staleMax > 0) assert.equal((await latchkey.keys.verifyKey({ key })).data.valid, true);
      else
        await eventually("the end", () =>
          latchkey.keys.verifyKey({ key }).then(
            () => false,
            (error) => error instanceof LatchkeyError,
          ),
        );
      network.isCut = false;
      await eventually("the service", () => states.at(-1) === "current");
      assert.equal((await latchkey.keys.verifyKey({ key })).data.valid, true);
    }
  });

  it("decides nothing once its root key is deleted", async () => {
    const states: LocalState[] = [];
    const { key: other, rootKeyId } = await service.ok("rootKeys.createRootKey", {
      name: "to be deleted",
      permissions: ["replicas.*.open", "apis.*.verify_key"],
    });
    const { latchkey } = await open({ rootKey: other, onState: (state) => void states.push(state) });
    const { key } = await createKey();
    await latchkey.keys.verifyKey({ key });
    await service.ok("rootKeys.deleteRootKey", { rootKeyId });
    await eventually("the refusal", () => states.includes("refused"));
    await assert.rejects(latchkey.keys.verifyKey({ key }), { status: 401 });
  });

  it("says why it does not begin to decide, by default with a line", async (t) => {
    const lines: string[] = [];
    t.mock.method(console, "error", (line: string) => void lines.push(line));
    const states: LocalState[] = [];
    let isAway = true;
    const begin = (options: Partial<LocalLatchkeyOptions>) => {
      const latchkey = new LocalLatchkey({ url: service.address, rootKey: rootKey.key, ...options });
      undo.push(() => latchkey.close());
      return latchkey;
    };
    begin({ rootKey: `${rootKey.key}x` });
    const late = begin({
      fetch: (...call) => (isAway ? Promise.reject(new TypeError("away")) : fetch(...call)),
      onState: (state) => {
        states.push(state);
        throw new Error("of the hook");
      },
    });
    await eventually("both reasons", () => lines.length === 2);
    assert.deepEqual(states, ["unreachable"]);
    lines.sort();
    assert.match(lines[0]!, /^LocalLatchkey cannot decide \(refused\): .*root key/);
    assert.equal(lines[1], "of the hook");
    isAway = false;
    await late.ready();
    assert.deepEqual(states, ["unreachable", "current"]);
    assert.equal(lines.filter((line) => line.startsWith("LocalLatchkey")).length, 1);
  });

  it("decides no call with an option that does not exist", async () => {
    const { latchkey, asked } = await open({ rootKey: ROOT_KEY });
    const { key } = await createKey();
    await eventually("a decision here", async () => {
      const before = asked.length;
      return (await latchkey.keys.verifyKey({ key })).data.valid && asked.length === before;
    });
    const limit = { namespace: "n", identifier: "i", limit: 1, duration: 60_000 };
    const misspelled: object = { idempotencykey: "order-1" };
    const before = asked.length;
    for (const call of [
      latchkey.keys.verifyKey({ key }, misspelled),
      latchkey.keys.explainVerification({ key }, misspelled),
      latchkey.ratelimits.limit(limit, misspelled),
      latchkey.ratelimits.multiLimit([limit], misspelled),
    ]) {
      await assert.rejects(
        call,
        /^TypeError: There is no option `idempotencykey`\. The options are .*`idempotencyKey`/,
      );
    }
    assert.deepEqual(
      asked.slice(before).filter((operation) => operation !== "replica.report"),
      [],
    );
    assert.equal((await latchkey.keys.verifyKey({ key }, { retries: 0 })).data.valid, true);
    assert.equal((await latchkey.ratelimits.limit(limit, { retries: 0 })).data.success, true, "it was charged before");
  });

  it("says which option cannot be used", () => {
    const url = "http://127.0.0.1:3000";
    assert.throws(() => new LocalLatchkey({ url }), /A root key is missing/);
    for (const options of [{ staleMax: -1 }, { cacheBytes: 10 }, { name: "" }, { leases: "no" as never }]) {
      assert.throws(() => new LocalLatchkey({ url, rootKey: "r", ...options }), TypeError);
    }
    for (const [name, known] of [
      ["lease", "leases"],
      ["timeOut", "timeout"],
    ] as const) {
      const options = { url, rootKey: "r", [name]: 1 } as object;
      assert.throws(() => new LocalLatchkey(options), new RegExp(`no option \`${name}\`.*\`${known}\``));
    }
  });
});
