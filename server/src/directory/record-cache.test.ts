import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { SimulatedClock } from "../clock/simulated.ts";
import { Generations } from "./generations.ts";
import { type LoadedRecord, newRecordCacheCounts, RecordCache } from "./record-cache.ts";

/** A directory in front of a store that answers when the test lets it. */
function openDirectory({ bytesMax = 10_000 } = {}) {
  const clock = new SimulatedClock(0);
  const generations = new Generations();
  const counts = newRecordCacheCounts();
  const stored = new Map<string, LoadedRecord<string>>();
  const questions: { names: readonly string[]; answer(): void; fail(error: Error): void }[] = [];
  let held = false;
  const directory = new RecordCache<string>({
    clock,
    generations,
    counts,
    bytesMax,
    tagOf: (name) => `tag of ${name}`,
    load: (names) => {
      // What is found is decided when the question arrives, as in a database.
      const found = new Map(names.flatMap((name) => (stored.has(name) ? [[name, stored.get(name)!]] : [])));
      const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, LoadedRecord<string>>>();
      questions.push({ names, answer: () => resolve(found), fail: reject });
      if (!held) resolve(found);
      return promise;
    },
  });
  return {
    ...{ clock, generations, counts, directory, questions },
    hold() {
      held = true;
    },
    put(name: string, record: string, { tags = [] as string[], bytes = 100 } = {}) {
      stored.set(name, { record, tags, bytes });
    },
  };
}

describe("RecordCache", () => {
  it("answers from memory what it was told once", async () => {
    const { directory, put, questions, counts } = openDirectory();
    put("a", "record");
    assert.equal(directory.get("a"), undefined);
    assert.equal(await directory.load("a"), "record");
    assert.equal(directory.get("a"), "record");
    assert.equal(questions.length, 1);
    assert.deepEqual(counts, { hits: 1, misses: 1, loads: 1, evictions: 0, entries: 1, bytes: 100 });
  });

  it("asks once for everybody who misses the same name", async () => {
    const { directory, put, questions, hold } = openDirectory();
    hold();
    put("a", "record");
    const first = directory.load("a");
    await setImmediate();
    const second = directory.load("a");
    questions[0]!.answer();
    assert.deepEqual(await Promise.all([first, second]), ["record", "record"]);
    await setImmediate();
    assert.equal(questions.length, 1);
  });

  it("asks for names that are missed together in one query", async () => {
    const { directory, put, questions } = openDirectory();
    for (let i = 0; i < 100; i++) put(`name ${i}`, `record ${i}`);
    const records = await Promise.all(Array.from({ length: 100 }, (_, i) => directory.load(`name ${i}`)));
    assert.equal(records[99], "record 99");
    assert.equal(questions.length, 1);
  });

  it("keeps two questions under way at most, of 128 names each", async () => {
    const { directory, questions, hold } = openDirectory();
    hold();
    const filling = Promise.all(Array.from({ length: 300 }, (_, i) => directory.load(`name ${i}`)));
    await setImmediate();
    assert.deepEqual(
      questions.map(({ names }) => names.length),
      [128, 128],
    );
    for (let next = 0; next < 3; next++) {
      questions[next]!.answer();
      await setImmediate();
    }
    assert.equal(questions[2]!.names.length, 44);
    await filling;
  });

  it("forgets what changed, by each of its tags", async () => {
    for (const tag of ["tag of a", "key_1", "api_1"]) {
      const { directory, put, generations } = openDirectory();
      put("a", "before", { tags: ["key_1", "api_1"] });
      await directory.load("a");
      generations.bump(["key_2"]);
      assert.equal(directory.get("a"), "before");
      put("a", "after");
      generations.bump([tag]);
      assert.equal(directory.get("a"), undefined, tag);
      assert.equal(await directory.load("a"), "after");
    }
  });

  it("asks again when a change overtakes the answer, and gives nobody the old one", async () => {
    const { directory, put, questions, generations, hold } = openDirectory();
    hold();
    put("a", "before", { tags: ["key_1"] });
    const first = directory.load("a");
    await setImmediate();
    put("a", "after", { tags: ["key_1"] });
    generations.bump(["key_1"]);
    const second = directory.load("a");
    questions[0]!.answer();
    await setImmediate();
    await setImmediate();
    questions[1]!.answer();
    assert.deepEqual(await Promise.all([first, second]), ["after", "after"]);
    assert.equal(directory.get("a"), "after");
  });

  it("gives up on what changes faster than it can be read", async () => {
    const { directory, put, questions, generations, hold } = openDirectory();
    hold();
    put("a", "record", { tags: ["key_1"] });
    const filled = assert.rejects(directory.load("a"), /changed faster than it could be read/);
    for (let question = 0; question < 10; question++) {
      while (questions.length <= question) await setImmediate();
      generations.bump(["key_1"]);
      questions[question]!.answer();
      await setImmediate();
    }
    await filled;
    assert.equal(questions.length, 10);
    // It is not remembered as failed.
    const again = directory.load("a");
    while (questions.length <= 10) await setImmediate();
    questions[10]!.answer();
    assert.equal(await again, "record");
  });

  it("knows that there is nothing, until there is", async () => {
    const { directory, put, questions, generations } = openDirectory();
    assert.equal(await directory.load("a"), null);
    assert.equal(directory.get("a"), null);
    put("a", "created");
    generations.bump(["tag of a"]);
    assert.equal(directory.get("a"), undefined);
    assert.equal(await directory.load("a"), "created");
    assert.equal(questions.length, 2);
  });

  it("believes for half a minute that there is nothing, and without end that there is something", async () => {
    const { directory, put, clock } = openDirectory();
    put("b", "record");
    await Promise.all([directory.load("a"), directory.load("b")]);
    clock.advance(29_999);
    assert.equal(directory.get("a"), null);
    clock.advance(1);
    assert.equal(directory.get("a"), undefined);
    clock.advance(30 * 24 * 3_600_000);
    assert.equal(directory.get("b"), "record");
  });

  it("tells everybody who waits when the store fails, and asks anew the next time", async () => {
    const { directory, put, questions, hold } = openDirectory();
    hold();
    put("a", "record");
    const waiting = [directory.load("a"), directory.load("b"), directory.load("a")];
    await setImmediate();
    questions[0]!.fail(new Error("the database is away"));
    for (const outcome of await Promise.allSettled(waiting)) assert.equal(outcome.status, "rejected");
    assert.equal(directory.get("a"), undefined);
    const again = directory.load("a");
    await setImmediate();
    questions[1]!.answer();
    assert.equal(await again, "record");
  });

  it("stays within its bytes, and keeps what was looked at", async () => {
    const { directory, put, counts } = openDirectory({ bytesMax: 1_000 });
    for (let i = 0; i < 10; i++) {
      put(`name ${i}`, `record ${i}`);
      await directory.load(`name ${i}`);
    }
    assert.equal(counts.evictions, 0);
    assert.equal(directory.get("name 0"), "record 0");
    for (let i = 10; i < 19; i++) {
      put(`name ${i}`, `record ${i}`);
      await directory.load(`name ${i}`);
      assert(counts.bytes <= 1_000);
    }
    assert.equal(directory.get("name 0"), "record 0");
    assert.equal(directory.get("name 1"), undefined);
    assert.deepEqual({ entries: counts.entries, evictions: counts.evictions }, { entries: 10, evictions: 9 });
  });

  it("makes room in a few steps, also when all that it knows was looked at a moment ago", async () => {
    for (const size of [100, 10_000]) {
      const { directory, put, counts, generations } = openDirectory({ bytesMax: 100 * size });
      const names = Array.from({ length: size }, (_, i) => `name ${i}`);
      for (const name of names) put(name, name);
      await Promise.all(names.map((name) => directory.load(name)));
      for (const name of names) directory.get(name);
      assert.equal(counts.entries, size);

      let looked = 0;
      const areUnchanged = generations.areUnchanged.bind(generations);
      generations.areUnchanged = (slots, generation) => {
        looked++;
        return areUnchanged(slots, generation);
      };
      put("one more", "record");
      await directory.load("one more");
      assert(looked <= 20, `${looked} of ${size} records were looked at to make room for one`);
      assert.equal(counts.entries, size);
    }
  });

  it("keeps another tenant's hot records while one tenant sweeps through many more than there is room for", async () => {
    const HOT = 100;
    for (const looksAgain of [false, true]) {
      const { directory, put, counts } = openDirectory({ bytesMax: 100 * 1_000 });
      for (let i = 0; i < HOT; i++) put(`hot ${i}`, "record");
      let misses = 0;
      for (let swept = 0; swept < 20_000; swept++) {
        put(`swept ${swept}`, "record");
        await directory.load(`swept ${swept}`);
        if (looksAgain) directory.get(`swept ${swept}`);
        const name = `hot ${swept % HOT}`;
        if (directory.get(name) === undefined) {
          misses++;
          await directory.load(name);
        }
      }
      assert(misses < 0.1 * 20_000, `${misses} of 20000 look-ups of hot records missed`);
      assert(counts.entries <= 1_000);
    }
  });

  it("keeps count of its entries and bytes, whatever comes and goes", async () => {
    const step = fc.record({ name: fc.integer({ min: 0, max: 30 }), bytes: fc.integer({ min: 1, max: 400 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { directory, put, counts, generations } = openDirectory({ bytesMax: 1_000 });
        for (const { name, bytes } of steps) {
          const text = `name ${name}`;
          put(text, `${bytes}`, { bytes, tags: [text] });
          generations.bump([text]);
          assert.equal(await directory.load(text), `${bytes}`);
          const known = Array.from({ length: 31 }, (_, i) => directory.get(`name ${i}`)).filter(Boolean) as string[];
          assert(counts.bytes <= 1_000);
          assert.deepEqual(
            [counts.entries, counts.bytes],
            [known.length, known.reduce((sum, b) => sum + Number(b), 0)],
          );
        }
      }),
      { numRuns: 50 },
    );
  });

  it("counts what it forgets and what it replaces", async () => {
    const { directory, put, counts, generations } = openDirectory({ bytesMax: 1_000 });
    put("a", "small", { tags: ["key_1"], bytes: 100 });
    await directory.load("a");
    put("a", "large", { bytes: 900 });
    generations.bump(["key_1"]);
    await directory.load("a");
    assert.deepEqual({ entries: counts.entries, bytes: counts.bytes }, { entries: 1, bytes: 900 });
    put("b", "larger than all there is", { bytes: 2_000 });
    assert.equal(await directory.load("b"), "larger than all there is");
    assert.deepEqual({ entries: counts.entries, bytes: counts.bytes }, { entries: 0, bytes: 0 });
  });

  it("remembers what does not exist within an eighth of its bytes on top, and forgets no record for it", async () => {
    const { directory, put, counts, clock } = openDirectory({ bytesMax: 10_000 });
    for (let i = 0; i < 100; i++) put(`name ${i}`, `record ${i}`);
    const fill = (prefix: string, count: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => directory.load(`${prefix} ${i}`)));
    await fill("name", 100);
    const full = { ...counts };
    for (let i = 0; i < 5_000; i++) {
      assert.equal(await directory.load(`nobody ${i}`), null);
      clock.advance(1);
    }
    assert.deepEqual({ ...counts, loads: full.loads }, full);

    // The youngest of them, nearly as many as there is room for at 28 bytes each.
    const room = 2 ** Math.floor(Math.log2(10_000 / 8 / 28));
    const remembered = Array.from({ length: 5_000 }, (_, i) => i).filter((i) => directory.get(`nobody ${i}`) === null);
    assert(remembered.length > room / 2 && remembered.length <= room, `${remembered.length} of ${room}`);
    assert(remembered.every((i) => i >= 5_000 - 8 * room));
    for (let i = 0; i < 100; i++) assert.equal(directory.get(`name ${i}`), `record ${i}`);
  });
});
