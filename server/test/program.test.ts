import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeFolder, run } from "./process.ts";

describe("a program that a test starts", () => {
  it("is the bundle, and the sources if a preloaded module may change modules", async (t) => {
    const directory = makeFolder(t);
    const bundled = await run(["serve", "--port", "none"], { directory });
    const code = "process.once('exit', () => console.error(Object.keys(process.env).includes('TESTED_BUNDLE')))";
    const environment = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(code)}` };
    const preloaded = await run(["serve", "--port", "none"], { directory, environment });
    assert.equal(process.env.TESTED_BUNDLE !== undefined, process.env.NODE_V8_COVERAGE === undefined);
    assert.equal(preloaded.stderr, `${bundled.stderr}false\n`);
    assert.match(bundled.stderr, /LATCHKEY_PORT=none/);
  });
});
