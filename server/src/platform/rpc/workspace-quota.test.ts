import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { WorkspaceQuota } from "./workspace-quota.ts";

/** Records by workspace, as a database counts them, and the number of counts. */
function openQuota(max: number) {
  const clock = new SimulatedClock(0);
  const records = new Map<string, number>();
  const database = { counts: 0, hasOutage: false };
  const quota = new WorkspaceQuota({
    clock,
    max,
    async count(workspaceId, limit) {
      database.counts++;
      if (database.hasOutage) throw new Error("away");
      return Math.min(limit, records.get(workspaceId) ?? 0);
    },
  });
  const settle = async () => {
    for (let i = 0; i < 5; i++) await Promise.resolve();
  };
  const add = async (workspaceId: string) => {
    const hasCapacity = quota.hasCapacity(workspaceId);
    if (hasCapacity) {
      records.set(workspaceId, (records.get(workspaceId) ?? 0) + 1);
      quota.record(workspaceId);
    }
    await settle();
    return hasCapacity;
  };
  return { clock, records, database, quota, settle, add };
}

describe("a workspace's quota", () => {
  it("is exact on one node, and counts rarely", async () => {
    const { add, records, database } = openQuota(10_000);
    let admitted = 0;
    for (let i = 0; i < 12_000; i++) if (await add("a")) admitted++;
    assert.equal(admitted, 10_000);
    assert.equal(records.get("a"), 10_000);
    assert(database.counts < 30, `${database.counts} counts`);
    assert.equal(await add("b"), true);
  });

  it("counts existing records after a start", async () => {
    const { add, records, quota, settle } = openQuota(100);
    records.set("a", 100);
    // Not counted yet: the first call passes and starts the count.
    assert.equal(quota.hasCapacity("a"), true);
    await settle();
    assert.equal(await add("a"), false);
  });

  it("notices deleted records after some seconds, and does not count in between", async () => {
    const { add, records, clock, quota, settle, database } = openQuota(100);
    records.set("a", 100);
    quota.hasCapacity("a");
    await settle();
    records.set("a", 50);
    const { counts } = database;
    for (let i = 0; i < 100; i++) assert.equal(await add("a"), false);
    assert.equal(database.counts, counts);
    clock.advance(5_000);
    quota.hasCapacity("a");
    await settle();
    assert.equal(await add("a"), true);
  });

  it("notices records of other nodes, and corrects records that were counted but not stored", async () => {
    const { records, clock, quota, settle } = openQuota(1_000);
    quota.hasCapacity("a");
    await settle();
    records.set("a", 1_000);
    clock.advance(600_000);
    quota.hasCapacity("a");
    await settle();
    assert.equal(quota.hasCapacity("a"), false);
    records.set("a", 10);
    clock.advance(5_000);
    quota.hasCapacity("a");
    await settle();
    quota.record("a", 5_000);
    quota.hasCapacity("a");
    await settle();
    clock.advance(5_000);
    quota.hasCapacity("a");
    await settle();
    assert.equal(quota.hasCapacity("a"), true);
  });

  it("allows calls while the database is away", async () => {
    const { add, database } = openQuota(10);
    database.hasOutage = true;
    assert.equal(await add("a"), true);
  });
});
