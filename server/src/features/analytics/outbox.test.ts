import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { Outbox } from "./outbox.ts";
import { Spool, SpoolFull } from "./spool.ts";

const batch = (sequence: number, events = 1) =>
  JSON.stringify({
    recorder: "rec_1",
    sequence,
    verifications: [[0, "ws", null, null, null, "", "VALID", events, 0, 0]],
    ratelimits: [],
  });

function openFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-outbox-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** An outbox over a real folder, and a store that can be away. */
async function open(folder: string, { bytesMax = 1_000_000, diskMax = 1_000_000, name = "a" } = {}) {
  const store = { away: false, written: [] as number[], reachable: [] as boolean[], lost: 0, unreadable: 0 };
  const spool = new Spool(folder, name, diskMax);
  const outbox = new Outbox({
    spool,
    bytesMax,
    async write(texts) {
      if (store.away) throw new Error("away");
      store.written.push(...texts.map((text) => JSON.parse(text).sequence));
    },
    onReachability: (reachable) => void store.reachable.push(reachable),
    onLoss: (events) => {
      store.lost += events;
    },
    onUnreadable: () => {
      store.unreadable++;
    },
  });
  await outbox.open();
  return { outbox, spool, store };
}

describe("Outbox", () => {
  it("delivers batches in order and leaves nothing on disk", async (t) => {
    const folder = openFolder(t);
    const { outbox, spool, store } = await open(folder);
    for (let i = 1; i <= 10; i++) outbox.put(batch(i), 1);
    await outbox.send();
    await outbox.settled();
    assert.deepEqual(store.written, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert.deepEqual([outbox.waiting, outbox.bytes, spool.bytes], [0, 0, 0]);
    assert.deepEqual(readdirSync(folder), []);
    assert.equal(outbox.counts.delivered, 10);
  });

  it("keeps batches that the store rejects, reports it once, and delivers them later", async (t) => {
    const { outbox, store } = await open(openFolder(t));
    store.away = true;
    for (let i = 1; i <= 5; i++) {
      outbox.put(batch(i), 1);
      await outbox.send();
    }
    await outbox.settled();
    assert.equal(outbox.waiting, 5);
    store.away = false;
    await outbox.send();
    assert.deepEqual(store.written, [1, 2, 3, 4, 5]);
    assert.deepEqual(store.reachable, [false, true]);
  });

  it("keeps `bytesMax` in memory and the rest only on disk", async (t) => {
    const { outbox, store } = await open(openFolder(t), { bytesMax: 1_000 });
    store.away = true;
    for (let i = 1; i <= 100; i++) outbox.put(batch(i), 1);
    await outbox.settled();
    assert(outbox.bytes <= 1_000, `${outbox.bytes}`);
    assert.equal(outbox.waiting, 100);
    store.away = false;
    await outbox.send();
    assert.deepEqual(
      store.written,
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
    assert.equal(store.lost, 0);
  });

  it("loses only batches without room in memory and on disk, and counts their events", async (t) => {
    const { outbox, store } = await open(openFolder(t), { bytesMax: 1_000, diskMax: 500 });
    store.away = true;
    for (let i = 1; i <= 100; i++) outbox.put(batch(i, 7), 7);
    await outbox.settled();
    const kept = outbox.waiting;
    assert(kept > 8 && kept < 20, `${kept}`);
    assert.equal(store.lost, (100 - kept) * 7);
    assert.equal(outbox.counts.lost, store.lost);
    store.away = false;
    await outbox.send();
    assert.equal(store.written.length, kept);
    assert.deepEqual(
      store.written,
      store.written.toSorted((a, b) => a - b),
    );
  });

  it("delivers the batches of a killed process, without its incomplete line", async (t) => {
    const folder = openFolder(t);
    const first = await open(folder);
    first.store.away = true;
    for (let i = 1; i <= 3; i++) first.outbox.put(batch(i), 1);
    await first.outbox.settled();
    const [file] = readdirSync(folder);
    appendFileSync(join(folder, file!), batch(4).slice(0, 20));

    const second = await open(folder, { name: "b" });
    assert(second.spool.bytes > 3 * batch(1).length);
    second.outbox.put(batch(9), 1);
    await second.outbox.send();
    await second.outbox.settled();
    assert.deepEqual(
      second.store.written.toSorted((a, b) => a - b),
      [1, 2, 3, 9],
    );
    assert.equal(second.outbox.counts.delivered, 4);
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe("batches of an earlier process", () => {
  /** Writes spool files with these lines. */
  function leave(folder: string, files: readonly (readonly (string | Buffer)[])[]): void {
    for (const [i, lines] of files.entries()) {
      const file = join(folder, `rec_0-${String(i).padStart(6, "0")}.batches`);
      for (const line of lines) appendFileSync(file, Buffer.concat([Buffer.from(line), Buffer.from("\n")]));
    }
  }

  it("are read one file after the other while they are sent", async (t) => {
    const folder = openFolder(t);
    leave(
      folder,
      Array.from({ length: 50 }, (_, file) => Array.from({ length: 20 }, (_, i) => batch(20 * file + i + 1))),
    );
    const { outbox, spool, store } = await open(folder);
    assert.deepEqual([outbox.waiting, outbox.bytes], [0, 0]);
    let most = 0;
    const next = spool.next.bind(spool);
    spool.next = async () => {
      const locations = await next();
      most = Math.max(most, outbox.waiting + (locations?.length ?? 0));
      return locations;
    };
    await outbox.send();
    await outbox.settled();
    assert.deepEqual(
      store.written,
      Array.from({ length: 1_000 }, (_, i) => i + 1),
    );
    assert(most < 30, `${most} batches waited in memory`);
    assert.equal(outbox.counts.delivered, 1_000);
    assert.deepEqual(readdirSync(folder), []);
  });

  it("stay on disk when the service stops before they are read", async (t) => {
    const folder = openFolder(t);
    leave(folder, [[batch(1)], [batch(2)]]);
    const { outbox, store } = await open(folder);
    outbox.keepUnreadFiles();
    outbox.put(batch(9), 1);
    await outbox.send();
    await outbox.settled();
    assert.deepEqual(store.written, [9]);
    assert.equal(readdirSync(folder).length, 2);
  });

  it("do not block the delivery when some lines are invalid, which are moved aside and counted", async (t) => {
    const folder = openFolder(t);
    const broken = [
      Buffer.from([0x7b, 0xff, 0x7d]),
      Buffer.from(batch(5).replace("VALID", "VAL\x80D"), "latin1"),
      "no JSON",
      "null",
      '{"sequence":7}',
      '{"recorder":"rec_1","sequence":7,"verifications":[7],"ratelimits":[]}',
    ];
    leave(folder, [[batch(1), ...broken, batch(2)], broken, [batch(3)]]);
    const { outbox, store } = await open(folder);
    await outbox.send();
    await outbox.settled();
    assert.deepEqual(store.written, [1, 2, 3]);
    assert.equal(outbox.invalidLines, 2 * broken.length);
    assert.equal(store.unreadable, 2 * broken.length);
    assert.deepEqual(readdirSync(folder), ["unreadable.lines"]);
    assert.equal(readFileSync(join(folder, "unreadable.lines"), "latin1").split("\n").length - 1, 2 * broken.length);
  });

  it("do not block the delivery when a file cannot be read, which is reported", async (t) => {
    const folder = openFolder(t);
    mkdirSync(join(folder, "rec_0-000000.batches"));
    leave(folder, [[], [batch(1)]]);
    const { outbox, store } = await open(folder);
    await outbox.send();
    assert.deepEqual(store.written, [1]);
    assert.equal(store.unreadable, 1);
  });
});

describe("Spool", () => {
  it("rejects batches beyond its maximum size", async (t) => {
    const spool = new Spool(openFolder(t), "a", 300);
    await spool.open();
    const location = await spool.append(batch(1));
    await spool.append(batch(2));
    await assert.rejects(spool.append("x".repeat(200)), SpoolFull);
    assert.equal(await spool.read(location), batch(1));
  });
});
