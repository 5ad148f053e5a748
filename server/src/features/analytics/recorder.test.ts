import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { collect, growthOfOld } from "../../../test/garbage.ts";
import { budgetIdsOf, cellsOf, keyCounts, minuteCounts, type VerificationCell } from "./batch.ts";
import { CELLS_PER_BATCH, type DrainedCounts, type KeyUse, Recorder } from "./recorder.ts";

const NOON = 1_768_478_400_000;
const key = { keyId: "key_1", apiId: "api_1", identity: { id: "id_1" } };

function open(whenFull?: () => void) {
  const clock = new SimulatedClock(NOON);
  const recorder = new Recorder(clock, whenFull);
  const verify = (more: object = {}) =>
    recorder.verification({
      at: clock.now(),
      startedAt: clock.monotonic(),
      workspaceId: "ws_1",
      key,
      code: "VALID",
      tags: undefined,
      creditsSpent: 0,
      cost: undefined,
      limit: undefined,
      address: "203.0.113.7",
      requestId: "req_1",
      ...more,
    });
  return { clock, recorder, verify };
}

/** A verification of a key, or credits that are charged for one later. */
const useOfKey = fc.record({
  keyId: fc.constantFrom("key_1", "key_2", "key_3", "key_4"),
  identityId: fc.constantFrom("id_1", "id_2", null),
  list: fc.nat(2),
  isCopied: fc.boolean(),
  isLater: fc.boolean(),
  tags: fc.constantFrom(undefined, [], ["a"]),
  credits: fc.nat(9),
});

/** What was drained, in cells. */
function cellsIn(drained: DrainedCounts | undefined): VerificationCell[] {
  return [...cellsOf(drained!.keys.map((columns) => keyCounts(columns))), ...drained!.verifications];
}

/** The last use of each key, 0 for none. */
function usesIn({ keys, uses }: DrainedCounts): KeyUse[] {
  const inColumns = keys.flatMap(({ keyIds, usedAt }) => keyIds.map((keyId, i) => ({ keyId, at: usedAt[i]! })));
  const last = new Map<string, number>();
  for (const { keyId, at } of [...inColumns, ...uses]) last.set(keyId, Math.max(at, last.get(keyId) ?? 0));
  return [...last].map(([keyId, at]) => ({ keyId, at }));
}

describe("Recorder", () => {
  it("drains nothing without events", () => {
    assert.equal(open().recorder.drain(), undefined);
  });

  it("keeps the counts of a key apart when its budgets change within a minute", () => {
    const { recorder, verify } = open();
    const [team, company] = [{ budgetId: "bud_team" }, { budgetId: "bud_company" }];
    verify({ key: { ...key, budgets: [team, company] }, creditsSpent: 2 });
    verify({ key: { ...key, budgets: [] }, creditsSpent: 1 });
    verify({ key: { ...key, budgets: [company] }, creditsSpent: 4 });
    // The record of the key was read again.
    verify({ key: { ...key, budgets: [{ ...team }, { ...company }] }, creditsSpent: 3 });
    assert.deepEqual(
      cellsIn(recorder.drain()).map(([, , , , , , , count, amount, , ...budgets]) => [count, amount, ...budgets]),
      [
        [2, 5, ["bud_team", "bud_company"]],
        [1, 1],
        [1, 4, ["bud_company"]],
      ],
    );
  });

  it("counts each key, API, identity and budget as often as it was used", () => {
    const listed = fc.shuffledSubarray(["bud_1", "bud_2", "bud_3"]).map((ids) => ids.map((budgetId) => ({ budgetId })));
    // Keys share a list of budgets, or have one of their own with the same content.
    const used = fc.tuple(fc.array(listed, { minLength: 1, maxLength: 3 }), fc.array(useOfKey, { maxLength: 60 }));
    fc.assert(
      fc.property(used, ([lists, uses]) => {
        const { clock, recorder, verify } = open();
        const expected = new Map<string, [count: number, amount: number]>();
        for (const { keyId, identityId, list, isCopied, isLater, tags, credits } of uses) {
          const shared = lists[list % lists.length]!;
          const budgets = isCopied ? structuredClone(shared) : shared;
          const used = { keyId, apiId: "api_1", identity: identityId === null ? null : { id: identityId }, budgets };
          if (isLater) recorder.credits({ at: clock.now(), workspaceId: "ws_1", key: used, tags, credits });
          else verify({ key: used, tags, creditsSpent: credits });
          const subjects = [keyId, "api_1", ...(identityId === null ? [] : [identityId]), ...budgetIdsOf(budgets)];
          for (const subject of subjects) {
            const [count, amount] = expected.get(subject) ?? [0, 0];
            expected.set(subject, [count + (isLater ? 0 : 1), amount + credits]);
          }
        }
        const { keys, verifications } = recorder.drain() ?? { keys: [], verifications: [] };
        const parts = keys.flatMap((columns) => [keyCounts(columns, 0, 2), keyCounts(columns, 2)]);
        const batch = { recorder: "rec_1", sequence: 1, keys: parts, verifications, ratelimits: [], decisions: [] };
        for (const one of [batch, { ...batch, keys: [], verifications: [...cellsOf(parts), ...verifications] }]) {
          const counted = new Map<string, [count: number, amount: number]>();
          for (const { subject, count, amount } of minuteCounts([one])) {
            const [before, spent] = counted.get(subject) ?? [0, 0];
            counted.set(subject, [before + count, spent + amount]);
          }
          assert.deepEqual(counted, expected);
        }
      }),
    );
  });

  it("adds credits that are charged later without another verification", () => {
    const { clock, recorder, verify } = open();
    const charge = (credits: number, tags?: string[]) =>
      recorder.credits({ at: clock.now(), workspaceId: "ws_1", key, tags, credits });
    verify();
    charge(7);
    charge(-2);
    charge(3, ["model=large"]);
    const drained = recorder.drain()!;
    assert.deepEqual(cellsIn(drained), [
      [NOON, "ws_1", "api_1", "key_1", "id_1", "", "VALID", 1, 5, 0],
      [NOON, "ws_1", "api_1", "key_1", "id_1", '["model=large"]', "VALID", 0, 3, 0],
    ]);
    clock.advance(60_000);
    charge(1);
    assert.deepEqual(
      [usesIn(drained), usesIn(recorder.drain()!)],
      [[{ keyId: "key_1", at: NOON }], [{ keyId: "key_1", at: 0 }]],
    );
  });

  it("adds up events with the same minute, key, identity, code and tag set", () => {
    const { clock, recorder, verify } = open();
    verify({ tags: ["b", "a", "b"], creditsSpent: 2 });
    verify({ tags: ["a", "b"], creditsSpent: 3, startedAt: clock.monotonic() - 1.5 });
    verify({ tags: ["a"] });
    verify({ code: "EXPIRED", tags: [] });
    verify({ key: { ...key, identity: null } });
    verify({ key: null, code: "NOT_FOUND" });
    clock.advance(60_000);
    verify();
    const drained = recorder.drain()!;
    assert.equal(drained.events, 7);
    const minute = NOON;
    assert.deepEqual(
      cellsIn(drained).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
      [
        [minute, "ws_1", "api_1", "key_1", "id_1", "", "EXPIRED", 1, 0, 0],
        [minute, "ws_1", "api_1", "key_1", "id_1", '["a","b"]', "VALID", 2, 5, 1_500],
        [minute, "ws_1", "api_1", "key_1", "id_1", '["a"]', "VALID", 1, 0, 0],
        [minute, "ws_1", "api_1", "key_1", null, "", "VALID", 1, 0, 0],
        [minute, "ws_1", null, null, null, "", "NOT_FOUND", 1, 0, 0],
        [minute + 60_000, "ws_1", "api_1", "key_1", "id_1", "", "VALID", 1, 0, 0],
      ],
    );
    assert.equal(recorder.drain(), undefined);
    assert.equal(recorder.recorded, 7);
  });

  it("counts more tag sets of one key than it scans", () => {
    const { recorder, verify } = open();
    for (let round = 0; round < 3; round++) for (let i = 0; i < 50; i++) verify({ tags: [`${i}`] });
    const verifications = cellsIn(recorder.drain());
    assert.equal(verifications.length, 50);
    assert(verifications.every(([, , , , , , , count]) => count === 3));
  });

  it("calls `whenFull` once when the counts fill a batch", () => {
    let calls = 0;
    const { recorder, verify } = open(() => void calls++);
    for (let i = 0; i < CELLS_PER_BATCH - 1; i++) verify({ key: { ...key, keyId: `key_${i}` } });
    assert.equal(calls, 0);
    for (let i = 0; i < 10; i++) verify({ key: { ...key, keyId: `key_${CELLS_PER_BATCH + i}` } });
    assert.equal(calls, 1);
    assert.equal(cellsIn(recorder.drain()).length, CELLS_PER_BATCH + 9);
  });

  it("leaves nothing to a full collection of garbage", () => {
    const { recorder, verify } = open();
    let number = 0;
    const second = () => {
      number++;
      for (let i = 0; i < CELLS_PER_BATCH; i++) verify({ key: { ...key, keyId: `key_${number}_${i}` } });
      recorder.drain();
      // What survives two of them is old.
      for (let i = 0; i < 2; i++) collect({ type: "minor" });
    };
    for (let i = 0; i < 5; i++) second();
    const kept = growthOfOld(() => {
      for (let i = 0; i < 30; i++) second();
    });
    assert(kept < 30 * CELLS_PER_BATCH * 10, `${kept} bytes`);
  });

  it("records the last use of keys, and ignores attempts with deleted keys", () => {
    const { clock, recorder, verify } = open();
    verify({ code: "DISABLED" });
    clock.advance(10);
    verify();
    verify({ key: { ...key, keyId: "key_2" }, code: "NOT_FOUND" });
    assert.deepEqual(usesIn(recorder.drain()!), [
      { keyId: "key_1", at: NOON + 10 },
      { keyId: "key_2", at: 0 },
    ]);
  });
});
