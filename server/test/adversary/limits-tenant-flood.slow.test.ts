/** A workspace that sends unlimited new identifiers, beside another workspace in the same memory for counters. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { eventually, makeFolder, type Server, start } from "../process.ts";

const DURATION = 2_592_000_000;
const ENTRIES = 100;
/** More counters than 1 MiB holds. */
const FLOOD = 40_000;
const INNOCENT = 2_000;

async function charge(server: Server, key: string, name: string, count: number) {
  const statuses = new Map<number, number>();
  let kept = 0;
  for (let first = 0; first < count; first += ENTRIES) {
    const entries = Array.from({ length: ENTRIES }, (_, i) => ({
      namespace: "flood",
      identifier: `${name} ${first + i}`,
      limit: 10,
      duration: DURATION,
    }));
    const { status } = await server.call("ratelimits.multiLimit", entries, key);
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status === 200) kept += ENTRIES;
  }
  return { kept, statuses: Object.fromEntries(statuses) };
}

describe("a workspace that floods the memory for counters", () => {
  it("is denied new counters, keeps its existing ones, and affects no other workspace, also after a restart", async (t) => {
    const directory = makeFolder(t);
    const options = { directory, settings: { COUNTER_BYTES: "1m", ANALYTICS: "off" } };
    let server = await start(options);
    const { key: flooding } = await server.ok("workspaces.createWorkspace", { name: "flooding" });
    const { key: other } = await server.ok("workspaces.createWorkspace", { name: "other" });

    const flood = await charge(server, flooding, "invented", FLOOD);
    assert.deepEqual(Object.keys(flood.statuses), ["200", "429"]);
    const beside = await charge(server, other, "before", INNOCENT);
    assert.deepEqual(beside.statuses, { 200: INNOCENT / ENTRIES });
    // Its existing counters continue.
    const again = await charge(server, flooding, "invented", 10 * ENTRIES);
    assert.deepEqual(again.statuses, { 200: 10 });

    const file = join(directory, "data", "counters");
    await eventually("the journal", () => statSync(file).size >= (flood.kept + INNOCENT) * 32);
    await server.kill("SIGKILL");
    server = await start(options);
    const after = await charge(server, other, "after", INNOCENT);
    assert.deepEqual(after.statuses, { 200: INNOCENT / ENTRIES });
    const more = await charge(server, flooding, "more", 10 * ENTRIES);
    assert.deepEqual(more.statuses, { 429: 10 });
    t.diagnostic(
      `the flood got ${flood.kept} of 32,768 counters; the other workspace ${beside.kept} during the flood and ${after.kept} after kill -9, none rejected`,
    );
  });
});
