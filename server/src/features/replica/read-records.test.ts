import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ReadRecords } from "./read-records.ts";

const record = (json: string, changesSilently = false) => ({ apiId: "api_1", json, changesSilently });

describe("ReadRecords", () => {
  it("has what was read since the last change, for each workspace apart", () => {
    const records = new ReadRecords(() => "1");
    records.current("ws_1").set("a", record("{}"));
    assert.deepEqual(records.current("ws_1").get("a"), record("{}"));
    assert.equal(records.current("ws_2").get("a"), undefined);
  });

  it("has nothing of before a change, also if it is put there after it", () => {
    let position = "1";
    const records = new ReadRecords(() => position);
    const before = records.current("ws_1");
    before.set("a", record("{}"));
    position = "2";
    const after = records.current("ws_1");
    assert.equal(after.get("a"), undefined);
    before.set("b", record("{}"));
    assert.equal(after.get("b"), undefined);
    // A position that returns is another one's: nothing of before is found.
    position = "1";
    assert.equal(records.current("ws_1").get("a"), undefined);
  });

  it("never has what changes without a row", () => {
    const records = new ReadRecords(() => "1");
    records.current("ws_1").set("a", record("{}", true));
    assert.equal(records.current("ws_1").get("a"), undefined);
  });

  it("keeps a bounded number of characters, of all workspaces together", () => {
    let position = "1";
    const records = new ReadRecords(() => position);
    const long = record("x".repeat(1_000_000));
    const kept = () =>
      Array.from({ length: 40 }, (_, i) => {
        records.current(`ws_${i}`).set("a", long);
        return records.current(`ws_${i}`).get("a");
      }).filter((one) => one !== undefined).length;
    assert.equal(kept(), 15);
    position = "2";
    assert.equal(kept(), 15);
  });
});
