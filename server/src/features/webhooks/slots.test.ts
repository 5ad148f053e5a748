import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Candidate, Slots } from "./slots.ts";

const bounds = { total: 10, perHost: 8, perWorkspace: 6, perWebhook: 4, slow: 4 };
const candidate = (workspaceId: string, webhookId: string, more: Partial<Candidate> = {}): Candidate => ({
  workspaceId,
  webhookId: `${workspaceId}${webhookId}`,
  host: `${workspaceId}${webhookId}.example`,
  isFailing: false,
  isSlow: false,
  ...more,
});

describe("Slots", () => {
  it("gives a webhook, a workspace and all together no more than their bounds", () => {
    const slots = new Slots(bounds);
    const [a, b, c] = [candidate("A", "1"), candidate("A", "2"), candidate("B", "1")];
    assert.deepEqual(slots.divide([a]), new Map([[a, 4]]));
    // Half of all: a further workspace finds the others.
    assert.deepEqual(
      slots.divide([a, b]),
      new Map([
        [a, 3],
        [b, 2],
      ]),
    );
    assert.deepEqual(
      slots.divide([a, b, c]),
      new Map([
        [a, 2],
        [c, 3],
        [b, 2],
      ]),
    );
    assert.deepEqual(
      new Slots({ ...bounds, perWorkspace: 3 }).divide([a, b]),
      new Map([
        [a, 2],
        [b, 1],
      ]),
    );
    assert.equal(slots.total, 0);
  });

  it("gives free slots to the workspace with the fewest requests", () => {
    const slots = new Slots(bounds);
    const [busy, other] = [candidate("A", "1"), candidate("B", "1")];
    const taken = Array.from({ length: 8 }, (_, i) => slots.take(candidate("A", String(i))));
    assert.deepEqual(slots.divide([busy, other]), new Map([[other, 1]]));
    taken[7]!();
    assert.deepEqual(slots.divide([busy, other]), new Map([[other, 2]]));
  });

  it("gives one slot to a webhook that fails", () => {
    const slots = new Slots(bounds);
    const failing = candidate("A", "1", { isFailing: true });
    assert.deepEqual(slots.divide([failing]), new Map([[failing, 1]]));
    const giveBack = slots.take(failing);
    assert.equal(slots.divide([failing]).size, 0);
    giveBack();
    assert.equal(slots.total, 0);
    assert.equal(slots.of(failing.webhookId), 0);
  });

  it("gives a host no more than its bound, and leaves slots to it for further workspaces", () => {
    const slots = new Slots({ ...bounds, perHost: 5 });
    const host = "shared.example";
    const [a, b, c] = [candidate("A", "1", { host }), candidate("A", "2", { host }), candidate("B", "1", { host })];
    assert.deepEqual(
      slots.divide([a, b]),
      new Map([
        [a, 2],
        [b, 1],
      ]),
    );
    for (const one of [a, a, b]) slots.take(one);
    assert.deepEqual(slots.divide([a, b, c]), new Map([[c, 1]]));
    slots.take(c);
    const further = candidate("C", "1", { host });
    assert.deepEqual(slots.divide([a, b, c, further]), new Map([[further, 1]]));
    slots.take(further);
    assert.equal(slots.divide([a, candidate("D", "1", { host })]).size, 0);
    assert.equal(slots.divide([candidate("D", "2")]).size, 1);
  });

  it("lets slow endpoints share a part of the slots, which workspaces divide", () => {
    const slots = new Slots({ ...bounds, total: 100, perWorkspace: 20 });
    const slow = (workspaceId: string) => candidate(workspaceId, "slow", { isSlow: true });
    assert.deepEqual(slots.divide([slow("A")]), new Map([[slow("A"), 2]]));
    for (let i = 0; i < 2; i++) slots.take(slow("A"));
    assert.deepEqual(slots.divide([slow("A"), slow("B")]), new Map([[slow("B"), 1]]));
    assert.deepEqual(slots.divide([candidate("A", "1")]), new Map([[candidate("A", "1"), 4]]));
  });

  it("leaves slots beside six workspaces with 50 endpoints each that take all they get", () => {
    const victim = candidate("victim", "1");
    for (const isSlow of [false, true]) {
      const slots = new Slots({ total: 100, perHost: 40, perWorkspace: 20, perWebhook: 5, slow: 20 });
      const hostile = Array.from({ length: 300 }, (_, i) => candidate(`H${i % 6}`, String(i), { isSlow }));
      for (const [one, count] of slots.divide(hostile)) for (let i = 0; i < count; i++) slots.take(one);
      assert.ok(slots.total <= (isSlow ? 20 : 90), String(slots.total));
      assert.deepEqual(slots.divide([...hostile, victim]).get(victim), 5);
    }
  });
});
