import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Candidate, Slots } from "./slots.ts";

const bounds = { total: 10, perHost: 8, perWorkspace: 6, perWebhook: 4 };
const candidate = (workspaceId: string, webhookId: string, more: Partial<Candidate> = {}): Candidate => ({
  workspaceId,
  webhookId: `${workspaceId}${webhookId}`,
  host: `${workspaceId}${webhookId}.example`,
  isFailing: false,
  ...more,
});

describe("Slots", () => {
  it("gives a webhook, a workspace and all together no more than their bounds", () => {
    const slots = new Slots(bounds);
    const [a, b, c] = [candidate("A", "1"), candidate("A", "2"), candidate("B", "1")];
    assert.deepEqual([...slots.divide([a])], [[a, 4]]);
    assert.deepEqual(
      [...slots.divide([a, b])],
      [
        [a, 3],
        [b, 3],
      ],
    );
    assert.deepEqual(
      slots.divide([a, b, c]),
      new Map([
        [a, 3],
        [c, 4],
        [b, 3],
      ]),
    );
  });

  it("gives free slots to the workspace with the fewest requests", () => {
    const slots = new Slots(bounds);
    const [busy, other] = [candidate("A", "1"), candidate("B", "1")];
    for (let i = 0; i < 8; i++) slots.take(candidate("A", String(i)));
    assert.deepEqual(slots.divide([busy, other]), new Map([[other, 2]]));
    slots.giveBack(candidate("A", "7"));
    assert.deepEqual(slots.divide([busy, other]), new Map([[other, 3]]));
  });

  it("gives one slot to a webhook that fails", () => {
    const slots = new Slots(bounds);
    const failing = candidate("A", "1", { isFailing: true });
    assert.deepEqual(slots.divide([failing]), new Map([[failing, 1]]));
    slots.take(failing);
    assert.equal(slots.divide([failing]).size, 0);
    slots.giveBack(failing);
    assert.equal(slots.total, 0);
    assert.equal(slots.of(failing.webhookId), 0);
  });

  it("gives a host no more than its bound, and its next slot to another workspace", () => {
    const slots = new Slots({ ...bounds, perHost: 5 });
    const host = "shared.example";
    const [a, b, c] = [candidate("A", "1", { host }), candidate("A", "2", { host }), candidate("B", "1", { host })];
    assert.deepEqual(
      slots.divide([a, b]),
      new Map([
        [a, 3],
        [b, 2],
      ]),
    );
    for (const one of [a, a, a, b, b]) slots.take(one);
    assert.equal(slots.divide([a, b, c]).size, 0);
    assert.equal(slots.divide([candidate("B", "2")]).size, 1);
    slots.giveBack(b);
    assert.deepEqual(slots.divide([a, b, c]), new Map([[c, 1]]));
  });
});
