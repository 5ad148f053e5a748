import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextIteration } from "node:timers/promises";
import { GatheredReads } from "./gathered-reads.ts";

/** Reads whose queries the test ends one by one. */
function openReads() {
  const queries: { names: readonly string[]; end: PromiseWithResolvers<void> }[] = [];
  const reads = new GatheredReads<string>(async (names) => {
    const end = Promise.withResolvers<void>();
    queries.push({ names, end });
    await end.promise;
    return new Map(names.filter((name) => !name.startsWith("no")).map((name) => [name, `value of ${name}`]));
  });
  return { reads, queries };
}

test("reads of one iteration, and those that arrive while two queries run, share a query", async () => {
  const { reads, queries } = openReads();
  const found = ["a", "b", "a", "nothing"].map((name) => reads.find(name));
  await nextIteration();
  found.push(reads.find("c"));
  await nextIteration();
  found.push(reads.find("d"));
  await nextIteration();
  found.push(reads.find("e"));
  await nextIteration();
  assert.deepEqual(
    queries.map(({ names }) => names),
    [["a", "b", "nothing"], ["c"]],
  );
  queries[1]!.end.resolve();
  await found[4];
  await nextIteration();
  assert.deepEqual(queries[2]!.names, ["d", "e"]);
  for (const { end } of queries) end.resolve();
  const value = (name: string) => `value of ${name}`;
  const values = [value("a"), value("b"), value("a"), undefined, value("c"), value("d"), value("e")];
  assert.deepEqual(await Promise.all(found), values);
});

test("a read that begins after a query does not get its values", async () => {
  const { reads, queries } = openReads();
  const first = reads.find("a");
  await nextIteration();
  const second = reads.find("a");
  queries[0]!.end.resolve();
  await first;
  await nextIteration();
  assert.equal(queries.length, 2);
  queries[1]!.end.resolve();
  await second;
});

test("a failed query rejects its reads, and the next one runs", async () => {
  const { reads, queries } = openReads();
  const failing = [reads.find("a"), reads.find("b")].map((found) => assert.rejects(found, /broken/));
  await nextIteration();
  queries[0]!.end.reject(new Error("broken"));
  await Promise.all(failing);
  const found = reads.find("a");
  await nextIteration();
  queries[1]!.end.resolve();
  assert.equal(await found, "value of a");
});
