/** The table of memory in docs/operating.md, compared with what a service has in use. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { setFlagsFromString } from "node:v8";
import { MemorySocket } from "./fast-lane/memory-socket.ts";
import { collect } from "./garbage.ts";
import { openTestServer, type TestServer } from "./harness.ts";

const KEYS = 30_000;
const KEYS_PER_TURN = 1_000;
/** Enough to compile the code of the calls. */
const WARM_UP = 2_000;
const TOLERANCE = 0.2;

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
  for (let i = 0; i < count; i += KEYS_PER_TURN) {
    const hashes = keys
      .slice(i, i + KEYS_PER_TURN)
      .map((key) => ({ hash: createHash("sha256").update(key).digest("hex") }));
    await server.ok("keys.migrateKeys", { migrationId: "memory", apiId, keys: hashes });
  }
  return keys;
}

/** Verifies keys on one connection, as callers do. */
async function verifyAll(server: TestServer, keys: readonly string[]): Promise<void> {
  for (let i = 0; i < keys.length; i += KEYS_PER_TURN) {
    const socket = new MemorySocket();
    server.service.accept(socket);
    const some = keys.slice(i, i + KEYS_PER_TURN);
    for (const key of some) {
      const body = JSON.stringify({ key });
      const fields = ["Host: keys.example", "Content-Type: application/json", `Content-Length: ${body.length}`];
      socket.push(["POST /v2/keys.verifyKey HTTP/1.1", ...fields, "", body].join("\r\n"));
    }
    while (socket.output.split('"code":"VALID"').length <= some.length) await once(socket, "output");
    socket.destroy();
  }
}
