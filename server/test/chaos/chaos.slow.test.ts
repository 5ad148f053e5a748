/** A short run of `npm run chaos`. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeReport, isBalanced, runChaos } from "./run.ts";

describe("a fleet under faults", () => {
  it("keeps its promises", async (t) => {
    const report = await runChaos({
      seed: 6,
      lengthMs: 15_000,
      loadMs: 0,
      policy: "closed",
      nodes: 3,
      edges: 3,
      workers: 1,
      freezeMs: 4_000,
      haste: 4,
      installs: false,
      load: 0.5,
      onProgress: () => {},
    });
    const text = describeReport(report);
    for (const line of text.split("\n")) t.diagnostic(line);
    assert(isBalanced(report), text);
    // A machine that shares its cores with other tests answers a few hundred calls, a quiet one thousands.
    assert((report.statuses.get("200") ?? 0) > 50, "there was load");
    assert([...report.faults.values()].reduce((all, count) => all + count, 0) >= 6, "there were faults");
  });
});
