import assert from "node:assert/strict";
import { it } from "node:test";
import { keptTick } from "./keep-ticks-fast.ts";

it("references an entry of the queue of this version of Node", () => {
  assert.ok(keptTick && "callback" in keptTick && "args" in keptTick);
});
