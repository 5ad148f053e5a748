import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { queryObjects } from "node:v8";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { Analytics, CELLS_PER_TURN } from "./analytics.ts";
import { type Batch, cellsOf, eventsOf, readBatch } from "./batch.ts";
import { DECISIONS_MAX } from "./decisions.ts";
import { TRACKED_KEYS_MAX } from "./key-uses.ts";
import type { KeyUse } from "./recorder.ts";

const SECOND = 1_000;
const NOON = 1_768_478_400_000;

/** Analytics with a store that keeps all batches. */
async function open(t: TestContext, folder = mkdtempSync(join(tmpdir(), "latchkey-test-"))) {
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const clock = new SimulatedClock(NOON);
  const written: Batch[] = [];
  const uses: KeyUse[] = [];
  /** Steps of a merge that are left to do. */
  const merge = { steps: 0 };
  const analytics = new Analytics({
    clock,
    rollups: {
      write: async (texts) => void written.push(...texts.map(readBatch)),
      stats: async () => "",
      counts: async () => [],
      top: async () => ({ entries: [] }),
      decisions: async () => [],
      merge: async () => --merge.steps > 0,
      prune: async () => ({ rows: 0, more: false }),
      close: async () => {},
    },
    recorderId: "rec_1",
    loggedPerMinute: 0,
    folder,
    bytesMax: { memory: 2 ** 24, disk: 2 ** 24 },
    recordKeyUses: async (some) => void uses.push(...some),
    onReachability: () => {},
    onLoss: () => assert.fail("lost"),
    onSpoolUnreadable: () => assert.fail("unreadable"),
    onFailedMerge: (cause: unknown) => assert.fail(String(cause)),
  });
  await analytics.start();
  /** Counts one verification of each of these keys, and one decision of each of these identifiers. */
  const count = (keys: number, identifiers: number) => {
    const [at, startedAt, workspaceId] = [clock.now(), clock.monotonic(), "ws_1"];
    for (let i = 0; i < keys; i++) {
      const key = { keyId: `key_${i}`, apiId: "api_1", identity: null };
      analytics.recorder.verification({
        at,
        startedAt,
        workspaceId,
        key,
        code: "VALID",
        tags: undefined,
        creditsSpent: 0,
        cost: undefined,
        limit: undefined,
        address: "203.0.113.7",
        requestId: "req_1",
      });
    }
    for (let i = 0; i < identifiers; i++) {
      analytics.recorder.ratelimit({
        at,
        startedAt,
        workspaceId,
        namespaceId: "rlns_1",
        identifier: `user ${i}`,
        passed: true,
        cost: 1,
        asked: { cost: 1, limit: 5, duration: 60_000 },
        address: "203.0.113.7",
        requestId: "req_1",
      });
    }
  };
  return { analytics, folder, clock, written, uses, merge, count };
}

describe("counts of keys with budgets", () => {
  /** The members of the batch with a use of a key. */
  async function membersWith(t: TestContext, budgets: { budgetId: string }[]): Promise<string[]> {
    const { analytics, clock } = await open(t);
    const put = t.mock.method(analytics.outbox, "put");
    const key = { keyId: "key_1", apiId: "api_1", identity: null, budgets };
    analytics.recorder.credits({ at: clock.now(), workspaceId: "ws_1", key, tags: undefined, credits: 1 });
    clock.advance(SECOND);
    await new Promise(setImmediate);
    put.mock.restore();
    return Object.keys(JSON.parse(put.mock.calls[0]!.arguments[0]));
  }

  it("are in a batch that earlier releases reject, and those of other keys are not", async (t) => {
    const known = ["recorder", "sequence", "keys", "others", "ratelimits", "decisions"];
    assert.deepEqual(await membersWith(t, []), known);
    const renamed = known.map((name) => (name === "others" ? "cells" : name));
    assert.deepEqual(await membersWith(t, [{ budgetId: "bud_1" }]), renamed);
  });
});

describe("counts of many keys", () => {
  it("are serialised in parts, and are one batch", async (t) => {
    const { analytics, clock, written, count } = await open(t);
    const stringify = t.mock.method(JSON, "stringify");
    count(2 * CELLS_PER_TURN + 1, CELLS_PER_TURN - 1);
    // Until the last part is serialised, and the store has the batch.
    for (let second = 0; second < 3; second++) {
      clock.advance(SECOND);
      await new Promise(setImmediate);
    }
    const lengthOf = (value: unknown): number =>
      Array.isArray(value) ? Math.max(value.length, ...value.map((one) => (Array.isArray(one) ? one.length : 0))) : 0;
    const lengths = stringify.mock.calls.map(({ arguments: [value] }) => lengthOf(value));
    stringify.mock.restore();
    assert.equal(Math.max(...lengths), CELLS_PER_TURN);
    await analytics.stop();
    const [batch] = written;
    assert.equal(written.length, 1);
    assert.deepEqual([batch!.recorder, batch!.sequence], ["rec_1", 1]);
    const keys = cellsOf(batch!.keys).map(([, , , keyId]) => keyId);
    assert.deepEqual(
      keys,
      Array.from({ length: 2 * CELLS_PER_TURN + 1 }, (_, i) => `key_${i}`),
    );
    const identifiers = batch!.ratelimits.map(([, , , identifier]) => identifier);
    assert.deepEqual(
      identifiers,
      Array.from({ length: CELLS_PER_TURN - 1 }, (_, i) => `user ${i}`),
    );
  });

  it("leave nothing behind when they are delivered", async (t) => {
    const { analytics, clock, written, count } = await open(t);
    const drain = async (times: number) => {
      for (let i = 0; i < times; i++) {
        count(1, 0);
        clock.advance(SECOND);
        await new Promise(setImmediate);
        written.length = 0;
      }
      // Collects garbage first. Bytes of the heap depend on compiled code and unfinished writes.
      return queryObjects(Object, { format: "count" });
    };
    // The sample of decisions grows so long.
    const before = await drain(DECISIONS_MAX);
    const kept = (await drain(10_000)) - before;
    assert(kept < 5_000, `${kept} objects`);
    await analytics.stop();
  });

  it("are delivered by a stop, in the order of their numbers", async (t) => {
    const { analytics, clock, written, uses, count } = await open(t);
    count(3 * CELLS_PER_TURN, 0);
    clock.advance(SECOND);
    count(7, 3 * CELLS_PER_TURN);
    await analytics.stop();
    const sequences = written.map(({ sequence }) => sequence);
    assert.deepEqual(sequences, [1, 2]);
    const total = written.reduce((sum, batch) => sum + eventsOf(batch), 0);
    assert.equal(total, 6 * CELLS_PER_TURN + 7);
    assert.equal(analytics.outbox.counts.delivered, total);
    assert.equal(new Set(uses.map(({ keyId }) => keyId)).size, 3 * CELLS_PER_TURN);
  });
});

describe("last uses", () => {
  it("of more keys than memory has room for are all written", async (t) => {
    const { analytics, clock, uses, count } = await open(t);
    const keys = TRACKED_KEYS_MAX + 1_000;
    count(keys, 0);
    const written = () => new Set(uses.map(({ keyId }) => keyId)).size;
    for (let second = 0; written() < keys; second++) {
      assert(second < 500, `${written()} of ${keys}`);
      clock.advance(SECOND);
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    }
    assert(uses.every(({ at }) => at === NOON));
    await analytics.stop();
  });

  it("that wait for their turn at a stop are written by the next process", async (t) => {
    const first = await open(t);
    const keys = 5_000;
    // The first turn begins.
    first.clock.advance(SECOND);
    first.count(keys, 0);
    await first.analytics.stop();
    assert(first.uses.length < keys);
    const next = await open(t, first.folder);
    const written = () => new Set([...first.uses, ...next.uses].map(({ keyId }) => keyId)).size;
    for (let second = 0; written() < keys; second++) {
      assert(second < 500, `${written()} of ${keys}`);
      next.clock.advance(SECOND);
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    }
    await next.analytics.stop();
  });
});

describe("what writes leave for later", () => {
  it("is merged step by step after a write, and each minute without one", async (t) => {
    const { analytics, clock, merge, count } = await open(t);
    const pass = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        clock.advance(SECOND);
        // A step and its pause.
        for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
      }
    };
    merge.steps = 4;
    count(1, 0);
    await pass(4);
    assert.equal(merge.steps, 0);
    merge.steps = 2;
    await pass(30);
    assert.equal(merge.steps, 2);
    await pass(31);
    assert.equal(merge.steps, 0);
    await analytics.stop();
  });
});
