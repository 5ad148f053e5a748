import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { PARTITIONS, partitionOf, prefixOf, SLOTS, slotOf, slotOfPartition } from "./partitions.ts";

describe("partitions", () => {
  it("compute slots as Redis Cluster does", () => {
    // The check value of the specification, and replies of CLUSTER KEYSLOT.
    assert.equal(slotOf("123456789"), 0x31c3);
    assert.equal(slotOf("foo"), 12_182);
    assert.equal(slotOf(""), 0);
    assert.equal(slotOf("ü\u0000c"), 16_163);
  });

  it("are spread evenly over the slots", () => {
    const spans = Array.from({ length: PARTITIONS }, (_, i) => Math.floor((slotOfPartition(i) * PARTITIONS) / SLOTS));
    assert.deepEqual(spans, [...spans.keys()]);
    assert.equal(new Set(spans.map(prefixOf)).size, PARTITIONS);
    assert.match(prefixOf(7), /^latchkey:\{\d+\}:$/);
  });

  it("keep the limits of one key and of one identity together", () => {
    for (const owner of ["key", "identity"]) {
      assert.equal(partitionOf(`${owner}\0id_1\0requests`), partitionOf(`${owner}\0id_1\0tokens\0a`));
    }
    assert.notEqual(partitionOf("key\0id_1\0requests"), partitionOf("key\0id_2\0requests"));
  });

  it("spread the identifiers of a namespace", () => {
    const counts = new Map<number, number>();
    for (let i = 0; i < 10 * PARTITIONS; i++) {
      const partition = partitionOf(`n\0ns_1\0user ${i}`);
      counts.set(partition, (counts.get(partition) ?? 0) + 1);
    }
    assert.equal(counts.size, PARTITIONS);
    assert.ok(Math.max(...counts.values()) < 40);
  });
});
