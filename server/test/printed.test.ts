import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { folder, print } from "../generate.ts";

describe("the printed contract", () => {
  const printed = print();
  for (const [name, text] of Object.entries(printed)) {
    it(`api/${name} is what the operations say`, () => {
      assert(readFileSync(join(folder, name), "utf8") === text, "run `npm run generate` and look at the diff");
    });
  }
  it("is all there is in api/", () => assert.deepEqual(readdirSync(folder).sort(), Object.keys(printed).sort()));
});
