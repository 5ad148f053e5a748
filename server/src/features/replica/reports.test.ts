import assert from "node:assert/strict";
import { it } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { VerificationCell } from "../analytics/batch.ts";
import { RECORDERS_PER_HOUR, ReplicaReports } from "./reports.ts";

/** A report of an edge, and what a write finds in its text. */
const report = (recorder: string) => ({
  workspaceId: "ws_a",
  rootKeyId: "rk_a",
  recorder,
  sequence: 1,
  verifications: [[0, "ws_a", "api_a", `key_${recorder}`, null, "", "VALID", 1, 0, 0]] as VerificationCell[],
  uses: [],
});

it("a report at which the store fails takes no other with it that is written at the same time (rule 216)", async () => {
  const written: number[] = [];
  let failure: Error = new Error("out of range");
  const reports = new ReplicaReports({
    clock: new SimulatedClock(0),
    async write(batches) {
      written.push(batches.length);
      if (batches.some((text) => text.includes("key_bad"))) throw failure;
    },
    addUses() {},
  });
  const accept = async () => {
    // The first one is written alone; the others arrive meanwhile.
    const all = ["first", "good", "bad", "other"].map((name) => reports.accept(report(name)));
    return (await Promise.allSettled(all)).map(({ status }) => status);
  };
  assert.deepEqual(await accept(), ["fulfilled", "fulfilled", "rejected", "fulfilled"]);
  assert.deepEqual(written.splice(0), [1, 3, 1, 1, 1]);
  // A database that is away fails at all of them.
  failure = new StoreUnavailable("away");
  assert.deepEqual(await accept(), ["fulfilled", "rejected", "rejected", "rejected"]);
  assert.deepEqual(written, [1, 3]);
});

it("a workspace has a bounded number of recorders in an hour, and others are not refused (rule 217)", async () => {
  const clock = new SimulatedClock(0);
  let written = 0;
  const reports = new ReplicaReports({
    clock,
    async write(batches) {
      written += batches.length;
    },
    addUses() {},
  });
  for (let i = 0; i < RECORDERS_PER_HOUR; i++) await reports.accept(report(`edge${i}`));
  await assert.rejects(reports.accept(report("another")), { code: "workspace_busy" });
  // Those that it has, another workspace, and all of them later.
  await reports.accept({ ...report("edge7"), sequence: 2 });
  await reports.accept({ ...report("another"), workspaceId: "ws_b" });
  clock.advance(3_600_000);
  await reports.accept(report("another"));
  assert.equal(written, RECORDERS_PER_HOUR + 3);
});
