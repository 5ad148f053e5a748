import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import fc from "fast-check";
import { KeyUseFiles } from "./key-use-files.ts";
import type { KeyUse } from "./recorder.ts";

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Takes all parts, and keeps the latest use of each key. */
async function takeAll(files: KeyUseFiles, written: Map<string, number>): Promise<void> {
  for (const part of files.parts) {
    const groups = await files.take(part);
    for (const { keyId, at } of groups.flat()) written.set(keyId, Math.max(at, written.get(keyId) ?? 0));
    await files.done(part);
  }
}

/** The sizes of all files. */
const sizes = (folder: string) => readdirSync(folder).map((name) => statSync(join(folder, name)).size);

describe("uses of keys on disk", () => {
  it("are returned with the last use of each key, after failed writes and in the next process too", async () => {
    const keyId = fc.constantFrom("key_a0", "key_a1", "key_Z9", "key_b0", "key_", "k", "another-key");
    const step = fc.record({
      uses: fc.array(fc.record({ keyId, at: fc.integer({ min: 1, max: 1e13 }) }), { maxLength: 12 }),
      next: fc.constantFrom("nothing", "flush", "write", "write and fail", "restart"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
        try {
          const open = async () => {
            const files = new KeyUseFiles(folder, 150);
            await files.open();
            return files;
          };
          let files = await open();
          const last = new Map<string, number>();
          const written = new Map<string, number>();
          for (const { uses, next } of steps) {
            files.add(uses);
            for (const use of uses) last.set(use.keyId, Math.max(use.at, last.get(use.keyId) ?? 0));
            if (next === "flush") await files.flush();
            if (next === "write") await takeAll(files, written);
            // Taken and not done.
            if (next === "write and fail") for (const part of files.parts) await files.take(part);
            if (next === "restart") {
              await files.flush();
              files = await open();
            }
          }
          // The parts that were taken before have further uses.
          for (let i = 0; i < 2; i++) await takeAll(files, written);
          assert.deepEqual(new Map([...written].sort()), new Map([...last].sort()));
          assert.deepEqual(files.parts, []);
        } finally {
          rmSync(folder, { recursive: true });
        }
      }),
      { numRuns: 60 },
    );
  });

  it("are grouped by the beginning of their ids, in order", async (t) => {
    const files = new KeyUseFiles(makeFolder(t));
    await files.open();
    const ids = ["key_b2", "key_a3", "key_a1x", "key_a1y", "key_A1"];
    files.add(ids.map((keyId) => ({ keyId, at: 1 })));
    const found: string[][] = [];
    for (const part of files.parts) {
      for (const group of await files.take(part)) found.push(group.map(({ keyId }) => keyId));
    }
    assert.deepEqual(found, [["key_A1"], ["key_a1x", "key_a1y"], ["key_a3"], ["key_b2"]]);
  });

  it("say which keys were used last, from all files and with few in memory", async (t) => {
    const folder = makeFolder(t);
    const files = new KeyUseFiles(folder);
    await files.open();
    const idOf = (i: number) => `key_${"abc"[i % 3]}${i}`;
    files.add(Array.from({ length: 1_000 }, (_, i) => ({ keyId: idOf(i), at: 1 + ((i * 7_919) % 1_000) })));
    await files.flush();
    await files.take(files.parts[0]!);
    files.add([{ keyId: idOf(0), at: 5_000 }]);
    await files.flush();
    const next = new KeyUseFiles(folder);
    await next.open();
    const latest = Array.from({ length: 1_000 }, (_, i) => i).sort(
      (a, b) => ((b * 7_919) % 1_000) - ((a * 7_919) % 1_000),
    );
    const expected = [idOf(0), ...latest.filter((i) => i !== 0).map(idOf)];
    for (const count of [1, 10, 300, 2_000]) assert.deepEqual(await next.newest(count), expected.slice(0, count));
    await next.flush();
  });

  it("take room on disk by keys and not by uses", async (t) => {
    const folder = makeFolder(t);
    const files = new KeyUseFiles(folder, 1_000);
    await files.open();
    for (let at = 1; at <= 300; at++) {
      files.add(Array.from({ length: 10 }, (_, i): KeyUse => ({ keyId: `key_a${i}`, at })));
      await files.flush();
      assert(Math.max(...sizes(folder)) < 1_200);
    }
    const written = new Map<string, number>();
    await takeAll(files, written);
    assert.deepEqual([...new Set(written.values())], [300]);
  });

  it("lose at most the line that a kill cut off", async (t) => {
    const folder = makeFolder(t);
    const files = new KeyUseFiles(folder);
    await files.open();
    files.add([
      { keyId: "key_a1", at: 1_768_478_400_000 },
      { keyId: "key_a2", at: 1_768_478_400_000 },
    ]);
    await files.flush();
    const [name = ""] = readdirSync(folder);
    const path = join(folder, name);
    truncateSync(path, statSync(path).size - 6);
    const next = new KeyUseFiles(folder);
    await next.open();
    next.add([{ keyId: "key_a3", at: 1_768_478_400_001 }]);
    const written = new Map<string, number>();
    await takeAll(next, written);
    assert.deepEqual(
      [...written],
      [
        ["key_a1", 1_768_478_400_000],
        ["key_a3", 1_768_478_400_001],
      ],
    );
  });

  it("stay in memory while the disk does not accept them", async (t) => {
    const folder = join(makeFolder(t), "analytics");
    const files = new KeyUseFiles(folder);
    files.add([{ keyId: "key_a1", at: 7 }]);
    await files.flush();
    await assert.rejects(files.take("0061"));
    await files.open();
    const written = new Map<string, number>();
    await takeAll(files, written);
    assert.deepEqual([...written], [["key_a1", 7]]);
  });
});
