import assert from "node:assert/strict";
import { it } from "node:test";
import { keptTick } from "./keep-ticks-fast.ts";

it("keeps an entry of the queue as this Node makes it", () => {
  assert.ok(keptTick && "callback" in keptTick && "args" in keptTick);
});
