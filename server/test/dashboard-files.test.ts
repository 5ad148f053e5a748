/** The files of the dashboard, of the documents and of the reference as the service gives them: built once. */
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
/** The same for a page of the documents or the reference, without images. Its HTML can be read before the rest is there. */
const PAGE_LOAD_MAX = 60_000;
const BUILD_MAX_MS = 15_000;

describe("the dashboard", () => {
  const folder = makeFolder({ after });
  const server = new TestServer({ dashboardFolder: folder });
  const without = new TestServer({ dashboardFolder: folder, settings: { DASHBOARD: "off" } });
  let buildMs: number;
  before(async () => {
    const startedAt = performance.now();
    execFileSync(process.execPath, [builder, folder], { env: { ...process.env, NODE_ENV: "production" } });
    buildMs = performance.now() - startedAt;
    writeFileSync(join(folder, ".fingerprint"), "secret");
    await server.open();
    await without.open();
  });
  after(async () => {
    await server.close();
    await without.close();
  });

  const get = (url: string, headers: Record<string, string> = {}, method: "GET" | "HEAD" = "GET") =>
    inject(server.service.dispatch, { method, url, headers: { accept: PAGE, ...headers } });
  const readBuilt = (name: string) => gunzipSync(readFileSync(join(folder, `${name}.gz`)));
  const readIndex = () => readBuilt("index.html").toString();
  const assets = () =>
    readdirSync(join(folder, "assets"))
      .filter((name) => name.endsWith(".js.gz"))
      .map((name) => name.replace(/\.gz$/, ""));

  it("is built in time", (t) => {
    t.diagnostic(`${Math.round(buildMs)} ms`);
    // Twice the time that a start may take: tests share the machine.
    assert(buildMs < 2 * BUILD_MAX_MS * busyness(), `${buildMs} ms`);
  });

  it("is at /, and at the address of each of its pages", async () => {
    const index = readIndex();
    for (const url of ["/", "/apis", "/apis/api_123/keys/key_1", "/analytics?range=7d", "/root-keys/", "/audit"]) {
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

  it("is at the address of every route, and answers 404 at that of a page that does not exist", async () => {
    const index = readIndex();
    const routes = readFileSync(new URL("../../dashboard/src/routes.tsx", import.meta.url), "utf8");
    const paths = [...routes.matchAll(/^ {2}path: "(.*)",$/gm)].map(([, path]) => path!.replaceAll(/\$\w+/g, "a_1"));
    assert(paths.length > 15);
    for (const path of paths) assert.equal((await get(path)).statusCode, 200, path);
    const etag = String((await get("/")).headers.etag);
    for (const url of ["/nothing", "/apis/api_123/keys", "/apis/a/b/c/d", "/sign-in/x", "/pages", "/APIS"]) {
      for (const known of [{}, { "if-none-match": etag }]) {
        const { statusCode, payload } = await get(url, known);
        assert.deepEqual([statusCode, payload], [404, index], url);
      }
    }
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
      "/docs/nothing",
      "/docs/limits.html",
      "/docs/limits/",
      "/docs/images/none.png",
      "/docs/404",
      "/reference/nothing",
      "/reference/keys",
      "/llms.txt.br",
    ];
    missing.push(
      "/pages.json",
      "/health",
      "/.fingerprint",
      "/assets",
      "/index.html.br",
      "/a/b/c/d/e/f/g",
      "/%00",
      "/apis/a b",
    );
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
    const index = readIndex();
    for (const up of ["..", "%2e%2e", "..%2f..", "....", "assets/..", "assets%2f..%2f..", "docs/..", "docs/%2e%2e"]) {
      for (const url of [`/${up}/package.json`, `/assets/${up}/${up}/package.json`, `/${up}/${up}/etc/passwd`]) {
        const { statusCode, payload } = await get(url);
        // Some clients remove the dots: what is left can be the address of a page.
        assert(statusCode >= 400 || payload === index, `${url}: ${statusCode} ${payload.slice(0, 100)}`);
      }
    }
  });

  it("contains texts compressed only", () => {
    const names = readdirSync(folder, { recursive: true }).map(String);
    const plain = names.filter((name) => /\.(?:js|css|html|json|md|svg|txt)$/.test(name));
    assert.deepEqual(plain.sort(), ["icon.svg", "pages.json"]);
    assert.deepEqual(
      names.filter((name) => name.endsWith(".br") && !names.includes(name.replace(/br$/, "gz"))),
      [],
    );
  });

  it("has scripts that browsers keep, compressed at the build", async () => {
    for (const name of assets()) {
      const plain = readBuilt(`assets/${name}`);
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

  describe("with its pages", () => {
    const MARKDOWN = { accept: "text/markdown, text/html;q=0.5" };
    const read = (name: string) => readBuilt(name).toString();

    it("has the documents and the reference, at addresses without a slash", async () => {
      for (const [url, name] of [
        ["/docs", "docs/index.html"],
        ["/docs/limits", "docs/limits.html"],
        ["/docs/limits?q=1", "docs/limits.html"],
        ["/reference", "reference/index.html"],
        ["/reference/keys.verifyKey", "reference/keys.verifyKey.html"],
      ] as const) {
        const { statusCode, headers, payload } = await get(url);
        assert.deepEqual([statusCode, headers["content-type"]], [200, "text/html; charset=utf-8"], url);
        assert.equal(payload, read(name), url);
        assert.equal(headers["cache-control"], "no-cache");
        assert.doesNotMatch(String(headers["content-security-policy"]), /unsafe|\*|https?:/);
        assert.equal((await get(url, {}, "HEAD")).statusCode, 200);
      }
      for (const folder of ["docs", "reference"]) {
        const { statusCode, headers } = await get(`/${folder}/`);
        assert.equal(statusCode, 308);
        // Relative, for a service under a path of a proxy.
        const location = new URL(String(headers.location), `https://keys.example/api/${folder}/`);
        assert.equal(location.pathname, `/api/${folder}`);
      }
    });

    it("has each document as Markdown, at its address with .md and on request", async () => {
      for (const [url, file] of [
        ["/docs/limits", "limits.md"],
        ["/docs", "README.md"],
        ["/docs/typescript-client", "typescript-client.md"],
      ] as const) {
        const text = read(`docs/${file}`);
        const own = await get(`/docs/${file}`);
        assert.deepEqual([own.payload, own.headers["content-type"]], [text, "text/markdown; charset=utf-8"]);
        const negotiated = await get(url, MARKDOWN);
        assert.deepEqual([negotiated.payload, negotiated.headers.vary], [text, "accept, accept-encoding"]);
        assert.notEqual(negotiated.headers.etag, (await get(url)).headers.etag);
      }
      const index = await get("/llms.txt", { accept: "*/*" });
      assert.equal(index.headers["content-type"], "text/plain; charset=utf-8");
      for (const [, path] of index.payload.matchAll(/\]\(([^)]*)\)/g)) {
        assert.equal((await get(`/${path}`, { accept: "*/*" })).statusCode, 200, path);
      }
    });

    it("has their images, which load beside them", async () => {
      const [image] = /docs\/images\/[\w-]+\.png/.exec((await get("/docs/dashboard")).payload)!;
      const { rawPayload, headers } = await get(`/${image}`, { accept: "image/*" });
      assert.equal(headers["content-type"], "image/png");
      assert.deepEqual(rawPayload, readFileSync(join(folder, image)));
    });

    it("answers 404 for other addresses: a page to a reader, a problem to a program", async () => {
      const page = await get("/docs/no-such-guide");
      assert.equal(page.statusCode, 404);
      assert.match(page.payload, /<h1[^>]*>There is no such page/);
      assert.equal(page.headers.etag, undefined);
      assert.equal((await get("/docs/no-such-guide", { "if-none-match": "*" })).statusCode, 404);
      assert.doesNotMatch((await get("/docs/%3Cscript%3E")).payload, /&lt;script&gt;|%3Cscript/);
      for (const url of ["/docs/none", "/docs/a/b", "/reference/keys.verifykey"]) {
        const reply = await server.request("GET", url, { headers: { accept: "application/json" } });
        assert.equal(reply.problem, "route_not_found", url);
      }
      const post = await inject(server.service.dispatch, { method: "POST", url: "/docs/limits" });
      assert.equal(post.statusCode, 405);
    });

    it("keeps them without the dashboard", async () => {
      const open = (url: string) => inject(without.service.dispatch, { method: "GET", url, headers: { accept: PAGE } });
      const { statusCode, payload } = await open("/docs/limits");
      assert.equal(statusCode, 200);
      for (const [, path] of payload.matchAll(/ (?:src|href)="\.\.\/((?:assets\/|icon)[^"]*)"/g)) {
        assert.equal((await open(`/${path}`)).statusCode, 200, path);
      }
      for (const url of ["/apis", "/index.html"]) assert.equal((await open(url)).statusCode, 404, url);
    });

    it("leads from / to them without the dashboard, where each page has a link to it", async () => {
      for (const method of ["GET", "HEAD"] as const) {
        const { statusCode, headers } = await inject(without.service.dispatch, { method, url: "/" });
        assert.equal(statusCode, 302);
        // Relative, for a service under a path of a proxy.
        const location = new URL(String(headers.location), "https://keys.example/api/");
        assert.equal(location.pathname, "/api/docs");
      }
      assert.equal((await inject(without.service.dispatch, { method: "POST", url: "/" })).statusCode, 405);
    });

    it("answers at the same time with the same content, in each coding", async () => {
      const [first, second] = await Promise.all([get("/docs/operating"), get("/docs/operating")]);
      assert.deepEqual(first.rawPayload, second.rawPayload);
      assert.equal(first.headers.etag, second.headers.etag);
      const compressed = await get("/docs/operating", { "accept-encoding": "br" });
      assert.equal(compressed.headers["content-encoding"], "br");
      assert.deepEqual(brotliDecompressSync(compressed.rawPayload), first.rawPayload);
    });

    it(`loads less than ${PAGE_LOAD_MAX / 1_000} kB for a page`, async (t) => {
      for (const url of ["/docs/limits", "/docs/operating", "/reference", "/reference/keys.explainVerification"]) {
        const { rawPayload, payload } = await get(url, { "accept-encoding": "br" });
        let bytes = rawPayload.length;
        const html = payload.startsWith("<!doctype") ? payload : brotliDecompressSync(rawPayload).toString();
        const needed = new Set(
          [...html.matchAll(/(?:src|href)="(?:\.\.\/)?(assets\/[^"]*)"/g)].map(([, path]) => path!),
        );
        for (const path of needed) bytes += (await get(`/${path}`, { "accept-encoding": "br" })).rawPayload.length;
        t.diagnostic(`${url}: ${bytes} bytes in ${needed.size + 1} files`);
        assert(needed.size >= 3 && bytes < PAGE_LOAD_MAX, `${url}: ${bytes} bytes`);
      }
    });
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
