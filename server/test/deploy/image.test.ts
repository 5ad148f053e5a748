/** The image of containers. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { needTool, repository, runTool, tools } from "./tools.ts";

const dockerfile = join(repository, "deploy/Dockerfile");

describe("the Dockerfile", () => {
  it("passes its linter", async (t) => {
    const hadolint = needTool(t, tools.hadolint);
    if (hadolint) assert.deepEqual(await runTool(hadolint, [dockerfile]), { code: 0, output: "" });
  });

  it("has the Node that the npm package brings", () => {
    const { optionalDependencies } = JSON.parse(readFileSync(join(repository, "server/package.json"), "utf8"));
    const [, version] = /^FROM node:([\d.]+)-/m.exec(readFileSync(dockerfile, "utf8"))!;
    for (const packaged of Object.values(optionalDependencies)) assert.equal(version, packaged);
  });
});
