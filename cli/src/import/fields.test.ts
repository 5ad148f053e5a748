import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Fields } from "./fields.ts";

describe("unread fields", () => {
  it("are those whose value means anything", () => {
    const empty = [null, "", " ", "false", "F", " 0 ", "0.00", "-1", "{ }", "[]", "null\n", [], {}, { a: [], b: 0 }];
    const fields = new Fields(empty.map((value, i) => [`empty${i}`, value]));
    assert.deepEqual(fields.unread(), []);
    const full = ["x", "00.1", "{a}", "1", true, [1], { a: { b: 0 } }];
    assert.equal(new Fields(full.map((value, i) => [`full${i}`, value])).unread().length, full.length);
  });

  it("are found in linear time", () => {
    const fields = new Fields([["note", `${" ".repeat(300_000)}x`]]);
    const before = process.threadCpuUsage();
    assert.deepEqual(fields.unread(), ["note"]);
    const { user, system } = process.threadCpuUsage(before);
    assert.ok(user + system < 1_000_000, `${user + system} µs`);
  });
});
