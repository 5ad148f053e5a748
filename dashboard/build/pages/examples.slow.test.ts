/** The examples of every operation fit the types of the clients. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { exampleCalls, repository } from "./example-calls.ts";

const calls = exampleCalls();

describe("examples fit the types", () => {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-examples-"));
  after(() => rmSync(folder, { recursive: true }));

  it("of the TypeScript client", () => {
    const names = calls.map(({ examples: { TypeScript } }, index) => {
      const name = `${index}.ts`;
      writeFileSync(join(folder, name), `${TypeScript}\nexport { data };\n`);
      return name;
    });
    const options = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      target: "es2024",
      module: "nodenext",
      types: ["node"],
      typeRoots: [repository("node_modules/@types")],
      allowImportingTsExtensions: true,
      skipLibCheck: true,
      paths: { "@latchkey/sdk": [repository("sdk/src/index.ts")] },
    };
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: names }));
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      [repository("node_modules/typescript/bin/tsc"), "-p", folder],
      { encoding: "utf8" },
    );
    assert.equal(status, 0, stdout + stderr);
  });

  it("of the Go client", { skip: spawnSync("go", ["version"]).error && "Go is not installed" }, () => {
    const functions = calls.map(({ examples: { Go } }, index) => {
      const [, ...lines] = Go.split("\n");
      return `func example${index}(ctx context.Context) {\n${lines.join("\n")}\n_ = result\n}\n`;
    });
    const imports = ["context", "encoding/json", "log"].map((name) => `"${name}"`).join("\n");
    const client = repository("clients/go");
    const source = join(folder, "examples.go");
    writeFileSync(
      source,
      `package examples\n\nimport (\n${imports}\nlatchkey "github.com/latchkey/latchkey/clients/go"\n)\n\n${functions.join("\n")}`,
    );
    // The file is in the module for this command only.
    const overlay = join(folder, "overlay.json");
    writeFileSync(overlay, JSON.stringify({ Replace: { [join(client, "internal/examples/examples.go")]: source } }));
    const { status, stderr } = spawnSync("go", ["build", `-overlay=${overlay}`, "./internal/examples"], {
      cwd: client,
      encoding: "utf8",
    });
    assert.equal(status, 0, stderr);
  });
});
