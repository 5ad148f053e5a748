import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { Analytics, CELLS_PER_TURN } from "./analytics.ts";
import type { Batch } from "./batch.ts";
import type { KeyUse } from "./recorder.ts";

const SECOND = 1_000;
const NOON = 1_768_478_400_000;

/** Analytics with a store that keeps all batches. */
async function open(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const clock = new SimulatedClock(NOON);
  const written: Batch[] = [];
  const uses: KeyUse[] = [];
  const analytics = new Analytics({
    clock,
    rollups: {
      write: async (texts) => void written.push(...texts.map((text) => JSON.parse(text) as Batch)),
      stats: async () => "",
      top: async () => ({ entries: [] }),
      prune: async () => ({ rows: 0, more: false }),
      close: async () => {},
    },
    recorderId: "rec_1",
    folder,
    bytesMax: { memory: 2 ** 24, disk: 2 ** 24 },
    recordKeyUses: async (some) => void uses.push(...some),
    onReachability: () => {},
    onLoss: () => assert.fail("lost"),
    onSpoolUnreadable: () => assert.fail("unreadable"),
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
      });
    }
  };
  return { analytics, clock, written, uses, count };
}

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
    const lengths = stringify.mock.calls.map(({ arguments: [value] }) => (Array.isArray(value) ? value.length : 0));
    stringify.mock.restore();
    assert.equal(Math.max(...lengths), CELLS_PER_TURN);
    await analytics.stop();
    const [batch] = written;
    assert.equal(written.length, 1);
    assert.deepEqual([batch!.recorder, batch!.sequence], ["rec_1", 1]);
    const keys = batch!.verifications.map(([, , , keyId]) => keyId);
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

  it("are delivered by a stop, in the order of their numbers", async (t) => {
    const { analytics, clock, written, uses, count } = await open(t);
    count(3 * CELLS_PER_TURN, 0);
    clock.advance(SECOND);
    count(7, 3 * CELLS_PER_TURN);
    await analytics.stop();
    const sequences = written.map(({ sequence }) => sequence);
    assert.deepEqual(sequences, [1, 2]);
    const total = written.reduce(
      (sum, { verifications, ratelimits }) => sum + verifications.length + ratelimits.length,
      0,
    );
    assert.equal(total, 6 * CELLS_PER_TURN + 7);
    assert.equal(analytics.outbox.counts.delivered, total);
    assert.equal(new Set(uses.map(({ keyId }) => keyId)).size, 3 * CELLS_PER_TURN);
  });
});
