import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { joinProcedures } from "./join-procedures.ts";
import type { Sql } from "./store.ts";

describe("procedures of several parts", () => {
  const find = async (_: Sql, id: string) => id;
  const count = async (_: Sql, __: null) => 1;

  it("are found by name, with their types and pools", async () => {
    const joined = joinProcedures(
      { reading: { find }, writing: {}, pools: { find: "lookup" } },
      { reading: { count }, writing: { remove: find } },
    );
    const id: string = await joined.reading.find({} as Sql, "a");
    const number: number = await joined.reading.count({} as Sql, null);
    assert.deepEqual([id, number, joined.pools], ["a", 1, { find: "lookup" }]);
    // @ts-expect-error It is none of the procedures that read.
    assert.equal(joined.reading.remove, undefined);
  });

  it("have different names", () => {
    const part = { reading: { find }, writing: {} };
    assert.throws(() => joinProcedures(part, part), /Two procedures are named find/);
  });
});
