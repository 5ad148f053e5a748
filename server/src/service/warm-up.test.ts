import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import type { RecordCaches } from "../../../engine/src/directory/directories.ts";
import { type PackedKey, packedColumns } from "../features/keys/packed-key.ts";
import type { RecentKeysPage } from "../features/keys/statements/recent-keys.ts";
import type { AppStore } from "./app-store.ts";
import { warmUp } from "./warm-up.ts";

const NOW = 1_700_000_000_000;
const HOUR = 3_600_000;
/** What a loaded key takes of the cache. */
const BYTES = 400;

interface Options {
  /** The ages of the last uses of keys. */
  ages: readonly number[];
  bytesMax: number;
  /** Milliseconds that a query takes, and that each of its rows takes. */
  queryMs?: number;
  rowMs?: number;
  cached?: readonly number[];
  /** Keys of which the time of the last use is known exactly, the latest first. */
  newest?: readonly number[];
  /** Milliseconds of a turn of the event loop, for which each result waits. */
  turnMs?: number;
}

/** A key whose hash is its number. */
function packed(key: number): PackedKey {
  const values: Partial<Record<(typeof packedColumns)[number], string | number>> = {
    id: `key_${key}`,
    workspace_id: "ws_1",
    api_id: "api_1",
    pool_id: `pool_${key}`,
    hash: String(key),
    hash_version: 1,
    enabled: 1,
    workspace_enabled: 1,
  };
  return packedColumns.map((column) => values[column] ?? null) as unknown as PackedKey;
}

/** Warms up a cache from a database of keys `0`, `1`, …; time passes only in queries and pauses. */
function open({ ages, bytesMax, queryMs = 0, rowMs = 0, cached = [], newest = [], turnMs = 0 }: Options) {
  const clock = new SimulatedClock(NOW);
  const stopped = new AbortController();
  const loaded: string[] = [];
  const steps: { name: string; size: number; from: number; to: number }[] = [];
  const counts = { bytes: 0 };
  const idOf = (key: number) => String(key).padStart(8, "0");
  const query = <T>(name: string, size: number, result: T): T => {
    const from = clock.monotonic();
    clock.advance(queryMs + size * rowMs + turnMs);
    steps.push({ name, size, from, to: clock.monotonic() });
    return result;
  };
  const read = async (name: string, question: (RecentKeysPage & { now: number }) | readonly string[]) => {
    if (name === "usualKeysByIds") {
      const ids = question as readonly string[];
      return query(
        name,
        ids.length,
        ids.map((id) => packed(Number(id))),
      );
    }
    const { cursor, limit, idsMax, since, before, now } = question as RecentKeysPage & { now: number };
    const first = cursor === "" ? 0 : Number(cursor) + 1;
    const page = ages.slice(first, first + limit);
    const next = page.length < limit ? null : idOf(first + limit - 1);
    const times = page.map((age) => NOW - age);
    if (name === "lastUseAges") {
      const counted = times.map((time) => ({ step: Math.floor(Math.log2(Math.max(1, now - time)) * 16), keys: 1 }));
      return query(name, limit, { ages: counted, next });
    }
    const recent = times.flatMap((time, i) => (time >= since && time < before ? [idOf(first + i)] : []));
    const ids = recent.slice(0, idsMax);
    return query(name, limit, { ids, next: ids.length < idsMax ? next : ids.at(-1)! });
  };
  const present = new Set(cached.map(String));
  const directories: Pick<RecordCaches, "fillKeys"> = {
    async fillKeys(read) {
      for (const { hash } of await read()) {
        if (present.has(hash)) continue;
        loaded.push(hash);
        present.add(hash);
        counts.bytes += BYTES;
      }
    },
  };
  const store = { read, isEmbedded: true } as unknown as AppStore;
  const done = warmUp({
    clock,
    turnTime: async () => turnMs,
    store,
    newest: async (count) => newest.slice(0, count).map(idOf),
    directories,
    counts,
    bytesMax,
    stopped: stopped.signal,
  });
  /** Lets time pass until the end. */
  const finish = async () => {
    let isDone = false;
    void done.finally(() => {
      isDone = true;
    });
    for (let turn = 0; !isDone && turn < 100_000; turn++) {
      for (let i = 0; i < 20; i++) await null;
      clock.advance(1);
    }
    assert(isDone);
    await done;
  };
  return { loaded, steps, stopped, finish, counts };
}

describe("the warm-up of the cache of keys", () => {
  it("loads the keys that were used last, as many as the cache holds", async () => {
    // Every tenth key was used in the last hour, the others long ago.
    const ages = Array.from({ length: 20_000 }, (_, i) => (i % 10 === 3 ? (i * HOUR) / 20_000 : 100 * HOUR));
    const { loaded, finish, counts } = open({ ages, bytesMax: (2_000 / 0.9) * BYTES });
    await finish();
    assert.equal(loaded.length, 2_000);
    assert(loaded.every((name) => /^\d*3$/.test(name)));
    assert(counts.bytes <= 2_000 * BYTES);
  });

  it("loads first the keys of which it knows that they were used last, in their order", async () => {
    const ages = Array.from({ length: 5_000 }, () => HOUR);
    const newest = Array.from({ length: 1_000 }, (_, i) => (i * 7_919) % 5_000);
    const { loaded, steps, finish } = open({ ages, newest, bytesMax: 1e9 });
    await finish();
    const reads = steps.filter(({ name }) => name === "usualKeysByIds");
    assert.equal(
      reads.reduce((sum, { size }) => sum + size, 0),
      5_000,
      "read twice",
    );
    for (let at = 0; at < newest.length; at += 200) {
      const earlier = new Set(loaded.slice(0, at + 200 + 128));
      assert(newest.slice(0, at + 200).every((key) => earlier.has(String(key))));
    }
    assert.equal(new Set(loaded).size, 5_000);
    assert.equal(loaded.length, 5_000);
  });

  it("loads of them only as many as the cache holds", async () => {
    const newest = Array.from({ length: 1_000 }, (_, i) => i);
    const { loaded, finish } = open({ ages: newest.map(() => HOUR), newest, bytesMax: 100 * BYTES });
    await finish();
    assert(loaded.length <= 100, `${loaded.length}`);
  });

  it("loads the newest tenth first", async () => {
    // In the order of their ids, those that were used last are anywhere.
    const ages = Array.from({ length: 5_000 }, (_, i) => (i % 10 === 7 ? 1_000 + i : 100 * HOUR));
    const { loaded, finish } = open({ ages, bytesMax: 1e9 });
    await finish();
    assert.equal(new Set(loaded).size, 5_000);
    assert.equal(loaded.length, 5_000);
    assert(loaded.slice(0, 500).every((name) => /^\d*7$/.test(name)));
  });

  it("stops before the cache is full, so that it evicts nothing", async () => {
    const { loaded, finish } = open({ ages: Array(5_000).fill(HOUR), bytesMax: 2_000 * BYTES });
    await finish();
    assert(loaded.length >= 1_800 && loaded.length < 2_000, String(loaded.length));
  });

  it("loads all keys that fit, except those that are cached", async () => {
    const { loaded, finish } = open({ ages: [0, HOUR, 1_000 * HOUR], bytesMax: 1e6, cached: [1] });
    await finish();
    assert.deepEqual(loaded, ["0", "2"]);
  });

  it("keeps a caller waiting for one short step at most, and pauses after each for as long as it took", async () => {
    const { loaded, steps, finish } = open({ ages: Array(12_000).fill(HOUR), bytesMax: 1e9, queryMs: 4 });
    await finish();
    const sizes = { lastUseAges: 50_000, recentKeyIds: 50_000, usualKeysByIds: 128 };
    for (const { name, size } of steps) assert(size <= sizes[name as keyof typeof sizes], name);
    for (const [i, { from }] of steps.slice(1).entries()) {
      const { from: began, to } = steps[i]!;
      assert(from - to >= to - began, `step ${i + 1}`);
    }
    assert.equal(loaded.length, 12_000);
  });

  it("makes its steps smaller where the database is slow", async () => {
    const { steps, finish } = open({ ages: Array(2_000).fill(HOUR), bytesMax: 1e9, rowMs: 0.5 });
    await finish();
    const loads = steps.filter(({ name }) => name === "usualKeysByIds");
    assert(loads.length >= 250 && loads.every(({ from, to }) => to - from <= 4));
  });

  it("does not make its steps smaller where results wait for a busy loop", async () => {
    const { loaded, steps, finish } = open({ ages: Array(12_000).fill(HOUR), bytesMax: 1e9, queryMs: 1, turnMs: 9 });
    await finish();
    assert.equal(loaded.length, 12_000);
    assert(steps.length < 200, String(steps.length));
    for (const [i, { from }] of steps.slice(1).entries()) {
      const { from: began, to } = steps[i]!;
      assert(from - to >= to - began, `step ${i + 1}`);
    }
  });

  it("ends when the service stops", async () => {
    const { loaded, stopped, finish } = open({ ages: Array(1_000).fill(HOUR), bytesMax: 1e9, queryMs: 4 });
    stopped.abort();
    await finish();
    assert.deepEqual(loaded, []);
  });
});
