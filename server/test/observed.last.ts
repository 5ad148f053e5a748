/**
 * Everything declared was observed. Runs after all other tests, over what they recorded. `unobserved.json` lists what
 * no test can reach, with the reason; it may only shrink.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { operations } from "../src/service/operations.ts";
import { readObservations, unobserved } from "./observations.ts";

describe("declared outcomes", () => {
  it("were all observed by a test", () => {
    const folder = process.env.LATCHKEY_TEST_OBSERVATIONS;
    assert(folder, "Run this with `npm test`, which collects the observations.");
    const excused = JSON.parse(readFileSync(new URL("unobserved.json", import.meta.url), "utf8")) as object;
    const missing = unobserved(readObservations(folder));
    const unexcused = missing.filter((line) => !(line in excused));
    assert.deepEqual(unexcused, [], "No test observed these: write one.");
    const idle = Object.keys(excused).filter((line) => !missing.includes(line));
    assert.deepEqual(idle, [], "These were observed: remove them from unobserved.json.");
  });

  it("are reported if they were not observed", () => {
    const missing = unobserved(new Set(["apis.getApi 200"]));
    assert(!missing.includes("apis.getApi 200"));
    for (const line of [
      "apis.getApi api_not_found",
      "apis.deleteApi protected_resource",
      "any service_unavailable",
      "event key.created",
    ]) {
      assert(missing.includes(line), line);
    }
    assert(missing.length > operations.length);
  });
});
