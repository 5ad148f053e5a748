import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { sourceNames, sources } from "../../cli/src/import/sources/sources.ts";
import { type ExportedSystem, exportedSystems, importCommand } from "../src/pages/keys/import-systems.ts";

const target = { apiId: "api_1", sourceApi: "it's", url: "https://keys.example.com" };

describe("the commands that import keys", () => {
  it("are there for every system, with options that the command line takes", () => {
    assert.deepEqual(Object.keys(exportedSystems).sort(), [...sourceNames].sort());
    for (const name of sourceNames) {
      const { options = "", sourceApi }: ExportedSystem = exportedSystems[name];
      const { others, hasApis, isDownloadable } = sources[name];
      assert.ok(!options.includes("--with") || others !== undefined, name);
      assert.equal(options.includes("--source-key-file"), isDownloadable === true, name);
      assert.equal(sourceApi !== undefined, hasApis === true || isDownloadable === true, name);
    }
  });

  it("quote the name of an API, and call this service only to import", () => {
    assert.equal(
      importCommand("aws", target, false).replaceAll(/ \\\n +/g, " "),
      `latchkey import api-keys.json --from aws --api-id api_1 --source-api 'it'\\''s' --with plans.json plan-*.json --url https://keys.example.com`,
    );
    assert.ok(importCommand("aws", target, true).endsWith("--dry-run"));
  });
});
