import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { bundleClient } from "./bundle.ts";

/** Bytes of the whole client, minified and compressed. */
const BYTES_MAX = 10_000;

describe("the client as one file", async () => {
  const code = await bundleClient();

  it(`has less than ${BYTES_MAX / 1_000} kB`, (t) => {
    const bytes = gzipSync(code).byteLength;
    t.diagnostic(`${bytes} bytes`);
    assert(bytes < BYTES_MAX, `${bytes} bytes`);
  });

  it("imports nothing, so it runs in Bun, Deno and Workers", () => {
    assert.doesNotMatch(code, /\bimport\b|\brequire\(/);
  });
});
