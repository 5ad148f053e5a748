import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Charge, LimitDecision } from "./counters.ts";
import { EXCEEDED_PER_MINUTE, type ExceededLimit, ExceededLimits } from "./exceeded-limits.ts";

const charge = (name: string, duration = 1_000): Charge => ({
  counter: `key\0pool_1\0${name}`,
  limit: 5,
  duration,
  cost: 1,
});
const decided = (at: number, ...allowed: boolean[]): LimitDecision => ({
  outcome: "decided",
  at,
  allowed: false,
  retryAfter: 1,
  limits: allowed.map((one) => ({ allowed: one, remaining: 0, reset: at, retryAfter: 1 })),
});
const about = { keyId: "key_1", apiId: "api_1", identity: { id: "id_1", externalId: "acme" } };

describe("exceeded limits", () => {
  it("are collected once for each limit and window, of limits that reject only", () => {
    const exceeded = new ExceededLimits();
    const charges = [charge("a"), charge("b")];
    exceeded.add("ws", charges, decided(500, false, true), about);
    exceeded.add("ws", charges, decided(999, false, false), about);
    exceeded.add("ws", charges, decided(1_000, false, true), about);
    assert.deepEqual(
      exceeded.take().map(({ name, windowEnd }) => [name, windowEnd]),
      [
        ["a", 1_000],
        ["b", 1_000],
        ["a", 2_000],
      ],
    );
    assert.deepEqual(exceeded.take(), []);
  });

  it("name the object that the limit belongs to", () => {
    const exceeded = new ExceededLimits();
    const of = (counter: string, key: typeof about | null) => {
      exceeded.add("ws", [{ ...charge(""), counter }], decided(0, false), key);
      const [{ counter: _, workspaceId, at, windowEnd, limit, duration, ...rest }] = exceeded.take() as [ExceededLimit];
      return rest;
    };
    const key = { keyId: "key_1", apiId: "api_1", externalId: "acme", name: "requests" };
    assert.deepEqual(of("key\0pool_1\0requests", about), { objectId: "key_1", ...key });
    assert.deepEqual(of("identity\0id_1\0requests", about), { objectId: "id_1", identityId: "id_1", ...key });
    assert.deepEqual(of("n\0rlns_1\0user\u00001", null), {
      objectId: "rlns_1",
      namespaceId: "rlns_1",
      identifier: "user\u00001",
    });
  });

  it("are bounded for each workspace and minute, and a later call of the window is collected in the next minute", () => {
    const exceeded = new ExceededLimits();
    for (let i = 0; i < 2 * EXCEEDED_PER_MINUTE; i++) {
      exceeded.add("hostile", [charge(`h${i}`, 600_000)], decided(0, false), about);
    }
    exceeded.add("other", [charge("o")], decided(0, false), about);
    assert.equal(exceeded.take().length, EXCEEDED_PER_MINUTE + 1);
    assert.equal(exceeded.dropped, EXCEEDED_PER_MINUTE);
    exceeded.add("hostile", [charge("h119", 600_000)], decided(60_000, false), about);
    assert.equal(exceeded.take().length, 1);
  });

  it("are bounded while they cannot be written", () => {
    const exceeded = new ExceededLimits();
    for (let round = 0; round < 200; round++) {
      const minute = round * 60_000;
      for (let i = 0; i < EXCEEDED_PER_MINUTE; i++) exceeded.add("ws", [charge(`${i}`)], decided(minute, false), about);
    }
    const waiting = exceeded.take();
    assert.equal(waiting.length, 5_000);
    exceeded.adopt(waiting);
    exceeded.adopt(waiting);
    assert.equal(exceeded.take().length, 5_000);
  });
});
