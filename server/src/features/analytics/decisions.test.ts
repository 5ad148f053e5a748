import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { DECISION_LIFE, DECISIONS_MAX, DecisionSample } from "./decisions.ts";

const event = (at: number, workspaceId: string, identifier: string) => ({
  at: instantAt(at),
  startedAt: 0,
  workspaceId,
  namespaceId: "rlns_1",
  identifier,
  passed: true,
  cost: 1,
  asked: { cost: 1, limit: 5, duration: 60_000 },
  address: "203.0.113.7",
  requestId: "req_1",
});

const identifiers = (sample: DecisionSample, workspaceId: string, now: number, since = 0) =>
  [...sample.latest(workspaceId, since, instantAt(now))].map((one) => one.kind === "ratelimit" && one.identifier);

describe("the sample of decisions", () => {
  it("forgets decisions after their life", () => {
    const sample = new DecisionSample();
    sample.ratelimit(event(1_000, "ws_1", "old"), 5);
    sample.ratelimit(event(1_001, "ws_1", "new"), 5);
    assert.deepEqual(identifiers(sample, "ws_1", 1_001 + DECISION_LIFE), ["new"]);
    assert.deepEqual(identifiers(sample, "ws_1", 1_002 + DECISION_LIFE), []);
    assert.deepEqual(identifiers(sample, "ws_1", 1_001, 1_001), ["new"]);
  });

  it("keeps the newest decisions, in bounded memory", () => {
    const sample = new DecisionSample();
    for (let i = 0; i <= DECISIONS_MAX; i++) {
      sample.ratelimit(event(i, `ws_${i % 7}`, String(i)), 5);
      sample.startSecond();
    }
    const all = Array.from({ length: 7 }, (_, i) => identifiers(sample, `ws_${i}`, 0)).flat();
    assert.equal(all.length, DECISIONS_MAX);
    assert(!all.includes("0"));
    assert.equal(identifiers(sample, `ws_${DECISIONS_MAX % 7}`, 0)[0], String(DECISIONS_MAX));
  });
});
