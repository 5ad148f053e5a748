/**
 * An acknowledged write is on the disk. Killing a process cannot test that, because its writes stay in the memory of
 * the operating system; so this test counts the syncs for each acknowledgement.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it, type TestContext } from "node:test";
import { Client } from "pg";
import { SimulatedClock } from "../../engine/src/clock/simulated.ts";
import { openPostgresStore } from "../src/platform/store/postgres/store.ts";
import { raw } from "../src/platform/store/sqlite/connection.ts";
import type { Sql } from "../src/platform/store/store.ts";
import { launch, makeFolder, needProgram, type Server, start } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const WRITES = 20;

const onLinux = process.platform === "linux" ? false : `strace counts syncs on Linux, and this is ${process.platform}`;

describe("every acknowledged write was synced before, on sqlite", { skip: onLinux }, () => {
  let strace: string;
  before(async () => {
    strace = await needProgram("strace");
  });

  it("adds at least one sync to each answer", async (t) => {
    const { without, syncs } = await countSyncs(t, strace);
    assert.equal(without, 0, `${without} of ${WRITES} writes were answered without a sync`);
    assert(syncs >= WRITES);
  });

  it("is detected when the database does not sync", async (t) => {
    const { without } = await countSyncs(t, strace, tampered({ hidden: true }));
    assert.equal(without, WRITES, "the count does not distinguish synchronous = off from full");
  });
});

describe("a database that does not sync", () => {
  it("stops the start", async (t) => {
    const server = launch({ directory: makeFolder(t), environment: tampered({ hidden: false }) });
    assert.notEqual((await server.ended).code, 0);
    assert.match(server.stderr, /SQLite runs with synchronous = 0; writes need 2 \(FULL\)/);
  });
});

describe("every acknowledged write was synced before, on postgres", () => {
  it("moves the end of the flushed log with each answer", async (t) => {
    const database = await freshDatabase();
    const observer = new Client({ connectionString: database.url });
    await observer.connect();
    t.after(async () => {
      await observer.end();
      await database.drop();
    });
    const flushed = async () =>
      BigInt((await observer.query("select pg_current_wal_flush_lsn() - '0/0'::pg_lsn as position")).rows[0].position);

    const server = await start({ directory: makeFolder(t), settings: { DATABASE_URL: database.url } });
    const { apiId } = await server.ok("apis.createApi", { name: "synced" });
    for (let write = 0; write < WRITES; write++) {
      const position = await flushed();
      await server.ok("keys.createKey", { apiId });
      assert((await flushed()) > position, `write ${write} was answered before the log was flushed`);
    }
    await server.kill("SIGTERM");
  });

  it("runs its sessions with the settings that make a commit durable", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const settings = async () => {
      const procedures = { reading: { show: (sql: Sql, name: string) => raw(sql, `show ${name}`) }, writing: {} };
      const store = await openPostgresStore({ url: database.url, clock: new SimulatedClock(0) }, procedures);
      const show = async (name: string) =>
        Object.values(((await store.read("show", name)) as { rows: object[] }).rows[0]!)[0];
      const shown = { fsync: await show("fsync"), synchronousCommit: await show("synchronous_commit") };
      await store.close();
      return shown;
    };
    const durable = { fsync: "on", synchronousCommit: "on" };
    assert.deepEqual(await settings(), durable);

    const owner = new Client({ connectionString: database.url });
    await owner.connect();
    await owner.query(`alter database ${new URL(database.url).pathname.slice(1)} set synchronous_commit = off`);
    await owner.end();
    await assert.rejects(settings(), { name: "UnsafeDatabase" });
  });
});

/** Creates keys one after another; returns the number of answers without a sync, and the number of syncs. */
async function countSyncs(
  t: TestContext,
  strace: string,
  environment: Record<string, string> = {},
): Promise<{ without: number; syncs: number }> {
  const directory = makeFolder(t);
  const trace = join(directory, "trace");
  // -D keeps the service a child of this process, so that a signal reaches it and not the tracer.
  const under = [strace, "-D", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o", trace];
  // A power loss may lose counts, so their file may sync at any time.
  const settings = { ANALYTICS: "off" };
  const server: Server = await start({ directory, settings, environment, under });
  const count = () => readFileSync(trace, "utf8").match(/f(data)?sync\b.*\) += 0$/gm)?.length ?? 0;

  const { apiId } = await server.ok("apis.createApi", { name: "synced" });
  const first = count();
  let without = 0;
  for (let write = 0; write < WRITES; write++) {
    const syncs = count();
    await server.ok("keys.createKey", { apiId });
    if (count() === syncs) without++;
  }
  return { without, syncs: count() - first };
}

/** Makes the program's SQLite run without syncs, and optionally hides that from the program's own check. */
function tampered({ hidden }: { hidden: boolean }): Record<string, string> {
  const code = `
    import { DatabaseSync } from "node:sqlite";
    const { exec, prepare } = DatabaseSync.prototype;
    const tampered = new WeakSet();
    DatabaseSync.prototype.exec = function (text) {
      if (/synchronous *= *full/i.test(text)) tampered.add(this);
      return exec.call(this, text.replace(/synchronous *= *full/i, "synchronous = off"));
    };
    DatabaseSync.prototype.prepare = function (text) {
      const asked = ${hidden} && tampered.has(this) && /pragma synchronous/i.test(text);
      return asked ? { get: () => ({ synchronous: 2 }) } : prepare.call(this, text);
    };`;
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(code)}` };
}
