import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { bundleEntry } from "./bundle.ts";

/**
 * Bytes of each entry point with all that it imports of the package, minified and compressed. Each has the name of every operation,
 * so it grows with the API.
 */
const BYTES_MAX: Record<string, number> = {
  index: 10_000,
  // With the engine, its leases, and the checks of answers.
  local: 43_000,
  hono: 11_700,
  express: 11_700,
  fastify: 11_700,
  next: 11_700,
  node: 11_700,
  fetch: 11_700,
  element: 20_000,
  react: 20_000,
};

const NODE = ["node:crypto", "node:net", "node:zlib"];

const { "./package.json": _, ...exports } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
).exports;

it("every entry point has a bound", () => {
  const files = Object.values<{ import: { default: string } }>(exports).map((forms) => forms.import.default);
  assert.deepEqual(
    files,
    Object.keys(BYTES_MAX).map((entry) => `./dist/${entry}.js`),
  );
});

for (const [entry, bytesMax] of Object.entries(BYTES_MAX)) {
  describe(`${entry} as one file`, async () => {
    const code = await bundleEntry(entry);

    it(`has less than ${bytesMax / 1_000} kB`, (t) => {
      const bytes = gzipSync(code).byteLength;
      t.diagnostic(`${bytes} bytes`);
      assert(bytes < bytesMax, `${bytes} bytes`);
    });

    it("imports nothing but React, the route of Hono, and what every runtime of servers has", () => {
      const imported = [...code.matchAll(/\bimport\b[^;]*?["']([^"']+)["']|\brequire\(/g)].map(([, name]) => name);
      const frameworks: Record<string, string[]> = { hono: ["hono/route"], react: ["react"], local: NODE };
      assert.deepEqual(imported, frameworks[entry] ?? []);
    });
  });
}

it("the middleware needs only what Bun, Deno and Workers have too", async () => {
  const answer = { meta: { requestId: "req_1" }, data: { valid: true, code: "VALID", keyId: "key_1", apiId: "api_1" } };
  const web = { AbortController, Headers, Request, Response, TextDecoder, URL, clearTimeout, performance, setTimeout };
  const context = { ...web, fetch: async () => Response.json(answer) };
  const text = await runInNewContext(
    `${await bundleEntry("fetch", "iife")};
    sdk.verify({ latchkey: { url: "http://service.test" }, apiId: "api_1" }, (_, { keyId }) => new Response(keyId))(
      new Request("http://api.test", { headers: { Authorization: "Bearer key" } }),
    ).then((response) => response.text());`,
    context,
  );
  assert.equal(text, "key_1");
});
