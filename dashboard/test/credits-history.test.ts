/** The history of credits, from events and counts. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { changesOf } from "../src/pages/audit/changes.ts";
import { creditsHistory } from "../src/pages/keys/credits-history.ts";

const at = (text: string) => Date.parse(text);
const event = (action: string, time: string, meta: object) => ({
  id: `${action} ${time}`,
  action,
  occurredAt: at(time),
  meta: meta as Record<string, unknown>,
});

describe("the history of credits", () => {
  it("joins changes, refills at their due time, and spends per day", () => {
    const refill = event("credits.refill", "2026-02-01T00:03:00Z", {
      dueAt: at("2026-02-01T00:00:00Z"),
      before: 3,
      remaining: 100,
    });
    const events = [
      event("keys.updateKey", "2026-02-03T10:00:00Z", {
        before: { credits: { remaining: 90 } },
        after: { credits: null },
      }),
      event("keys.updateCredits", "2026-02-02T10:00:00Z", { operation: "increment", value: 5, before: 90, after: 95 }),
      event("keys.updateKey", "2026-02-02T09:00:00Z", { before: { name: "a" }, after: { name: "b" } }),
      refill,
      event("keys.createKey", "2026-01-20T09:00:00Z", { credits: { remaining: 20 } }),
      event("keys.createKey", "2026-01-01T09:00:00Z", { credits: { remaining: 20 } }),
    ];
    const days = [
      { time: at("2026-01-31T00:00:00Z"), creditsSpent: 17 },
      { time: at("2026-02-01T00:00:00Z"), creditsSpent: 0 },
    ];
    const entries = creditsHistory(events, days, at("2026-01-10T00:00:00Z"));
    assert.deepEqual(
      entries.map(({ what, by, balance }) => [what, by, balance]),
      [
        ["Set to unlimited", undefined, null],
        ["Increment", 5, 95],
        ["Refill", 97, 100],
        ["Spent", -17, undefined],
        ["Created with", undefined, 20],
      ],
    );
    assert.deepEqual(changesOf(refill)[0], { member: "balance", before: 3, after: 100 });
  });
});
