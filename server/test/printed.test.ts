import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { printCommands } from "../generate/commands.ts";
import { printGo } from "../generate/go.ts";
import { printPython } from "../generate/python.ts";
import { printSdk } from "../generate/typescript.ts";
import { commandsFile, folder, goFile, print, pythonFolder, sdkFile } from "../generate.ts";

describe("the generated files", () => {
  const printed = print();
  for (const [name, text] of Object.entries(printed)) {
    it(`api/${name} matches the operations`, () => {
      assert(readFileSync(join(folder, name), "utf8") === text, "run `npm run generate` and read the diff");
    });
  }
  it("the commands of the command line match the operations", () => {
    assert(readFileSync(commandsFile, "utf8") === printCommands(), "run `npm run generate` and read the diff");
  });
  it("the methods of the TypeScript client match the operations", () => {
    assert(readFileSync(sdkFile, "utf8") === printSdk(), "run `npm run generate` and read the diff");
  });
  for (const [name, text] of Object.entries(printPython())) {
    it(`${name} of the Python client matches the operations`, () => {
      assert(readFileSync(join(pythonFolder, name), "utf8") === text, "run `npm run generate` and read the diff");
    });
  }
  it("the methods of the Go client match the operations", () => {
    assert(readFileSync(goFile, "utf8") === printGo(), "run `npm run generate` and read the diff");
  });
  it("api/ contains no other file", () => assert.deepEqual(readdirSync(folder).sort(), Object.keys(printed).sort()));
});
