/** The table of memory in docs/operating.md, compared with what a service has in use. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { MemorySocket } from "./fast-lane/memory-socket.ts";
import { collect } from "./garbage.ts";
import { openTestServer, type TestServer } from "./harness.ts";
import { eventually, makeFolder, type Server, start } from "./process.ts";

const KEYS = 30_000;
const KEYS_PER_TURN = 1_000;
/** Enough to compile the code of the calls. */
const WARM_UP = 2_000;
const TOLERANCE = 0.2;
const MIB = 1024 * 1024;
/** Enough to fill the page caches of the database. */
const MANY_KEYS = 300_000;
const CONNECTIONS = 8;
/** Collects garbage at a signal: V8 does it at rest, but not always. */
const COLLECTS = new URL("collect-at-signal.js", import.meta.url).href;
/** The filter of all keys: "3 to 6 bytes for each key". */
const FILTER_BYTES = 6;
/** For each store one that writes and one that reads; the page caches are full. */
const DATABASE_THREADS = 4;
const PAGE_CACHE_BYTES = 32 * MIB;
/** What a process takes at most that has started and is at rest. */
const STARTED_BYTES_MAX = 170 * MIB;

describe("the memory of a service", () => {
  it("for each key is what the table in operating.md says", async (t) => {
    // Code of the start that is compiled at first would be collected between two measurements.
    setFlagsFromString("--no-flush-bytecode");
    const server = await openTestServer();
    t.after(() => server.close());
    const keys = await importKeys(server, KEYS + WARM_UP);
    await verifyAll(server, keys.splice(0, WARM_UP));
    await passMinute(server);
    const empty = bytesInUse();
    const each = () => (bytesInUse() - empty) / KEYS;
    await verifyAll(server, keys);
    // The clock stands still, so nothing is delivered yet.
    const counted = each();
    await server.pass(2_000);
    const tracked = each();
    await passMinute(server);
    const cached = each();
    const record = bytesOf("keys in use");
    const said = {
      counted: record + bytesOf("counts that are not written yet"),
      tracked: record + bytesOf("last uses that are not written yet"),
      cached: record,
    };
    const measured = { counted, tracked, cached };
    for (const [state, bytes] of Object.entries(measured)) {
      const difference = Math.abs(said[state as keyof typeof said] - bytes);
      assert(difference <= TOLERANCE * bytes, `${state}: ${JSON.stringify({ said, measured })}`);
    }
  });
});

describe("the memory of a process", () => {
  it("without garbage is that of its start and what the table in operating.md says", async (t) => {
    const directory = makeFolder(t);
    const importing = await start({ directory });
    const { apiId } = await importing.ok("apis.createApi", { name: "memory" });
    const keys = Array.from({ length: MANY_KEYS }, (_, i) => `key number ${i}`);
    for (const hashes of hashLists(keys)) {
      await importing.ok("keys.migrateKeys", { migrationId: "memory", apiId, keys: hashes });
    }
    await importing.kill("SIGTERM");
    const server = await start({ directory, under: ["env", `NODE_OPTIONS=--import=${COLLECTS}`] });
    await eventually("the garbage of the start to be collected", () => residentBytes(server) < STARTED_BYTES_MAX);
    const started = residentBytes(server);
    await verifyOver(server.address, keys);
    const said = MANY_KEYS * (bytesOf("keys in use") + FILTER_BYTES) + DATABASE_THREADS * PAGE_CACHE_BYTES;
    // What the last calls left is written for some seconds.
    await eventually("memory to be given back", async () => {
      server.signal("SIGUSR2");
      // It answers after the collection.
      await server.ok("apis.getApi", { apiId });
      return residentBytes(server) - started <= said * (1 + TOLERANCE);
    });
    const measured = residentBytes(server) - started;
    assert(measured >= said * (1 - TOLERANCE), JSON.stringify({ said, measured }));
    await server.kill("SIGTERM");
  });
});

/** A minute in short steps: what is written each second is written a minute long. */
async function passMinute(server: TestServer): Promise<void> {
  for (let second = 0; second < 60; second++) await server.pass(1_000);
}

/** The bytes of each in a row of the table. */
function bytesOf(row: string): number {
  const page = readFileSync(new URL("../../docs/operating.md", import.meta.url), "utf8");
  return Number(new RegExp(`^\\| ${row} \\| (\\d+) bytes`, "m").exec(page)![1]);
}

/** Bytes on the heap after full collections, and outside of it. */
function bytesInUse(): number {
  // A collection leaves what its weak callbacks release.
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function importKeys(server: TestServer, count: number): Promise<string[]> {
  const apiId = await server.createApi();
  const keys = Array.from({ length: count }, (_, i) => `key number ${i}`);
  for (const hashes of hashLists(keys)) {
    await server.ok("keys.migrateKeys", { migrationId: "memory", apiId, keys: hashes });
  }
  return keys;
}

/** Keys as `keys.migrateKeys` takes them. */
function hashLists(keys: readonly string[]): { hash: string }[][] {
  return inTurns(keys).map((some) => some.map((key) => ({ hash: createHash("sha256").update(key).digest("hex") })));
}

function inTurns(keys: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(keys.length / KEYS_PER_TURN) }, (_, i) =>
    keys.slice(i * KEYS_PER_TURN, (i + 1) * KEYS_PER_TURN),
  );
}

/** Verifies keys on one connection, as callers do. */
async function verifyAll(server: TestServer, keys: readonly string[]): Promise<void> {
  for (const some of inTurns(keys)) {
    const socket = new MemorySocket();
    server.service.accept(socket);
    for (const key of some) socket.push(verification(key));
    while (validIn(socket.output) < some.length) await once(socket, "output");
    socket.destroy();
  }
}

/** The same from outside of the process, on some connections at once. */
async function verifyOver(address: string, keys: readonly string[]): Promise<void> {
  const rest = inTurns(keys).values();
  const verifySome = async () => {
    for (const some of rest) {
      const socket = connect(Number(new URL(address).port), "127.0.0.1");
      socket.write(
        some.map((key, i) => verification(key, i + 1 === some.length ? ["Connection: close"] : [])).join(""),
      );
      assert.equal(validIn(await text(socket)), some.length);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, verifySome));
}

function verification(key: string, fields: readonly string[] = []): string {
  const body = JSON.stringify({ key });
  const all = ["Host: keys.example", "Content-Type: application/json", `Content-Length: ${body.length}`, ...fields];
  return ["POST /v2/keys.verifyKey HTTP/1.1", ...all, "", body].join("\r\n");
}

function validIn(answers: string): number {
  return answers.split('"code":"VALID"').length - 1;
}

function residentBytes({ pid }: Server): number {
  return 1_024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);
}
