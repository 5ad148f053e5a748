import assert from "node:assert/strict";
import { it } from "node:test";
import { referencedTick } from "./keep-ticks-fast.ts";

it("references an entry of the queue of this version of Node", () => {
  assert.ok(referencedTick && "callback" in referencedTick && "args" in referencedTick);
});
