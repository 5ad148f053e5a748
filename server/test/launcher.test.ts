/** The launcher, on a machine whose Node is older than the required one. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually, makeFolder, ROOT_KEY } from "./process.ts";

const launcher = fileURLToPath(new URL("../bin/latchkey.js", import.meta.url));

/** A Node for which the launcher has to find another one. */
function oldNode(): string | undefined {
  const programs = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "node"));
  return programs.find((program) => {
    try {
      const [major] = execFileSync(program, ["--version"], { encoding: "utf8", stdio: "pipe" }).slice(1).split(".");
      return Number(major) < 24;
    } catch {
      return false;
    }
  });
}

describe("a service behind the launcher", () => {
  const node = oldNode();
  const skip = node === undefined && "the Node of this machine needs no launcher";

  for (const signal of ["SIGTERM", "SIGINT", "SIGKILL", "SIGUSR2"] as const) {
    it(`ends when the launcher gets ${signal}`, { skip }, async (t: TestContext) => {
      const directory = makeFolder(t);
      const child = spawn(node!, [launcher, "serve", "--port", "0"], {
        cwd: directory,
        env: { PATH: process.env.PATH, LATCHKEY_ROOT_KEY: ROOT_KEY, LATCHKEY_DRAIN: "0" },
        stdio: ["ignore", "pipe", "inherit"],
      });
      t.after(() => child.kill("SIGKILL"));
      let output = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
      await eventually("the service", () => output.includes("latchkey is listening"));
      // The pipe closes when its last holder, the service, has ended.
      const closed = once(child.stdout, "close");
      child.kill(signal);
      await closed;
      assert.match(output, /"msg":"stopped"/);
    });
  }
});

describe("a clone without the packages of its sources", () => {
  it("says so in one line", (t) => {
    const clone = makeFolder(t);
    cpSync(fileURLToPath(new URL("../bin", import.meta.url)), join(clone, "server/bin"), { recursive: true });
    mkdirSync(join(clone, "server/src"));
    writeFileSync(join(clone, "server/src/main.ts"), "");
    writeFileSync(join(clone, "package.json"), '{"type":"module"}');
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(clone, "server/bin/latchkey.js"), "serve"], {
      encoding: "utf8",
    });
    assert.deepEqual([status, stdout], [1, ""]);
    assert.equal(stderr, "latchkey: this clone lacks packages that it is built with. Type `npm ci`, without --omit.\n");
  });
});
