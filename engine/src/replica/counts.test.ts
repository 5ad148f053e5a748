import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { instantAt } from "../clock/clock.ts";
import { SimulatedClock } from "../clock/simulated.ts";
import { seededRandom } from "../random/seeded.ts";
import type { VerificationEvent } from "../verification/event.ts";
import { ReplicaCounts } from "./counts.ts";
import { rejectAnswer } from "./home.ts";
import { type CountReport, partsOf, REPORT_MAX, type ReportAnswer, verificationsOf } from "./report.ts";

const START = 1_768_478_400_000;
const SECOND = 1_000;

function event(clock: SimulatedClock, members: Partial<VerificationEvent> = {}): VerificationEvent {
  return {
    at: instantAt(clock.now()),
    startedAt: clock.monotonic(),
    workspaceId: "ws_1",
    key: { keyId: "key_1", apiId: "api_1", identity: null },
    code: "VALID",
    tags: undefined,
    creditsSpent: 0,
    cost: undefined,
    limit: undefined,
    address: "203.0.113.7",
    requestId: "req_1",
    ...members,
  };
}

/** Counts whose reports get this answer. */
function open(answer: (report: CountReport) => ReportAnswer | Promise<ReportAnswer>) {
  const clock = new SimulatedClock(START);
  const losses: number[] = [];
  const sent: CountReport[] = [];
  const counts = new ReplicaCounts({
    clock,
    recorder: "edge_1",
    home: {
      report: async (report) => {
        sent.push(report);
        return answer(report);
      },
    },
    onLoss: (verifications) => void losses.push(verifications),
  });
  const pass = async () => {
    clock.advance(SECOND);
    for (let i = 0; i < 10; i++) await setImmediate();
  };
  return { clock, counts, losses, sent, pass };
}

describe("the counts of a replica", () => {
  for (const status of [400, 403, 409, 413, 422]) {
    it(`drops a report that home answers with ${status}, says so once, and goes on`, async () => {
      let rejects = true;
      const { clock, counts, losses, sent, pass } = open(() =>
        rejects ? rejectAnswer({ operation: "replica.report", status, detail: "never" }) : {},
      );
      for (let i = 0; i < 3; i++) counts.verification(event(clock));
      await pass();
      rejects = false;
      counts.verification(event(clock));
      await pass();
      assert.deepEqual(losses, [3]);
      assert.equal(counts.lost, 3);
      assert.deepEqual(
        sent.map(({ sequence }) => sequence),
        [1, 2],
      );
      assert.equal(counts.waiting, 0);
    });
  }

  for (const status of [undefined, 401, 404, 429, 500, 503]) {
    it(`sends a report again after ${status ?? "no answer"}`, async () => {
      let isAway = true;
      const { clock, counts, losses, sent, pass } = open(() =>
        isAway ? rejectAnswer({ operation: "replica.report", status, detail: "later" }) : {},
      );
      counts.verification(event(clock));
      for (let i = 0; i < 3; i++) await pass();
      isAway = false;
      await pass();
      assert.deepEqual(losses, []);
      assert.deepEqual(
        sent.map(({ sequence }) => sequence),
        [1, 1, 1, 1],
      );
      assert.equal(counts.waiting, 0);
    });
  }

  it("loses what home fails at, and goes on with the rest", async () => {
    const { clock, counts, losses, sent, pass } = open(({ verifications }) =>
      verifications.some(([, , keyId]) => keyId === "bad")
        ? rejectAnswer({ operation: "replica.report", status: 500, detail: "a fault of home" })
        : {},
    );
    for (const keyId of ["key_1", "bad", "bad"]) {
      counts.verification(event(clock, { key: { keyId, apiId: "api_1", identity: null } }));
    }
    for (let i = 0; i < 40; i++) {
      await pass();
      counts.verification(event(clock));
    }
    assert.deepEqual(losses, [2]);
    await counts.close();
    assert.equal(counts.waiting, 0);
    const cells = sent.flatMap(({ verifications }) => (verifications.length === 1 ? verifications : []));
    assert.equal(cells.filter(([, , keyId]) => keyId !== "bad").length, 41);
  });

  it("loses nothing and counts nothing twice, whatever home answers (rule 180)", async () => {
    let judged = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      let [counted, last, calm] = [0, 0, false];
      const { clock, counts, losses, pass } = open((report) => {
        const { sequence, verifications } = report;
        const chance = calm ? 0 : random.below(8);
        const status = [undefined, 401, 503, 400, 403, 413][chance - 2];
        // Lost on its way home.
        if (chance >= 2 && status === undefined) rejectAnswer({ operation: "replica.report", status, detail: "lost" });
        if (status !== undefined) rejectAnswer({ operation: "replica.report", status, detail: "no" });
        const leftOut = Math.min(random.below(3), verificationsOf(verifications));
        if (sequence > last) counted += verificationsOf(verifications) - leftOut;
        last = Math.max(last, sequence);
        judged++;
        return { leftOut };
      });
      let total = 0;
      for (let i = 0; i < 60; i++) {
        for (let n = random.below(4); n > 0; n--) {
          counts.verification(event(clock, { code: ["VALID", "DISABLED"][random.below(2)]! }));
          total++;
        }
        await pass();
      }
      calm = true;
      await pass();
      await counts.close();
      const lost = losses.reduce((sum, one) => sum + one, 0);
      assert.equal(counted + lost, total, `seed ${seed}`);
      assert.equal(counts.lost, lost);
      assert.equal(counts.waiting, 0);
    }
    assert.ok(judged > 1_000, `${judged} reports were judged`);
  });

  it("makes reports that home reads, also of the longest tags", async () => {
    const tags = (n: number) => Array.from({ length: 10 }, (_, i) => `${n} ${i} `.padEnd(128, "\u0001").slice(0, 128));
    const { clock, counts, sent } = open(() => ({}));
    for (let n = 0; n < 1_500; n++) {
      counts.verification(
        event(clock, { tags: tags(n), key: { keyId: `key_${"x".repeat(16)}${n}`, apiId: "api_1", identity: null } }),
      );
    }
    await counts.close();
    const cells = sent.flatMap(({ verifications }) => verifications);
    assert.equal(cells.length, 1_500);
    for (const report of sent) assert.ok(Buffer.byteLength(JSON.stringify(report)) < 1024 * 1024);
    const parts = partsOf(cells);
    assert.equal(parts.flat().length, 1_500);
    for (const part of parts) assert.ok(Buffer.byteLength(JSON.stringify(part)) <= REPORT_MAX.bytes);
  });

  it("has one cell for each minute, key, code and set of tags", async () => {
    const { clock, counts, sent } = open(() => ({}));
    const random = seededRandom(6);
    const expected = new Map<string, number>();
    for (let i = 0; i < 5_000; i++) {
      const keyId = `key_${random.below(4)}`;
      const code = random.below(3) === 0 ? "DISABLED" : "VALID";
      // More lists than are remembered, and each set in several orders.
      const tags = Array.from({ length: random.below(4) }, () => "abcdefgh".charAt(random.below(8)));
      counts.verification(event(clock, { code, tags, key: { keyId, apiId: "api_1", identity: null } }));
      const minute = clock.now() - (clock.now() % 60_000);
      const text = tags.length === 0 ? "" : JSON.stringify([...new Set(tags)].sort());
      const name = `${minute} ${keyId} ${code} ${text}`;
      expected.set(name, (expected.get(name) ?? 0) + 1);
      if (i === 2_500) clock.advance(60_000);
    }
    await counts.close();
    const found = new Map<string, number>();
    for (const { verifications } of sent) {
      const names = verifications.map(([minute, , keyId, , tags, code]) => `${minute} ${keyId} ${code} ${tags}`);
      assert.equal(new Set(names).size, names.length);
      for (const [i, name] of names.entries()) found.set(name, (found.get(name) ?? 0) + (verifications[i]?.[6] ?? 0));
    }
    assert.deepEqual(found, expected);
  });

  it("counts by what each call said, also if its list of tags is used again", async () => {
    const { clock, counts, sent } = open(() => ({}));
    const tags = ["a", "b"];
    const count = (members: Partial<VerificationEvent>) => counts.verification(event(clock, members));
    count({ tags });
    count({ tags: ["b", "a", "a"] });
    tags[0] = "c";
    count({ tags });
    count({ tags, code: "DISABLED" });
    count({ tags: ["a"] });
    count({});
    count({ key: null, code: "NOT_FOUND" });
    count({ key: { keyId: "key_2", apiId: "api_1", identity: null }, code: "NOT_FOUND" });
    count({ tags: ["a", "b"] });
    await counts.close();
    const [report] = sent;
    assert.deepEqual(
      report?.verifications.map(([, , keyId, , text, code, number]) => [keyId, text, code, number]),
      [
        ["key_1", '["a","b"]', "VALID", 3],
        ["key_1", '["b","c"]', "VALID", 1],
        ["key_1", '["b","c"]', "DISABLED", 1],
        ["key_1", '["a"]', "VALID", 1],
        ["key_1", "", "VALID", 1],
        [null, "", "NOT_FOUND", 1],
        ["key_2", "", "NOT_FOUND", 1],
      ],
    );
    assert.deepEqual(report?.uses, [{ keyId: "key_1", at: START }]);
  });

  it("keeps the newest half a minute while home is away", async () => {
    let isAway = true;
    const { clock, counts, losses, sent, pass } = open(() =>
      isAway ? rejectAnswer({ operation: "replica.report", status: 503, detail: "away" }) : {},
    );
    for (let i = 0; i < 100; i++) {
      counts.verification(event(clock));
      await pass();
    }
    assert.equal(counts.waiting, 31);
    assert.equal(losses.length, 69);
    isAway = false;
    sent.length = 0;
    await pass();
    assert.equal(sent.length, 31);
    await counts.close();
  });
});
