/**
 * Everything declared was seen. Runs after all other tests, over what they noted; `unobserved.json` names what no test
 * can reach, with the reason. It may only ever shrink.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { operations } from "../src/operations/index.ts";
import { readObservations, unobserved } from "./observations.ts";

describe("what is declared", () => {
  it("was observed by some test", () => {
    const folder = process.env.LATCHKEY_TEST_OBSERVATIONS;
    assert(folder, "Run this with `npm test`, which gathers what the tests observe.");
    const excused = JSON.parse(readFileSync(new URL("unobserved.json", import.meta.url), "utf8")) as object;
    const missing = unobserved(readObservations(folder));
    const unexcused = missing.filter((line) => !(line in excused));
    assert.deepEqual(unexcused, [], "No test saw these: write one that does.");
    const idle = Object.keys(excused).filter((line) => !missing.includes(line));
    assert.deepEqual(idle, [], "These were seen after all: take them out of unobserved.json.");
  });

  it("would be missed", () => {
    const missing = unobserved(new Set(["apis.getApi 200"]));
    assert(!missing.includes("apis.getApi 200"));
    for (const line of ["apis.getApi api_not_found", "apis.deleteApi protected_resource", "any service_unavailable"]) {
      assert(missing.includes(line), line);
    }
    assert(missing.length > operations.length);
  });
});
