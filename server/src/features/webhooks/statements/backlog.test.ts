import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../../../../../engine/src/clock/clock.ts";
import { Backlog, PENDING_MAX, PENDING_UNPROVEN_MAX, roomOf } from "./backlog.ts";

describe("the backlog of a webhook", () => {
  it("is one range for any number of events", () => {
    const backlog = new Backlog(null);
    for (let number = 10; number < 10_000; number++) backlog.open(number);
    assert.equal(backlog.column, "[[10,null]]");
    assert.deepEqual(
      [9, 10, 1_000_000].map((number) => backlog.has(number)),
      [false, true, true],
    );
    backlog.advance(500);
    assert.equal(backlog.column, "[[500,null]]");
    backlog.advance(null);
    assert.equal(backlog.column, null);
  });

  it("leaves out what happened while the webhook was disabled", () => {
    const backlog = new Backlog("[[10,null]]");
    backlog.closeBefore(20);
    backlog.closeBefore(25);
    backlog.open(30);
    assert.equal(backlog.column, "[[10,19],[30,null]]");
    assert.deepEqual(
      [19, 20, 29, 30].map((number) => backlog.has(number)),
      [true, false, false, true],
    );
    backlog.advance(19);
    assert.equal(backlog.column, "[[19,19],[30,null]]");
    backlog.advance(20);
    assert.equal(backlog.column, "[[30,null]]");
    backlog.closeBefore(30);
    assert(backlog.isEmpty);
  });

  it("has a bounded number of ranges, and then sends too much rather than too little", () => {
    const backlog = new Backlog(null);
    for (let number = 0; number < 10_000; number += 10) {
      backlog.open(number);
      backlog.closeBefore(number + 5);
    }
    backlog.open(10_000);
    assert(backlog.column!.length < 500);
    for (let number = 0; number < 10_000; number += 10) assert(backlog.has(number));
  });

  it("gives room to an endpoint that works, and a probe a minute to others", () => {
    const now = instantAt(1_000_000);
    const webhook = { failing_since: null, delivered_at: now - 1_000, handed_at: now - 1_000, pending: 300 };
    assert.equal(roomOf(webhook, now), PENDING_MAX - 300);
    assert.equal(roomOf({ ...webhook, pending: PENDING_MAX }, now), 0);
    for (const unproven of [{ failing_since: 1 }, { delivered_at: null }, { delivered_at: now - 61_000 }]) {
      assert.equal(roomOf({ ...webhook, ...unproven, pending: 0 }, now), PENDING_UNPROVEN_MAX);
      assert.equal(roomOf({ ...webhook, ...unproven }, now), 0);
      assert.equal(roomOf({ ...webhook, ...unproven, handed_at: now - 60_000 }, now), 1);
      assert.equal(roomOf({ ...webhook, ...unproven, handed_at: null }, now), 1);
      assert.equal(roomOf({ ...webhook, ...unproven, handed_at: null, pending: PENDING_MAX }, now), 0);
    }
  });
});
