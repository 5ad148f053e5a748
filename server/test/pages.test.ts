/** Pages for readers: the OpenAPI document, and the pages about errors. dashboard-files.test.ts has those of the build. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { gunzipSync } from "node:zlib";
import inject from "light-my-request";
import { type ProblemCode, problems } from "../src/platform/rpc/problems.ts";
import { TestServer } from "./harness.ts";

const PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const PUBLIC_URL = "https://keys.example/api";

describe("pages", () => {
  const server = new TestServer();
  const published = new TestServer({ settings: { PUBLIC_URL } });
  before(async () => {
    await server.open();
    await published.open();
  });
  after(async () => {
    await server.close();
    await published.close();
  });

  const get = (url: string, accept: string = PAGE, headers: Record<string, string> = {}) =>
    inject(server.service.dispatch, { method: "GET", url, headers: { accept, ...headers } });

  it("serves the OpenAPI document", async () => {
    const { statusCode, headers, payload } = await get("/openapi.json");
    assert.equal(statusCode, 200);
    assert.equal(headers["content-type"], "application/json");
    assert.deepEqual(JSON.parse(payload).servers, [{ url: "/" }]);
    const elsewhere = await inject(published.service.dispatch, "/openapi.json");
    assert.deepEqual(elsewhere.json().servers, [{ url: PUBLIC_URL }]);
  });

  describe("/.well-known/security.txt", () => {
    it("does not exist without a contact", async () => {
      const { statusCode, payload } = await get("/.well-known/security.txt");
      assert.equal(statusCode, 404);
      assert.match(payload, /application\/not_found/);
    });

    it("names the contacts, and expires within a year (RFC 9116)", async (t) => {
      const contacts = ["mailto:security@keys.example", "https://keys.example/security", "tel:+49-30-1234567"];
      const settings = { SECURITY_CONTACT: contacts.join(", "), PUBLIC_URL };
      const named = await new TestServer({ settings }).open();
      t.after(() => named.close());
      const read = () => inject(named.service.dispatch, "/.well-known/security.txt");
      const { statusCode, headers, payload } = await read();
      assert.equal(statusCode, 200);
      assert.equal(headers["content-type"], "text/plain; charset=utf-8");
      assert.equal(headers["x-content-type-options"], "nosniff");
      const fields = payload
        .trimEnd()
        .split("\n")
        .map((line) => /^([A-Z][a-z]+): (\S+)$/.exec(line)!.slice(1));
      assert.deepEqual(
        fields.filter(([name]) => name === "Contact").map(([, value]) => value),
        contacts,
      );
      const [expires, ...more] = fields.filter(([name]) => name === "Expires").map(([, value]) => value);
      assert.deepEqual(more, []);
      assert.match(expires!, /^\d{4}-\d\d-\d\dT00:00:00Z$/);
      const days = (Date.parse(expires!) - named.clock.now()) / 86_400_000;
      assert(days > 30 && days < 366, `${days} days`);
      assert.deepEqual(fields.at(-1), ["Canonical", `${PUBLIC_URL}/.well-known/security.txt`]);
      named.clock.step(86_400_000);
      assert.notEqual((await read()).payload, payload);
    });

    it("takes only contacts that belong into it", async () => {
      const wrong = [
        "security@keys.example",
        "http://keys.example",
        "javascript:alert(1)",
        "mailto:",
        "https://",
        "call us",
      ];
      const injected = ["mailto:a@b.example\nContact: mailto:c@d.example", "https://keys.example/\r\nX: y"];
      const many = Array.from({ length: 6 }, (_, i) => `mailto:${i}@keys.example`).join(",");
      for (const SECURITY_CONTACT of [...wrong, ...injected, "mailto:a@b.example,", many]) {
        await assert.rejects(
          new TestServer({ settings: { SECURITY_CONTACT } }).open(),
          /LATCHKEY_SECURITY_CONTACT/,
          JSON.stringify(SECURITY_CONTACT),
        );
      }
    });
  });

  it("serves the OpenAPI document, compressed if the client accepts that", async () => {
    const plain = await get("/openapi.json");
    const compressed = await get("/openapi.json", "*/*", { "accept-encoding": "gzip" });
    assert.equal(compressed.headers["content-encoding"], "gzip");
    assert.equal(compressed.headers.vary, "accept-encoding");
    assert.equal(gunzipSync(compressed.rawPayload).toString(), plain.payload);
    const rejected = await get("/openapi.json", "*/*", { "accept-encoding": "gzip;q=0, br" });
    assert.equal(rejected.headers["content-encoding"], undefined);
  });

  it("has an icon", async () => {
    const { statusCode, headers, payload } = await get("/favicon.ico");
    assert.equal(statusCode, 200);
    assert.equal(headers["content-type"], "image/svg+xml");
    assert.match(payload, /^<svg /);
  });

  describe("errors", () => {
    for (const [code, { type, meaning, causes, remedy, status }] of Object.entries(problems)) {
      it(`have a page about ${code}, for people and for programs`, async () => {
        const page = await get(`/errors/${type}`);
        assert.equal(page.statusCode, 200);
        assert.equal(page.headers["content-type"], "text/html; charset=utf-8");
        assert.equal(page.headers.vary, "accept");
        assert.match(String(page.headers["content-security-policy"]), /^default-src 'none'/);
        const read = page.payload
          .replaceAll(/<\/?code>/g, "`")
          .replaceAll("&lt;", "<")
          .replaceAll("&gt;", ">");
        for (const sentence of [meaning, ...causes, ...remedy]) assert(read.includes(sentence), sentence);
        assert(causes.length > 0 && remedy.length > 0);

        const { body } = await server.request("GET", `/errors/${type}`, { headers: { accept: "application/json" } });
        assert.equal(body.data.type, `/errors/${type}`);
        assert.equal(body.data.status, status);
        assert.deepEqual(body.data.remedy, remedy);
      });
    }

    it("have a page that lists them all", async () => {
      const page = await get("/errors");
      for (const { type } of Object.values(problems)) assert(page.payload.includes(`href="/errors/${type}"`), type);
      const { body } = await server.request("GET", "/errors", { headers: { accept: "application/json" } });
      assert.equal(body.data.length, Object.keys(problems).length);
    });

    it("have a page at the address in the `type` of an error", async () => {
      const { type } = await server.rejected("keys.getKey", { keyId: "key_none" }, "key_not_found");
      assert.equal((await get(type)).statusCode, 200);
      const absolute = await published.rejected("keys.getKey", { keyId: "key_none" }, "key_not_found");
      assert.equal(absolute.type, `${PUBLIC_URL}/errors/${problems.key_not_found.type}`);
      const page = await inject(published.service.dispatch, `/errors/${problems.key_not_found.type}`);
      for (const [, address] of page.payload.matchAll(/href="(?!data:)([^"]*)"/g)) {
        assert(address!.startsWith(`${PUBLIC_URL}/`), address);
      }
    });

    it("answer 404 for an unknown code", async () => {
      const page = await get("/errors/data/nothing'x");
      assert.equal(page.statusCode, 404);
      assert.match(page.payload, /There is no such error/);
      assert.doesNotMatch(page.payload, /nothing/);
      // Percent-encoded.
      const encoded = await get("/errors/data/<script>");
      assert.equal(encoded.statusCode, 404);
      assert.doesNotMatch(encoded.payload, /<script/);
      const reply = await server.request("GET", "/errors/nothing", { headers: { accept: "application/json" } });
      assert.equal(reply.problem, "route_not_found" satisfies ProblemCode);
    });
  });

  it("answer GET and HEAD only", async () => {
    for (const path of ["/openapi.json", "/errors", `/errors/${problems.key_not_found.type}`]) {
      const reply = await server.request("POST", path);
      assert.equal(reply.problem, "method_not_allowed", path);
      assert.equal(reply.headers.allow, "GET", path);
      const head = await inject(server.service.dispatch, { method: "HEAD", url: path });
      assert.deepEqual([head.statusCode, head.payload], [200, ""], path);
    }
  });
});
