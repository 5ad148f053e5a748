/** The files of the dashboard as the service gives them: built once, and read at the start. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import inject from "light-my-request";
import { problems } from "../src/platform/rpc/problems.ts";
import { busyness } from "./busyness.ts";
import { TestServer } from "./harness.ts";
import { makeFolder } from "./process.ts";

const PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const builder = fileURLToPath(new URL("../build/build-dashboard.js", import.meta.url));

/** Bytes that a browser loads before the first page is shown, compressed. */
const FIRST_LOAD_MAX = 200_000;
const BUILD_MAX_MS = 15_000;

describe("the dashboard", () => {
  const folder = makeFolder({ after });
  const server = new TestServer({ dashboardFolder: folder });
  let buildMs: number;
  before(async () => {
    const startedAt = performance.now();
    execFileSync(process.execPath, [builder, folder], { env: { ...process.env, NODE_ENV: "production" } });
    buildMs = performance.now() - startedAt;
    writeFileSync(join(folder, ".fingerprint"), "secret");
    await server.open();
  });
  after(() => server.close());

  const get = (url: string, headers: Record<string, string> = {}, method: "GET" | "HEAD" = "GET") =>
    inject(server.service.dispatch, { method, url, headers: { accept: PAGE, ...headers } });
  const assets = () => readdirSync(join(folder, "assets")).filter((name) => name.endsWith(".js"));

  it("is built in time", (t) => {
    t.diagnostic(`${Math.round(buildMs)} ms`);
    // Twice the time that a start may take: tests share the machine.
    assert(buildMs < 2 * BUILD_MAX_MS * busyness(), `${buildMs} ms`);
  });

  it("is at /, and at the address of each of its pages", async () => {
    const index = readFileSync(join(folder, "index.html"), "utf8");
    for (const url of ["/", "/apis", "/apis/api_123/keys", "/analytics?range=7d", "/root-keys/", "/audit"]) {
      const { statusCode, headers, payload } = await get(url);
      assert.deepEqual([statusCode, payload], [200, index], url);
      assert.equal(headers["content-type"], "text/html; charset=utf-8");
      assert.equal(headers["cache-control"], "no-cache");
      const policy = String(headers["content-security-policy"]);
      for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]) {
        assert(policy.split("; ").includes(rule), policy);
      }
      assert.doesNotMatch(policy, /unsafe|\*|https?:/);
      assert.equal(headers["x-frame-options"], "DENY");
      assert.equal(headers["x-content-type-options"], "nosniff");
      assert.equal(headers["referrer-policy"], "no-referrer");
    }
    assert.doesNotMatch(index, /<script(?![^>]*\bsrc=)|<style|\son\w+=|style=|https?:/);
  });

  it("is not where something else is, or nothing", async () => {
    const missing = [
      "/assets/none.js",
      "/apis.html",
      "/v2",
      "/v2/nothing",
      "/dashboard",
      "/dashboard/nothing",
      "/errors/x",
    ];
    missing.push("/health", "/.fingerprint", "/assets", "/index.html.br", "/a/b/c/d/e/f/g", "/%00", "/apis/a b");
    for (const url of missing) assert.notEqual((await get(url)).statusCode, 200, url);
    // A program that has a wrong path gets an error, not a page.
    assert.equal((await get("/apis", { accept: "application/json" })).statusCode, 404);
    assert.equal((await get("/v2/apis.createApi")).statusCode, 405);
    const post = (url: string) => inject(server.service.dispatch, { method: "POST", url });
    for (const url of ["/", `/assets/${assets()[0]}`, `/errors/${problems.key_not_found.type}`]) {
      assert.equal((await post(url)).statusCode, 405, url);
    }
    assert.equal((await get("/dashboard/api/v2/keys.getKey")).statusCode, 405);
    for (const url of ["/assets/none.js", "/errors/none", "/v2/none", "/dashboard/api/v2/none"]) {
      assert.equal((await post(url)).statusCode, 404, url);
    }
  });

  it("gives no file outside of its folder", async () => {
    const index = readFileSync(join(folder, "index.html"), "utf8");
    for (const up of ["..", "%2e%2e", "..%2f..", "....", "assets/..", "assets%2f..%2f.."]) {
      for (const url of [`/${up}/package.json`, `/assets/${up}/${up}/package.json`, `/${up}/${up}/etc/passwd`]) {
        const { statusCode, payload } = await get(url);
        // Some clients remove the dots: what is left can be the address of a page.
        assert(statusCode >= 400 || payload === index, `${url}: ${statusCode} ${payload.slice(0, 100)}`);
      }
    }
  });

  it("has scripts that browsers keep, compressed at the build", async () => {
    for (const name of assets()) {
      const plain = readFileSync(join(folder, "assets", name));
      const given = await get(`/assets/${name}`);
      assert.deepEqual(given.rawPayload, plain);
      assert.equal(given.headers["content-type"], "text/javascript; charset=utf-8");
      assert.equal(given.headers["cache-control"], "public, max-age=31536000, immutable");
      assert.equal(given.headers.vary, "accept-encoding");
      for (const [header, coding, decode] of [
        ["gzip, deflate, br", "br", brotliDecompressSync],
        ["gzip", "gzip", gunzipSync],
      ] as const) {
        const compressed = await get(`/assets/${name}`, { "accept-encoding": header });
        assert.equal(compressed.headers["content-encoding"], coding);
        assert.deepEqual(decode(compressed.rawPayload), plain);
      }
    }
  });

  it("answers HEAD, and a browser that has the present page", async () => {
    const { headers } = await get("/");
    const head = await get("/", {}, "HEAD");
    assert.deepEqual([head.statusCode, head.payload, head.headers.etag], [200, "", headers.etag]);
    assert.equal(head.headers["content-length"], headers["content-length"]);
    const etag = String(headers.etag);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await get("/", { "if-none-match": known });
      assert.deepEqual([again.statusCode, again.payload], [304, ""]);
    }
    assert.equal((await get("/", { "if-none-match": '"other"' })).statusCode, 200);
    assert.equal((await get("/apis", {}, "HEAD")).statusCode, 200);
  });

  it(`loads less than ${FIRST_LOAD_MAX / 1_000} kB before its first page`, async (t) => {
    const { payload } = await get("/");
    const needed = [...payload.matchAll(/(?:src|href)="(\/[^"]*)"/g)].map(([, url]) => url!);
    let bytes = 0;
    for (const url of ["/", ...needed.filter((url) => url !== "/reference")]) {
      const { rawPayload, statusCode } = await get(url, { "accept-encoding": "br, gzip" });
      assert.equal(statusCode, 200, url);
      bytes += rawPayload.length;
    }
    t.diagnostic(`${bytes} bytes in ${needed.length + 1} files`);
    assert(bytes < FIRST_LOAD_MAX, `${bytes} bytes`);
  });
});

describe("a service without the files of the dashboard", () => {
  it("says so, and answers 404 at /", async (t) => {
    const server = await new TestServer({ dashboardFolder: makeFolder(t) }).open();
    t.after(() => server.close());
    assert.match(server.logged.map(({ message }) => message).join("\n"), /dashboard is not built.*npm run build/);
    const reply = await server.request("GET", "/", { headers: { accept: PAGE } });
    assert.equal(reply.problem, "route_not_found");
  });
});
