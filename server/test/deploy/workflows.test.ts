/** The workflows of GitHub. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { needTool, repository, runTool, tools } from "./tools.ts";

interface Workflow {
  permissions: Record<string, string>;
  jobs: Record<string, { "timeout-minutes"?: number; uses?: string; needs?: string | string[]; steps?: Step[] }>;
}

interface Step {
  uses?: string;
  run?: string;
}

const folder = join(repository, ".github/workflows");
const workflows = new Map(
  readdirSync(folder).map((name) => [name, parse(readFileSync(join(folder, name), "utf8")) as Workflow]),
);

describe("the workflows", () => {
  it("pass their linter", async (t) => {
    const actionlint = needTool(t, tools.actionlint);
    if (!actionlint) return;
    const files = [...workflows.keys()].map((name) => join(folder, name));
    const { code, output } = await runTool(actionlint, files);
    assert.equal(code, 0, output);
  });

  it("use actions of a fixed version, with few permissions and a bound on time", () => {
    for (const [name, { permissions, jobs }] of workflows) {
      assert.deepEqual(permissions, { contents: "read" }, name);
      for (const [job, { uses, steps = [], ...rest }] of Object.entries(jobs)) {
        if (uses === undefined) assert(rest["timeout-minutes"], `${name}: ${job}`);
        for (const step of steps) if (step.uses) assert.match(step.uses, /@v\d+(\.\d+)*$|@[0-9a-f]{40}$/, step.uses);
      }
    }
  });

  it("decide with .ci/run, and publish nothing before it has passed", () => {
    const ci = workflows.get("ci.yml")!;
    assert(ci.jobs.test!.steps!.some(({ run }) => run === ".ci/run"));
    const { jobs } = workflows.get("release.yml")!;
    const isAfterTest = (job: string): boolean =>
      job === "test" || [jobs[job]!.needs ?? []].flat().some((needed) => isAfterTest(needed));
    assert.equal(jobs.test!.uses, "./.github/workflows/ci.yml");
    for (const job of Object.keys(jobs)) assert(isAfterTest(job), job);
  });
});
