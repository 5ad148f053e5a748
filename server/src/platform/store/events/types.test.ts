import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { eventTypeNames, eventTypes, hasActor } from "./types.ts";

describe("event types", () => {
  it("have an actor in their data if they say so", () => {
    for (const type of eventTypeNames) assert.equal(hasActor(type), "actor" in eventTypes[type].data.shape, type);
  });

  it("are those in the table of docs/events.md", () => {
    const manual = readFileSync(new URL("../../../../../docs/events.md", import.meta.url), "utf8");
    const [, table = ""] = /\n\| Type \| When \|\n([\s\S]*?)\n\n/.exec(manual) ?? [];
    const cells = table.split("\n").map((row) => row.split(" | ")[0]!);
    const documented = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, type]) => type));
    assert.deepEqual(documented.sort(), eventTypeNames.toSorted());
  });
});
