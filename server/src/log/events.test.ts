import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import { openEvents } from "./events.ts";
import { openLog } from "./log.ts";

class StoreUnavailable extends Error {
  override name = "StoreUnavailable";
}

function open() {
  const clock = new SimulatedClock(0);
  const lines: { path?: string; suppressed?: number; error: { name: string; stack?: string[] } }[] = [];
  const log = openLog("info", { write: (line) => void lines.push(JSON.parse(line)) });
  return { clock, lines, events: openEvents(log, () => clock.monotonic()) };
}

describe("requestFailed", () => {
  it("is logged ten times a minute for each kind of failure, then with the number of suppressed lines", () => {
    const { clock, lines, events } = open();
    for (let i = 0; i < 1_000; i++) events.requestFailed(new TypeError("broken"), `req_${i}`, "/v2/keys.getKey");
    assert.equal(lines.length, 10);
    events.requestFailed(new RangeError("another"), "req", "/v2/keys.getKey");
    assert.equal(lines.length, 11);
    clock.advance(60_000);
    events.requestFailed(new TypeError("broken"), "req", "/v2/keys.getKey");
    assert.deepEqual([lines.length, lines.at(-1)!.suppressed], [12, 990]);
    events.requestFailed(new TypeError("broken"), "req", "/v2/keys.getKey");
    assert.equal(lines.at(-1)!.suppressed, undefined);
  });

  it("has a stack, unless the database is unreachable", () => {
    const { lines, events } = open();
    events.requestFailed(new TypeError("broken"), "req", "/");
    events.requestFailed(new StoreUnavailable("away"), "req", "/");
    assert(lines[0]!.error.stack);
    assert.equal(lines[1]!.error.name, "StoreUnavailable");
    assert.equal(lines[1]!.error.stack, undefined);
  });

  it("samples a bounded number of kinds", () => {
    const { lines, events } = open();
    for (let i = 0; i < 10_000; i++) {
      events.requestFailed(Object.assign(new Error("x"), { code: `E${i}` }), "req", "/");
    }
    assert.equal(lines.length, 210);
  });
});
