import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { instantAt } from "../clock/clock.ts";
import { endAfterReroll } from "./expiry.ts";

const NOW = instantAt(1_768_478_400_001);
const LATEST = 4_102_444_800_000;

describe("endAfterReroll", () => {
  it("is now without a grace period", () => assert.equal(endAfterReroll(NOW, 0, null, LATEST), NOW));
  it("rounds up to a whole minute", () => {
    assert.equal(endAfterReroll(NOW, 1, null, LATEST), 1_768_478_460_000);
    assert.equal(endAfterReroll(NOW, 59_999, null, LATEST), 1_768_478_460_000);
    assert.equal(endAfterReroll(NOW, 60_000, null, LATEST), 1_768_478_520_000);
  });
  it("never extends an expiry", () => {
    assert.equal(endAfterReroll(NOW, 60_000, NOW + 1, LATEST), NOW + 1);
    assert.equal(endAfterReroll(NOW, 0, 0, LATEST), 0);
  });
  it("is at most the latest representable time", () => assert.equal(endAfterReroll(NOW, LATEST, null, LATEST), LATEST));
});
