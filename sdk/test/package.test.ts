/** The package as it is published: JavaScript with declarations. The programs of README.md use it. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { codeBlocks } from "../../server/test/code-blocks.ts";
import { makeFolder, Program, ROOT_KEY, type Server, start } from "../../server/test/process.ts";

const sdk = fileURLToPath(new URL("../", import.meta.url));
const compiler = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));
const readme = readFileSync(join(sdk, "README.md"), "utf8");
const programs = codeBlocks(readme).map(({ code }) => code);
const expected = ["rejected: NOT_FOUND\n", /^\[redacted\]\nkey_\w+ \w+\ntrue 99\n$/, /^no such key req_\w+\n$/];

/** The settings of a program that uses the package. */
const settings = {
  compilerOptions: {
    target: "es2022",
    lib: ["es2022", "dom"],
    module: "nodenext",
    types: [],
    strict: true,
    exactOptionalPropertyTypes: true,
    rootDir: "src",
    outDir: "dist",
  },
  include: ["src"],
};

describe("the package of the client", () => {
  const folder = makeFolder({ after });
  let server: Server;

  before(async () => {
    const installed = join(folder, "node_modules/@latchkey/sdk");
    cpSync(join(sdk, "package.json"), join(installed, "package.json"));
    execFileSync(process.execPath, [compiler, "--project", sdk, "--outDir", join(installed, "dist")], {
      stdio: "pipe",
    });
    server = await start({ directory: folder });
    mkdirSync(join(folder, "src"));
    for (const [i, text] of programs.entries()) writeFileSync(join(folder, `src/program-${i}.mts`), text);
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
  });
  after(async () => {
    await server?.kill("SIGTERM");
  });

  it("has types that a strict program can use", () => {
    assert.equal(programs.length, expected.length);
    const { stdout, status } = spawnSync(process.execPath, [compiler, "--project", folder], { encoding: "utf8" });
    assert.equal(status, 0, stdout);
  });

  for (const [i, output] of expected.entries()) {
    it(`runs program ${i + 1} of README.md with the Node of this machine`, async () => {
      const environment = { LATCHKEY_URL: server.address, LATCHKEY_ROOT_KEY: ROOT_KEY };
      const file = join(folder, `dist/program-${i}.mjs`);
      const ran = new Program([file], { directory: folder, environment, program: "node" });
      await ran.ended;
      assert.equal(ran.stderr, "");
      if (typeof output === "string") assert.equal(ran.stdout, output);
      else assert.match(ran.stdout, output);
    });
  }
});
