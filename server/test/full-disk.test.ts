/** A disk that is full or slow is visible: readiness, metrics, status and log name it. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { WriteHealth } from "../src/platform/store/store.ts";
import { openTestServer, type TestServer } from "./harness.ts";
import { parseExposition } from "./prometheus.ts";

const MIB = 1024 * 1024;

async function seen(server: TestServer) {
  const ready = await server.request("GET", "/health/ready");
  const { status, components } = await server.ok("system.getStatus", {});
  const { storage } = Object.fromEntries(components.map((component: { name: string }) => [component.name, component]));
  const { samples } = { samples: parseExposition(await server.scrape()) };
  const metric = (name: string) => [...samples.values(name).values()][0];
  return {
    ready: [ready.status, ready.body],
    status: [status, storage.status],
    metrics: [metric("latchkey_storage_degraded"), metric("latchkey_storage_refused_writes_total")],
    free: metric("latchkey_storage_free_bytes")!,
    size: metric("latchkey_storage_size_bytes")!,
  };
}

/** A file system of this size as the folder for databases of tests; undefined if this user cannot mount one. */
function mountSmallDisk(bytes: number): { folder: string; unmount(): void } | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "latchkey-disk-"));
  const { LATCHKEY_TEST_DATA } = process.env;
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", folder], { stdio: "ignore" });
  } catch {
    rmSync(folder, { recursive: true });
    return undefined;
  }
  process.env.LATCHKEY_TEST_DATA = folder;
  const unmount = () => {
    if (LATCHKEY_TEST_DATA === undefined) delete process.env.LATCHKEY_TEST_DATA;
    else process.env.LATCHKEY_TEST_DATA = LATCHKEY_TEST_DATA;
    execFileSync("umount", ["--lazy", folder]);
    rmSync(folder, { recursive: true });
  };
  return { folder, unmount };
}

/** Writes until nothing more fits. */
function fill(file: string): void {
  const descriptor = openSync(file, "w");
  try {
    for (const piece of [Buffer.alloc(MIB), Buffer.alloc(512)]) {
      try {
        for (;;) writeSync(descriptor, piece);
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
      }
    }
  } finally {
    closeSync(descriptor);
  }
}

describe("an embedded database", () => {
  it("on a full disk is degraded with `storage: full` until there is room again", async (t) => {
    const disk = mountSmallDisk(32 * MIB);
    if (disk === undefined) return t.skip("only root can mount a file system of its own");
    t.after(disk.unmount);
    const server = await openTestServer({ settings: { ANALYTICS: "off" } });
    const filler = join(disk.folder, "filler");
    const apiId = await server.createApi();
    const { key } = await server.createKey(apiId);
    const limit = { name: "requests", limit: 1_000, duration: 3_600_000, autoApply: true };
    const paying = await server.createKey(apiId, { credits: { remaining: 1_000 }, ratelimits: [limit] });
    await server.pass(5_000);
    const before = await seen(server);
    assert.deepEqual(before.ready, [200, { status: "ok" }]);
    assert.deepEqual(before.status, ["ok", "ok"]);
    assert.deepEqual(before.metrics, [0, 0]);
    assert.equal(before.size, 32 * MIB);
    assert(before.free > MIB && before.free < before.size, `${before.free}`);

    fill(filler);
    let refused = 0;
    for (let i = 0; i < 40; i++) {
      const { status } = await server.call("keys.createKey", { apiId, meta: { text: "x".repeat(4_000) } });
      if (status === 503) refused++;
    }
    assert(refused > 0);
    const full = await seen(server);
    assert.deepEqual(full.ready, [200, { status: "degraded", checks: { storage: "full" } }]);
    assert.deepEqual(full.status, ["degraded", "degraded"]);
    assert.deepEqual(full.metrics, [1, refused]);
    await server.pass(5_000);
    assert((await seen(server)).free < MIB);
    assert.equal((await server.verify(key)).code, "VALID");
    const unpaid: number[] = [];
    for (let i = 0; i < 20; i++) {
      const headers = i % 2 === 0 ? {} : { "idempotency-key": `call-${i}` };
      unpaid.push((await server.call("keys.verifyKey", { key: paying.key }, { headers })).status);
    }
    const lines = () => server.logged.filter(({ message }) => /the disk/.test(message)).map(({ level }) => level);
    assert.deepEqual(lines(), ["error"]);

    // No call writes: the service finds out by itself.
    rmSync(filler);
    await server.pass(60_000);
    assert.deepEqual((await seen(server)).ready, [200, { status: "ok" }]);
    assert.deepEqual(lines(), ["error", "info"]);
    await server.createKey(apiId);
    // What was answered with 503 has used up neither credits nor limits.
    const { credits, ratelimits } = await server.verify(paying.key);
    const admitted = unpaid.filter((status) => status === 200).length;
    assert(admitted < 20, "no spend was refused");
    assert.deepEqual([credits, ratelimits![0]!.remaining], [999 - admitted, 999 - admitted]);
    await server.close();
  });

  it("whose syncs take seconds is degraded with `storage: slow`", async (t) => {
    const server = await openTestServer();
    t.after(() => server.close());
    const writes: WriteHealth = {
      refused: 0,
      slowSyncs: 3,
      trouble: "slow",
      isRefusing: false,
      observe() {},
      recover() {},
    };
    t.mock.getter(server.store, "writes", () => writes);
    const { ready, status, metrics } = await seen(server);
    assert.deepEqual(ready, [200, { status: "degraded", checks: { storage: "slow" } }]);
    assert.deepEqual(status, ["degraded", "degraded"]);
    assert.deepEqual(metrics, [1, 0]);
    await server.pass(500);
    assert(server.logged.some(({ fields }) => (fields as { trouble?: string }).trouble === "slow"));
  });
});
