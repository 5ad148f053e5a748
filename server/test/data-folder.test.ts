/** A data folder that cannot be used stops the start with one line, which names the setting. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { makeFolder, ROOT_KEY, run } from "./process.ts";

const NOBODY = 65_534;

/** Runs the program with a file system mounted at `folder`, which no other process sees. */
const mounted = (folder: string, options: string) => [
  "unshare",
  "--mount",
  "sh",
  "-c",
  'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"',
  "sh",
  options,
  folder,
];

/** Runs the program without the capabilities by which root ignores the permissions of files. */
const withoutOverride = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];

function isPossible([program, ...args]: string[]): boolean {
  return spawnSync(program!, [...args, "true"]).status === 0;
}

describe("a data folder", () => {
  /** Starts the service with this folder, and expects that it stops with one line. */
  async function expectUnusable(directory: string, folder: string, reason: string, under: string[] = []) {
    const settings = { DATA_DIR: folder, ROOT_KEY };
    const { code, stderr } = await run(["serve", "--port", "0"], { directory, settings, under });
    assert.match(stderr, /^latchkey: LATCHKEY_DATA_DIR=[^\n]*\n$/);
    assert(stderr.includes(`LATCHKEY_DATA_DIR=${folder}`) && stderr.includes(reason), stderr);
    assert.equal(code, 1);
  }

  it("that is a file stops the start", async (t) => {
    const directory = makeFolder(t);
    const file = join(directory, "data");
    writeFileSync(file, "");
    await expectUnusable(directory, file, "there is a file in the place of the folder");
  });

  it("that is not writable stops the start", async (t) => {
    const directory = makeFolder(t);
    const folder = join(directory, "data");
    mkdirSync(folder);
    const isRoot = process.getuid?.() === 0;
    if (isRoot && !isPossible(withoutOverride)) return t.skip("setpriv cannot drop the capabilities of root");
    if (isRoot) chownSync(folder, NOBODY, NOBODY);
    chmodSync(folder, 0o555);
    await expectUnusable(directory, folder, "this account may not write there", isRoot ? withoutOverride : []);
  });

  for (const [state, options, reason] of [
    ["read-only", "ro", "the file system is read-only"],
    ["full", "size=4k", "the disk is full. Make room"],
    ["full after the first files", "size=64k", "the disk is full. Make room"],
  ] as const) {
    it(`on a file system that is ${state} stops the start`, async (t) => {
      const directory = makeFolder(t);
      const folder = join(directory, "data");
      mkdirSync(folder);
      const under = mounted(folder, options);
      if (!isPossible(under)) return t.skip("this process may not mount a file system");
      await expectUnusable(directory, folder, reason, under);
    });
  }
});
