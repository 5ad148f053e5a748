import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { makeFolder, Program } from "./process.ts";

const module = new URL("file-group.ts", import.meta.url).href;

/** Runs these files, by name, in one process. */
async function runGroup(t: Parameters<typeof makeFolder>[0], sources: Record<string, string>, idleTimeout?: number) {
  const directory = makeFolder(t);
  const files = Object.entries(sources).map(([name, source]) => {
    const path = join(directory, name);
    writeFileSync(path, `import { after, before, describe, it } from "node:test";\n${source}`);
    return { name, url: pathToFileURL(path).href };
  });
  const start = join(directory, "start.mjs");
  writeFileSync(
    start,
    `import { describeFiles } from "${module}";\ndescribeFiles(${JSON.stringify(files)}, ${idleTimeout});\n`,
  );
  const ran = new Program(["--test-reporter=tap", start], { directory });
  const { code } = await ran.ended;
  const lines = ran.stdout.split("\n").map((line) => line.trim());
  return {
    code,
    errors: ran.stderr,
    printed: lines.filter((line) => /^(before|run|after) /.test(line)),
    results: lines.filter((line) => /^(not )?ok /.test(line)).map((line) => line.replace(/ \d+ -/, "")),
  };
}

const file = (name: string, first = "") => `
  ${first}
  before(() => console.log("before ${name}"));
  it("of ${name}", () => console.log("run ${name}"));
  describe("more", () => it("of ${name} too", () => {}));
  after(() => console.log("after ${name}"));`;

describe("files that share a process", () => {
  it("keep their tests and hooks apart, also if one waits while it is loaded", async (t) => {
    const wait = 'await new Promise(setImmediate); await import("node:fs");';
    const { code, printed, results } = await runGroup(t, { "a.mjs": file("a", wait), "b.mjs": file("b") });
    assert.equal(code, 0);
    assert.deepEqual(printed, ["before a", "run a", "after a", "before b", "run b", "after b"]);
    assert.deepEqual(results, [
      "ok of a",
      "ok of a too",
      "ok more",
      "ok a.mjs",
      "ok of b",
      "ok of b too",
      "ok more",
      "ok b.mjs",
    ]);
  });

  it("run although one of them cannot be loaded, which fails", async (t) => {
    const sources = { "a.mjs": 'throw new Error("at its start");', "b.mjs": file("b") };
    const { code, results } = await runGroup(t, sources);
    assert.equal(code, 1);
    assert.deepEqual(results, ["not ok a.mjs", "ok of b", "ok of b too", "ok more", "ok b.mjs"]);
  });

  it("end although one of them left a server open, which fails and is named", async (t) => {
    const listening = 'import { createServer } from "node:net";\n';
    const sources = {
      "a.mjs": `${listening}it("of a", () => new Promise((resolve) => createServer().listen(0, "127.0.0.1", resolve)));`,
      "b.mjs": file("b"),
    };
    const { code, errors, results } = await runGroup(t, sources, 1);
    assert.equal(code, 1);
    assert.match(errors, /left something open .* TCPServerWrap/);
    assert.deepEqual(results, ["ok of a", "ok a.mjs", "ok of b", "ok of b too", "ok more", "ok b.mjs"]);
  });
});
