import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextIteration } from "node:timers/promises";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import { GatheredReads } from "./gathered-reads.ts";

/** Reads whose queries the test ends one by one. */
function openReads(readsMax?: number) {
  const queries: { names: readonly string[]; end: PromiseWithResolvers<void> }[] = [];
  const reads = new GatheredReads<string>(async (names) => {
    const end = Promise.withResolvers<void>();
    queries.push({ names, end });
    await end.promise;
    return new Map(names.filter((name) => !name.startsWith("no")).map((name) => [name, `value of ${name}`]));
  }, readsMax);
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

test("reads that wait for queries are rejected when the store does not answer one, and not for other failures", async () => {
  const { reads, queries } = openReads();
  const find = (name: string) => reads.find(name).catch(({ message }: Error) => message);
  const hanging = [find("a")];
  await nextIteration();
  hanging.push(find("b"));
  await nextIteration();
  const broken = find("c");
  await nextIteration();
  queries[0]!.end.reject(new Error("broken"));
  assert.equal(await hanging[0], "broken");
  await nextIteration();
  assert.deepEqual(queries[2]!.names, ["c"]);
  const waiting = [find("d"), find("e")];
  await nextIteration();
  queries[1]!.end.reject(new StoreUnavailable("away"));
  for (let i = 0; i < 3; i++) await nextIteration();
  assert.equal(queries.length, 3);
  assert.deepEqual(await Promise.all([hanging[1], ...waiting]), ["away", "away", "away"]);
  const later = find("d");
  await nextIteration();
  for (const { end } of queries) end.resolve();
  assert.deepEqual(await Promise.all([broken, later]), ["value of c", "value of d"]);
});

test("no more queries run at the same time than the reader may have", async () => {
  const { reads, queries } = openReads(1);
  const first = reads.find("a");
  await nextIteration();
  const others = [reads.find("b"), reads.find("c")];
  await nextIteration();
  assert.equal(queries.length, 1);
  queries[0]!.end.resolve();
  await first;
  await nextIteration();
  assert.deepEqual(queries[1]!.names, ["b", "c"]);
  queries[1]!.end.resolve();
  await Promise.all(others);
});
