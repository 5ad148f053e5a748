import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { pathToFileURL } from "node:url";
import { SimulatedClock } from "../../../../../engine/src/clock/simulated.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import { openSqliteStore, type SqliteOptions } from "./store.ts";

/** A module for database threads that counts in shared memory how many threads have loaded it. */
const threadModule = `
  import { getHeapSpaceStatistics } from "node:v8";
  export default function openProcedures({ started, fails }) {
    Atomics.add(started, 0, 1);
    if (Atomics.sub(fails, 0, 1) === 1) throw new Error("cannot start");
    return { reading: { answer: async () => "read", block, growHeap }, writing: { answer: async () => "written", run } };
  }
  async function block(_, gate) {
    Atomics.wait(gate, 0, 0);
    return "long";
  }
  /** Returns sizes of the space for new objects, while objects live for a while. */
  async function growHeap() {
    const living = [];
    const sizes = [];
    for (let i = 0; i < 3_000_000; i++) {
      living[i % 100_000] = [i];
      if (i % 100_000 > 0) continue;
      sizes.push(getHeapSpaceStatistics().find((space) => space.space_name === "new_space").space_size);
    }
    return sizes;
  }
  async function run({ db }, text) {
    await db.executeQuery({ sql: text, parameters: [], query: { kind: "RawNode" }, queryId: {} });
  }
`;

async function openCounted(t: TestContext, options: Partial<SqliteOptions>) {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  const started = new Int32Array(new SharedArrayBuffer(4));
  /** The number of the start, from now on, that fails. */
  const fails = new Int32Array(new SharedArrayBuffer(4));
  const module = join(folder, "procedures.mjs");
  writeFileSync(module, threadModule);
  const procedures = { module: pathToFileURL(module).href, options: { started, fails } };
  const clock = new SimulatedClock(0);
  const store = await openSqliteStore<never>(join(folder, "latchkey.db"), procedures, { clock, ...options });
  t.after(async () => {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const read = () => store.read("answer" as never, null as never) as Promise<unknown>;
  return { store, read, fails, threads: () => started[0] };
}

describe("the threads of an embedded database", () => {
  it("start at once", async (t) => {
    const { threads, read } = await openCounted(t, {});
    assert.equal(threads(), 2);
    assert.equal(await read(), "read");
    assert.equal(threads(), 2);
  });

  it("start at the first read if there are few reads", async (t) => {
    const { threads, read } = await openCounted(t, { readsRarely: true });
    assert.equal(threads(), 1);
    assert.deepEqual(await Promise.all([read(), read()]), ["read", "read"]);
    assert.equal(threads(), 2);
  });

  it("keep little memory for new objects", async (t) => {
    const { store } = await openCounted(t, {});
    const sizes = (await store.read("growHeap" as never, null as never)) as number[];
    // 8 MiB with the limit, 32 and 64 without. During a collection it can be up to four times as much.
    const large = sizes.filter((size) => size > 16 * 2 ** 20);
    assert(large.length < sizes.length / 2, `${sizes}`);
  });

  it("read at once while a long read is under way, which has a thread of its own", async (t) => {
    const { store, read, threads } = await openCounted(t, { longReads: ["block"] });
    assert.equal(threads(), 2);
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const blocked = store.read("block" as never, gate as never) as Promise<unknown>;
    assert.equal(await read(), "read");
    gate[0] = 1;
    Atomics.notify(gate, 0);
    assert.equal(await blocked, "long");
    assert.equal(threads(), 3);
  });

  it("start again at the next read after a failure", async (t) => {
    const { store, threads, read, fails } = await openCounted(t, { readsRarely: true });
    fails[0] = 1;
    await assert.rejects(read(), StoreUnavailable);
    assert.equal(store.failure, undefined);
    assert.equal(await read(), "read");
    assert.equal(threads(), 3);
  });

  it("do not start after the store was closed", async (t) => {
    const { store, threads, read } = await openCounted(t, { readsRarely: true });
    const first = read();
    const closed = store.close();
    await assert.rejects(read(), StoreUnavailable);
    await Promise.all([closed, first.catch(() => {})]);
    assert.equal(threads(), 2);
  });

  it("report writes for which there is no room, and no other failures", async (t) => {
    const { store } = await openCounted(t, {});
    const run = (text: string) => store.transact("run" as never, text as never);
    await run("create table numbers (number integer primary key, filling blob)");
    await assert.rejects(run("insert into missing values (1)"), /no such table/);
    assert.deepEqual([store.writes!.trouble, store.writes!.refused], [undefined, 0]);
    // SQLITE_FULL, as from a file system without room.
    await run("pragma max_page_count = 20");
    for (let i = 0; i < 2; i++) {
      await assert.rejects(run("insert into numbers (filling) values (zeroblob(200000))"), StoreUnavailable);
    }
    await run("insert into numbers (filling) values (zeroblob(10))");
    assert.deepEqual([store.writes!.trouble, store.writes!.isRefusing, store.writes!.refused], ["full", true, 2]);
    store.writes!.recover();
    assert.deepEqual([store.writes!.trouble, store.writes!.isRefusing], ["full", false]);
  });
});
