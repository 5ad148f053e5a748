import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventTypeNames, eventTypes, hasActor } from "./types.ts";

describe("event types", () => {
  it("have an actor in their data if they say so", () => {
    for (const type of eventTypeNames) assert.equal(hasActor(type), "actor" in eventTypes[type].data.shape, type);
  });
});
