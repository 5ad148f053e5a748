import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import { CallerPlaces, type PassedOn, PLACES_MAX } from "./caller-places.ts";

const WAITING_MAX = 1_000;
const WAIT_MAX = 5_000;

class TestRequest implements PassedOn {
  state = "waiting";
  isCallersTurn = false;

  begin(): void {
    this.state = "open";
  }

  waitsForCaller(): boolean {
    return this.isCallersTurn;
  }

  fail(): void {
    this.state = "failed";
  }
}

describe("the requests of callers that home has (rule 222)", () => {
  function open() {
    const clock = new SimulatedClock(0);
    const places = new CallerPlaces(clock);
    const enter = () => {
      const request = new TestRequest();
      places.enter(request);
      return request;
    };
    const full = Array.from({ length: PLACES_MAX }, enter);
    return { clock, places, enter, full };
  }

  it("replace the one that has waited for its caller for the longest", () => {
    const { enter, full } = open();
    assert(full.every(({ state }) => state === "open"));
    const [first, second] = [full[7], full[9]];
    assert(first && second);
    first.isCallersTurn = true;
    second.isCallersTurn = true;
    assert.equal(enter().state, "open");
    assert.deepEqual([first.state, second.state], ["failed", "open"]);
  });

  it("wait in their order while all others wait for home, for a limited time", () => {
    const { clock, places, enter, full } = open();
    const [first, second, third] = [enter(), enter(), enter()];
    assert.equal(first.state, "waiting");
    places.leave(second);
    places.leave(full[0] ?? first);
    assert.deepEqual([first.state, third.state], ["open", "waiting"]);
    clock.advance(WAIT_MAX - 1);
    assert.equal(third.state, "waiting");
    clock.advance(1);
    assert.deepEqual([first.state, second.state, third.state], ["open", "waiting", "failed"]);
    // Its place was not taken twice.
    places.leave(first);
    assert.equal(enter().state, "open");
    assert.equal(enter().state, "waiting");
  });

  it("keep no place if they cannot begin", () => {
    const { places, enter, full } = open();
    const broken = new TestRequest();
    broken.begin = () => {
      throw new TypeError("A header has an invalid character");
    };
    places.leave(full[0] ?? broken);
    places.enter(broken);
    assert.equal(broken.state, "failed");
    assert.deepEqual([enter().state, enter().state], ["open", "waiting"]);
  });

  it("wait with a limited number of others", () => {
    const { enter } = open();
    const waiting = Array.from({ length: WAITING_MAX }, enter);
    assert.equal(enter().state, "failed");
    assert(waiting.every(({ state }) => state === "waiting"));
  });
});
