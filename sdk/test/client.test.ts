/** The client on its own: what it prints, sends, retries and bounds. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { inspect } from "node:util";
import { callOperation, connectionOf } from "../src/call.ts";
import { type AttemptEnd, Latchkey, LatchkeyError, type LatchkeyOptions, Secret, WebhookError } from "../src/index.ts";

const ROOT_KEY = "lk_root_7dK2mQx9";
const KEY = "prod_3kAqEg4u4qMxCGFAVMuGsb3cijGp";

interface Sent {
  url: string;
  headers: Headers;
  body: unknown;
}

/** A client whose requests get these answers, in turn; the last one again and again. */
function clientOf(answers: readonly (() => Response | Promise<Response>)[], options: LatchkeyOptions = {}) {
  const sent: Sent[] = [];
  const send: typeof fetch = async (url, init) => {
    sent.push({ url: String(url), headers: new Headers(init!.headers), body: JSON.parse(String(init!.body)) });
    return await answers[Math.min(sent.length, answers.length) - 1]!();
  };
  return { sent, latchkey: new Latchkey({ url: "http://service.test", rootKey: ROOT_KEY, fetch: send, ...options }) };
}

const success =
  (data: unknown, headers: Record<string, string> = {}, others: object = {}) =>
  () =>
    Response.json({ meta: { requestId: "req_1" }, data, ...others }, { headers });
const failure =
  (status: number, type: string, headers: Record<string, string> = {}) =>
  () =>
    Response.json(
      { meta: { requestId: "req_2" }, error: { type: `/errors/${type}`, detail: "Not so.", status, title: "No" } },
      { status, headers },
    );
const lost = () => Promise.reject(new TypeError("fetch failed"));

async function errorOf(call: Promise<unknown>): Promise<LatchkeyError> {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (reason) => reason,
  );
  assert(error instanceof LatchkeyError, inspect(error));
  return error;
}

async function listen(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("a secret", () => {
  const secret = new Secret(KEY);

  it("prints as [redacted] everywhere", () => {
    const printed = [
      String(secret),
      `${secret}`,
      ["", secret].join(""),
      JSON.stringify({ secret }),
      inspect(secret, { showHidden: true, depth: null }),
      inspect({ nested: [secret] }, { depth: null }),
      JSON.stringify(Object.entries(secret)),
    ];
    for (const text of printed) assert(!text.includes(KEY), text);
    assert.deepEqual(printed.slice(0, 4), ["[redacted]", "[redacted]", "[redacted]", '{"secret":"[redacted]"}']);
    assert.equal(secret.reveal(), KEY);
  });

  it("is what an operation returns once", async () => {
    const { latchkey } = clientOf([success({ keyId: "key_1", key: KEY })]);
    for (const { data } of [
      await latchkey.keys.createKey({ apiId: "api_1" }),
      await latchkey.keys.rerollKey({ keyId: "key_1", expiration: 0 }),
      await latchkey.rootKeys.createRootKey({ name: "a", permissions: ["*"] }),
      await latchkey.rootKeys.rerollRootKey({ rootKeyId: "a", expiration: 0 }),
      await latchkey.workspaces.createWorkspace({ name: "a" }),
    ]) {
      assert(!inspect(data).includes(KEY) && !JSON.stringify(data).includes(KEY));
      assert.equal(data.key.reveal(), KEY);
    }
  });

  it("is what a list returns for each recoverable key", async () => {
    const { latchkey } = clientOf([
      success([{ keyId: "a", plaintext: KEY }, { keyId: "b" }], {}, { pagination: { hasMore: false } }),
    ]);
    const { data } = await latchkey.apis.listKeys({ apiId: "api_1", decrypt: true });
    assert.deepEqual([data[0]?.plaintext?.reveal(), data[1]?.plaintext], [KEY, undefined]);
  });

  it("is revealed to the service as a member of an input, and not below", async () => {
    const { latchkey, sent } = clientOf([success({ valid: true, code: "VALID" })]);
    await latchkey.keys.verifyKey({ key: secret });
    await latchkey.keys.createKey({ apiId: "api_1", meta: { secret } });
    assert.deepEqual(
      sent.map(({ body }) => body),
      [{ key: KEY }, { apiId: "api_1", meta: { secret: "[redacted]" } }],
    );
  });

  it("hides the root key in the client and in its errors", async () => {
    const { latchkey } = clientOf([lost], { rootKey: new Secret(ROOT_KEY), retries: 0 });
    const error = await errorOf(latchkey.keys.verifyKey({ key: KEY }));
    for (const value of [latchkey, error]) {
      const printed = inspect(value, { depth: null, showHidden: true });
      assert(!printed.includes(ROOT_KEY) && !printed.includes(KEY), printed);
    }
    assert.throws(
      () => new Latchkey({ url: "http://service.test", rootKey: `${ROOT_KEY} \n x` }),
      (thrown: Error) =>
        thrown instanceof TypeError && thrown.message.includes("rootKey") && !thrown.message.includes(ROOT_KEY),
    );
  });
});

describe("the options", () => {
  it("come from the environment where they are omitted", async (t) => {
    const answered = { ...process.env };
    t.after(() => {
      process.env = answered;
    });
    process.env = {
      ...answered,
      LATCHKEY_URL: "http://environment.test/base/",
      LATCHKEY_ROOT_KEY: "lk_root_environment\n",
    };
    const { latchkey, sent } = clientOf([success([])], { url: undefined, rootKey: undefined });
    await latchkey.apis.getApi({ apiId: "a" });
    assert.equal(sent[0]!.url, "http://environment.test/base/v2/apis.getApi");
    assert.equal(sent[0]!.headers.get("authorization"), "Bearer lk_root_environment");
  });

  it("are rejected with the name of the option", () => {
    const options = { url: "http://service.test" };
    assert.throws(() => new Latchkey(), /TypeError: .*`url`.*LATCHKEY_URL/);
    assert.throws(
      () => new Latchkey({ url: "http://service.test", rootkey: ROOT_KEY } as object),
      /TypeError: There is no option `rootkey`\. The options are .*`rootKey`/,
    );
    for (const url of ["keys.example.com", "ftp://a.test", "http://user:password@a.test"]) {
      assert.throws(() => new Latchkey({ url }), /TypeError: .*`url`/);
    }
    for (const timeout of [0, 1.5, Number.NaN, 2 ** 31])
      assert.throws(() => new Latchkey({ ...options, timeout }), /`timeout`/);
    assert.throws(() => new Latchkey({ ...options, retries: 13 }), /`retries`/);
    assert.throws(() => new Latchkey({ ...options, answerBytesMax: 1_000 }), /`answerBytesMax`/);
    assert.throws(() => new Latchkey({ ...options, retryWaitMax: -1 }), /`retryWaitMax`/);
  });
});

describe("the options of a call", () => {
  const names = "`signal`, `timeout`, `retries`, `retryCharges`, `idempotencyKey`";

  it("are sent nowhere with one that does not exist", async () => {
    const { latchkey, sent } = clientOf([success([], {}, { pagination: { hasMore: false } })]);
    const misspelled: object = { retries: 0, timeOut: 100 };
    const message = `There is no option \`timeOut\`. The options are ${names}.`;
    for (const call of [
      latchkey.keys.createKey({ apiId: "api_1" }, misspelled),
      latchkey.apis.listApis(undefined, misspelled),
      latchkey.apis.listApis.all({}, misspelled).next(),
    ]) {
      await assert.rejects(call, { name: "TypeError", message });
    }
    // JavaScript lets pass what `map` adds.
    const listKeys = latchkey.apis.listKeys as (input: object, index: number) => Promise<unknown>;
    await assert.rejects(Promise.all([{ apiId: "api_1" }].map(listKeys)), TypeError);
    assert.equal(sent.length, 0);
  });

  it("can all be given, and be undefined", async () => {
    const { latchkey, sent } = clientOf([success([], {}, { pagination: { hasMore: false } })]);
    const { signal } = new AbortController();
    await latchkey.apis.listApis(
      {},
      { signal, timeout: 100, retries: 0, retryCharges: true, idempotencyKey: "order-1" },
    );
    await latchkey.apis.listApis({}, { signal: undefined, timeout: undefined });
    await latchkey.apis.listApis({}, undefined);
    await latchkey.apis.listApis({}, {});
    assert.equal(sent.length, 4);
  });
});

describe("an input that is not JSON", () => {
  it("rejects, and is not sent", async () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const { latchkey, sent } = clientOf([success({})]);
    for (const meta of [circular, { amount: 1n }]) {
      const call = latchkey.keys.createKey({ apiId: "api_1", meta });
      await assert.rejects(call, TypeError);
    }
    assert.equal(sent.length, 0);
  });
});

describe("a program with two copies of the package", () => {
  it("recognizes the classes of the other one", async () => {
    const copyOf = (file: string) => import(`../src/${file}.ts?copy`);
    const [secret, error, webhook] = await Promise.all(["secret", "error", "webhook"].map(copyOf));
    const members = { type: "aborted", operation: "a.b", detail: "" } as const;
    const pairs = [
      [secret.Secret, Secret, new secret.Secret(KEY), new Secret(KEY)],
      [error.LatchkeyError, LatchkeyError, new error.LatchkeyError(members), new LatchkeyError(members)],
      [webhook.WebhookError, WebhookError, new webhook.WebhookError(), new WebhookError()],
    ];
    for (const [other, own, otherInstance, ownInstance] of pairs) {
      assert.notEqual(other, own);
      assert(otherInstance instanceof own && ownInstance instanceof other);
      for (const value of [undefined, null, "text", {}, new Error("other")]) assert(!(value instanceof own));
      const Extended = class extends own {};
      assert(!(ownInstance instanceof Extended));
    }
    const { latchkey, sent } = clientOf([success({ valid: true })]);
    await latchkey.keys.verifyKey({ key: new secret.Secret(KEY) });
    assert.deepEqual(sent[0]!.body, { key: KEY });
  });
});

describe("an answer", () => {
  it("whose data is no object, or no list, is an error and never an answer", async () => {
    for (const data of [null, "text", 7, false]) {
      const { type, detail } = await errorOf(clientOf([success(data)]).latchkey.apis.getApi({ apiId: "a" }));
      assert.deepEqual([type, detail.includes("too old or too new")], ["invalid_answer", true]);
    }
    const { latchkey } = clientOf([success({}, {}, { pagination: { hasMore: false } })]);
    const { type } = await errorOf(latchkey.apis.listApis.all().next());
    assert.equal(type, "invalid_answer");
  });

  it("with errors that are none is an error all the same", async () => {
    const error = { type: "/errors/application/invalid_input", detail: "No.", errors: [null, { message: "a" }, 1] };
    const answer = () => Response.json({ meta: { requestId: "req_1" }, error }, { status: 400 });
    const { type, errors } = await errorOf(clientOf([answer]).latchkey.apis.listApis());
    assert.deepEqual([type, errors], ["application/invalid_input", [{ message: "a" }]]);
  });

  it("has the data, the request id and the limit of requests", async () => {
    const limits = { "RateLimit-Limit": "100", "RateLimit-Remaining": "99", "RateLimit-Reset": "30" };
    const { latchkey } = clientOf([success({ id: "api_1", name: "a" }, limits)]);
    assert.deepEqual(await latchkey.apis.getApi({ apiId: "api_1" }), {
      data: { id: "api_1", name: "a" },
      requestId: "req_1",
      rateLimit: { limit: 100, remaining: 99, reset: 30_000 },
    });
  });

  it("of another service is an error", async () => {
    for (const body of ["<html>", "null", "[]", '"data"', "{}", '{"data":{}}', '{"error":{"type":7}}']) {
      const { latchkey } = clientOf([() => new Response(body)]);
      const { type, status } = await errorOf(latchkey.apis.listApis());
      assert.deepEqual([type, status], ["invalid_answer", 200], body);
    }
  });

  it("without an end is not read to its end", async (t) => {
    let bytes = 0;
    const closed = Promise.withResolvers<void>();
    const url = await listen(t, (_, response) => {
      const piece = Buffer.alloc(2 ** 20, " ");
      const write = () => {
        bytes += piece.length;
        response.write(piece, () => response.destroyed || write());
      };
      response.on("close", () => closed.resolve());
      write();
    });
    const { type, detail } = await errorOf(new Latchkey({ url, timeout: 30_000 }).apis.listApis());
    assert.deepEqual([type, detail], ["invalid_answer", "The answer is longer than 16 MiB."]);
    await closed.promise;
    assert(bytes < 64 * 2 ** 20, `${bytes} bytes`);
  });

  it("that arrives slowly is a time-out", async (t) => {
    const url = await listen(t, (_, response) => {
      response.write("{");
    });
    const { type } = await errorOf(new Latchkey({ url, timeout: 100, retries: 0 }).apis.listApis());
    assert.equal(type, "timeout");
  });

  it("that redirects leads the root key nowhere", async (t) => {
    const reached: IncomingMessage[] = [];
    const other = await listen(t, (request, response: ServerResponse) => {
      reached.push(request);
      response.end("{}");
    });
    for (const status of [301, 302, 303, 307, 308]) {
      const url = await listen(t, (_, response) => response.writeHead(status, { location: `${other}/v2/` }).end());
      const error = await errorOf(new Latchkey({ url, rootKey: ROOT_KEY }).apis.listApis());
      assert.deepEqual([error.type, error.status], ["invalid_answer", status]);
      assert.match(error.detail, /redirects/);
    }
    assert.equal(reached.length, 0);
  });
});

describe("a retry", () => {
  it("has the Idempotency-Key of the first attempt, and every call has its own", async () => {
    const { latchkey, sent } = clientOf([lost, success({ keyId: "a", key: KEY })]);
    await latchkey.keys.createKey({ apiId: "a" });
    await latchkey.keys.createKey({ apiId: "a" });
    const keys = sent.map(({ headers }) => headers.get("idempotency-key"));
    assert.match(keys[0]!, /^[\x21-\x7e]{1,255}$/);
    assert.equal(keys[0], keys[1]);
    assert.notEqual(keys[1], keys[2]);
  });

  it("uses the Idempotency-Key of the caller", async () => {
    const { latchkey, sent } = clientOf([success({})]);
    await latchkey.keys.createKey({ apiId: "a" }, { idempotencyKey: "order-104217" });
    assert.equal(sent[0]!.headers.get("idempotency-key"), "order-104217");
  });

  it("is made only where it is safe", async () => {
    const cases: [
      attempts: number,
      (latchkey: Latchkey) => Promise<unknown>,
      answer: () => Response | Promise<Response>,
    ][] = [
      [3, (latchkey) => latchkey.apis.listApis(), lost],
      [3, (latchkey) => latchkey.keys.verifyKey({ key: "a" }, { retryCharges: true }), lost],
      [3, (latchkey) => latchkey.keys.verifyKey({ key: "a" }, { idempotencyKey: "a" }), lost],
      [1, (latchkey) => latchkey.keys.verifyKey({ key: "a" }), lost],
      [3, (latchkey) => latchkey.keys.createKey({ apiId: "a" }), failure(503, "application/service_unavailable")],
      [3, (latchkey) => latchkey.apis.listApis(), () => new Response("<html>", { status: 502 })],
      [1, (latchkey) => latchkey.keys.deleteKey({ keyId: "a" }), lost],
      [1, (latchkey) => latchkey.keys.deleteKey({ keyId: "a" }), failure(503, "application/service_unavailable")],
      [1, (latchkey) => latchkey.keys.deleteKey({ keyId: "a" }, { idempotencyKey: "a" }), lost],
      // A repetition has the answer of the first.
      [3, (latchkey) => latchkey.holds.settleHold({ holdId: "a", credits: 1 }), lost],
      [3, (latchkey) => latchkey.holds.releaseHold({ holdId: "a" }), failure(503, "application/service_unavailable")],
      [3, (latchkey) => latchkey.holds.extendHold({ holdId: "a", ttl: 1000 }), lost],
      // Nothing had an effect yet.
      [
        3,
        (latchkey) => latchkey.keys.deleteKey({ keyId: "a" }),
        failure(429, "user/too_many_requests/workspace_rate_limited"),
      ],
      [1, (latchkey) => latchkey.keys.verifyKey({ key: "a" }), failure(400, "application/invalid_input")],
      [1, (latchkey) => latchkey.keys.getKey({ keyId: "a" }), failure(404, "data/key_not_found")],
      [1, (latchkey) => latchkey.keys.createKey({ apiId: "a" }), failure(409, "application/idempotency_in_progress")],
      [1, (latchkey) => latchkey.apis.listApis(), failure(500, "application/unexpected_error")],
      [1, (latchkey) => latchkey.keys.verifyKey({ key: "a" }, { retries: 0, retryCharges: true }), lost],
    ];
    for (const [i, [attempts, call, answer]] of cases.entries()) {
      const { latchkey, sent } = clientOf([answer]);
      await errorOf(call(latchkey));
      assert.equal(sent.length, attempts, `case ${i}`);
    }
  });

  it("waits while the first attempt is still being executed", async () => {
    const { latchkey, sent } = clientOf([
      lost,
      failure(409, "application/idempotency_in_progress"),
      success({ keyId: "a", key: KEY }),
    ]);
    assert.equal((await latchkey.keys.createKey({ apiId: "a" })).data.keyId, "a");
    assert.equal(sent.length, 3);
  });

  it("waits for Retry-After, up to a maximum", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const busy = failure(503, "application/service_unavailable", { "Retry-After": "4" });
    const ends: AttemptEnd[] = [];
    const options = {
      onResponse: (end: AttemptEnd) => {
        ends.push(end);
        const { retryIn } = end;
        if (retryIn !== undefined) setImmediate(() => t.mock.timers.tick(retryIn));
      },
    };
    const { latchkey } = clientOf([busy, success([])], options);
    await latchkey.apis.listApis();
    assert(ends[0]!.retryIn! >= 4_050 && ends[0]!.retryIn! <= 4_100, `${ends[0]!.retryIn}`);
    assert.equal(ends[1]!.retryIn, undefined);

    const impatient = clientOf([busy, success([])], { ...options, retryWaitMax: 3_999 });
    const { retryAfter, type, requestId } = await errorOf(impatient.latchkey.apis.listApis());
    assert.deepEqual([retryAfter, type, requestId], [4_000, "application/service_unavailable", "req_2"]);
    assert.equal(impatient.sent.length, 1);
  });
});

describe("an answer", () => {
  it("is read up to a bound", async () => {
    const large = success({ text: "a".repeat(2 ** 20) });
    await clientOf([large]).latchkey.apis.listApis();
    const { type, detail } = await errorOf(clientOf([large], { answerBytesMax: 2 ** 20 }).latchkey.apis.listApis());
    assert.deepEqual([type, detail], ["invalid_answer", "The answer is longer than 1 MiB."]);
  });
});

describe("a signal", () => {
  it("ends a call before, during and between its attempts", async () => {
    const reason = new Error("The user left.");
    const controller = new AbortController();
    const silent: typeof fetch = (_, init) =>
      new Promise((_, reject) => {
        init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason));
        controller.abort(reason);
      });
    const during = clientOf([], { fetch: silent });
    const options = { signal: controller.signal };
    const failed = clientOf([lost]);
    for (const call of [during.latchkey.apis.listApis({}, options), failed.latchkey.apis.listApis({}, options)]) {
      const { type, cause } = await errorOf(call);
      assert.deepEqual([type, cause], ["aborted", reason]);
    }
    assert.equal(failed.sent.length, 0);

    const between = new AbortController();
    const { latchkey, sent } = clientOf([lost], { onResponse: () => between.abort(reason) });
    assert.equal((await errorOf(latchkey.apis.listApis({}, { signal: between.signal }))).type, "aborted");
    assert.equal(sent.length, 1);
  });
});

describe("a call without a client", () => {
  it("sends the text of its body, to the options of its connection alone", async (t) => {
    process.env.LATCHKEY_ROOT_KEY = ROOT_KEY;
    t.after(() => delete process.env.LATCHKEY_ROOT_KEY);
    const requests: RequestInit[] = [];
    const send: typeof fetch = async (_, init) => {
      requests.push(init!);
      return success({})();
    };
    const connection = connectionOf({ url: "http://service.test", fetch: send });
    const answers: unknown[] = [];
    const keep = (answer: unknown) => answers.push(answer);
    await callOperation(connection, "keys.newVerb", {}, '{"a":1,"a":9007199254740993}', {}, keep);
    assert.equal(JSON.parse((answers[0] as { text: string }).text).meta.requestId, "req_1");
    assert.equal(requests[0]!.body, '{"a":1,"a":9007199254740993}');
    assert.equal(new Headers(requests[0]!.headers).get("authorization"), null);
    assert.throws(() => connectionOf({}), /`url`/);
  });
});

describe("the hooks", () => {
  it("see the headers of answers, and no secret", async () => {
    const ends: AttemptEnd[] = [];
    const denied = failure(403, "authorization/forbidden", { "X-Proxy": "a" });
    const answers = [lost, denied, success({ keyId: "a", key: KEY })];
    const { latchkey } = clientOf(answers, { onResponse: (end) => void ends.push(end) });
    await errorOf(latchkey.apis.listApis());
    await latchkey.keys.createKey({ apiId: "a" });
    assert.deepEqual(
      ends.map(({ status, headers }) => [status, headers?.get("x-proxy")]),
      [
        [undefined, undefined],
        [403, "a"],
        [200, null],
      ],
    );
    const printed = inspect(ends, { depth: Infinity, showHidden: true });
    assert(printed.includes("keys.createKey") && !printed.includes(KEY));
  });

  it("see every attempt without the root key, and can add headers", async () => {
    const ends: AttemptEnd[] = [];
    const seen: Headers[] = [];
    const { latchkey, sent } = clientOf([lost, success({ valid: true })], {
      retryCharges: true,
      onRequest: ({ headers, operation, attempt }) => {
        seen.push(headers);
        assert.equal(headers.has("authorization"), false);
        headers.set("traceparent", `${operation} ${attempt}`);
        headers.set("authorization", "Bearer other");
      },
      onResponse: (end) => void ends.push(end),
    });
    await latchkey.keys.verifyKey({ key: KEY });
    assert.deepEqual(
      sent.map(({ headers }) => headers.get("traceparent")),
      ["keys.verifyKey 1", "keys.verifyKey 2"],
    );
    assert.equal(sent[0]!.headers.get("authorization"), `Bearer ${ROOT_KEY}`);
    assert(!inspect(seen).includes(ROOT_KEY));
    assert.deepEqual(
      ends.map(({ attempt, status, requestId, error }) => [attempt, status, requestId, error?.type]),
      [
        [1, undefined, undefined, "network_error"],
        [2, 200, "req_1", undefined],
      ],
    );
    assert(ends[0]!.retryIn! >= 50 && ends[0]!.retryIn! <= 100);
  });
});

describe("a list", () => {
  it("does not repeat one page for ever", async () => {
    const { latchkey, sent } = clientOf([success([1], {}, { pagination: { hasMore: true, cursor: "a" } })]);
    const entries = latchkey.apis.listApis.all();
    assert.equal((await entries.next()).done, false);
    assert.equal((await entries.next()).done, false);
    const { type } = await errorOf(entries.next());
    assert.equal(type, "invalid_answer");
    assert.equal(sent.length, 2);
  });
});
