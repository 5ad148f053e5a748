/** What backups, restores and moves leave when they are rejected or interrupted, and which backups they read. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { create as createTar, extract as extractTar } from "tar";
import { systemClock } from "../../engine/src/clock/system.ts";
import { createBackup } from "../src/backup/create.ts";
import type { Manifest } from "../src/backup/manifest.ts";
import { restoreBackup } from "../src/backup/restore.ts";
import { placesToVerify, verifyBackup } from "../src/backup/verify.ts";
import { openSource, openTarget, settingsOf } from "../src/move/places.ts";
import { readConfig } from "../src/platform/config/config.ts";
import { readSecrets } from "../src/platform/config/secrets.ts";
import { version } from "../src/platform/config/version.ts";
import { lockPath, removeLock } from "../src/platform/store/sqlite/claim.ts";
import { stores, TestServer } from "./harness.ts";
import { eventually, makeFolder } from "./process.ts";
import { freshDatabase } from "./services/postgres.ts";

const NONE = { kind: "none" } as const;
/** A place that nobody can write to, also as root, and one that does not exist. */
const unwritable = ["/proc/self", "/nonexistent/tmp"];

describe("backups", () => {
  const server = new TestServer();
  let directory: string;
  let file: string;
  const undo: (() => void | Promise<void>)[] = [];
  before(async () => {
    await server.open();
    directory = makeFolder({ after: (work) => void undo.push(work) });
    file = join(directory, "copy.backup");
    await createBackup(
      {
        database: join(server.dataDirectory, "latchkey.db"),
        dataDirectory: server.dataDirectory,
        target: file,
        replaces: false,
        includesVaultKey: false,
        bytesPerSecond: 2 ** 30,
        version,
      },
      systemClock,
    );
  });
  after(async () => {
    await server.close();
    for (const work of undo) await work();
  });

  const restore = (from: string, to: string) =>
    restoreBackup(from, { database: join(to, "latchkey.db"), dataDirectory: to }, systemClock);
  /** The backup with another manifest, and with more files. */
  const altered = async (t: TestContext, change: (manifest: Manifest) => object, more: Record<string, string> = {}) => {
    const stage = makeFolder(t);
    extractTar({ file, cwd: stage, sync: true });
    const manifest = JSON.parse(readFileSync(join(stage, "manifest.json"), "utf8")) as Manifest;
    const text = JSON.stringify(change(manifest));
    writeFileSync(join(stage, "manifest.json"), text);
    writeFileSync(join(stage, "manifest.json.sha256"), createHash("sha256").update(text).digest("hex"));
    for (const [name, content] of Object.entries(more)) writeFileSync(join(stage, name), content);
    const made = join(makeFolder(t), "altered.backup");
    await createTar({ cwd: stage, file: made, portable: true }, readdirSync(stage).sort());
    return made;
  };

  describe("are verified", () => {
    it("in the data folder where the system's temporary folder cannot be written", async (t) => {
      const dataDirectory = makeFolder(t);
      const { manifest } = await verifyBackup(file, NONE, [...unwritable, dataDirectory]);
      assert.equal(manifest.version, version);
      assert.deepEqual(readdirSync(dataDirectory), []);
      assert.deepEqual(placesToVerify(file, dataDirectory), [tmpdir(), dataDirectory, directory]);
    });

    it("nowhere else than in a folder with room, and otherwise the error says in one line what to do", async () => {
      await assert.rejects(
        verifyBackup(file, NONE, unwritable),
        /^OperatorError: There is no folder to unpack the backup into \(\/proc\/self: [^;]+; \/nonexistent\/tmp: ENOENT\)\. Set TMPDIR to a folder that can be written and has room for \d+ MiB\.$/,
      );
      await assert.rejects(verifyBackup(join(directory, "none"), NONE, unwritable), /There is no backup at/);
    });

    it("without the remains of a verification that was killed", async (t) => {
      const place = makeFolder(t);
      const remains = (name: string) => {
        const folder = join(place, `latchkey-verify-${name}`);
        mkdirSync(folder);
        const release = lockPath(join(folder, "verifying"))!;
        return release;
      };
      remains("killed")();
      const release = remains("running");
      t.after(release);
      mkdirSync(join(place, "latchkey-verify-of-another-program"));
      await verifyBackup(file, NONE, [place]);
      assert.deepEqual(readdirSync(place).sort(), ["latchkey-verify-of-another-program", "latchkey-verify-running"]);
    });
  });

  describe("say which release can read them", () => {
    it("and are read by this one", async (t) => {
      const { manifest } = await verifyBackup(file, NONE);
      assert.deepEqual(manifest.needs, {
        release: version,
        schema: 15,
        analyticsSchema: manifest.needs!.analyticsSchema,
      });
      assert(manifest.needs!.analyticsSchema > 0);
      // Backups of earlier releases do not say it.
      const old = await altered(t, ({ needs, ...rest }) => rest);
      assert.equal((await verifyBackup(old, NONE)).manifest.needs, undefined);
      await restore(old, join(makeFolder(t), "data"));
    });

    it("and are rejected by an older one, which names that release", async (t) => {
      const needs = { release: "7.8.9", schema: 15, analyticsSchema: 1 };
      const tooNew = {
        schema: await altered(t, (manifest) => ({ ...manifest, version: "7.9.0", needs: { ...needs, schema: 900 } })),
        analytics: await altered(t, (manifest) => ({ ...manifest, needs: { ...needs, analyticsSchema: 900 } })),
        // A newer release can have more files.
        format: await altered(t, () => ({ format: 2, version: "7.8.9" }), { "webhooks.db": "new" }),
      };
      for (const [what, backup] of Object.entries(tooNew)) {
        const says =
          /^OperatorError: \S+altered\.backup was made by Latchkey \S+ and has the .*(900|format 2).*; this release .*\. Use Latchkey 7\.8\.9 or newer\.$/;
        await assert.rejects(verifyBackup(backup, NONE), says, what);
        const folder = join(makeFolder(t), "data");
        await assert.rejects(restore(backup, folder), says, what);
        assert.equal(existsSync(folder), false);
      }
    });
  });

  describe("that somebody made who wants harm", () => {
    it("have a manifest of the known form, and nothing in it reaches the terminal otherwise (rule 236)", async (t) => {
      const change: Record<string, (manifest: Manifest) => object> = {
        version: (manifest) => ({ ...manifest, version: "1\u001b[2J" }),
        copiedAt: (manifest) => ({ ...manifest, copiedAt: "2026-01-01T00:00:00Z\nAll is well" }),
        fingerprint: ({ vault, ...rest }) => ({ ...rest, vault: { ...vault, fingerprint: "\u001b]0;x\u0007" } }),
        "no fingerprint": (manifest) => ({ ...manifest, vault: { includesKey: false } }),
        "no tables": (manifest) => ({ ...manifest, tables: null }),
        tables: (manifest) => ({ ...manifest, tables: [1] }),
        needs: (manifest) => ({ ...manifest, needs: 5 }),
        release: ({ needs, ...rest }) => ({ ...rest, needs: { ...needs, release: "\u009b2J" } }),
        changes: (manifest) => ({ ...manifest, changes: "9" }),
        "files twice": ({ files, ...rest }) => ({ ...rest, files: [...files, ...files] }),
      };
      for (const [what, alter] of Object.entries(change)) {
        const made = await altered(t, alter);
        const folder = join(makeFolder(t), "data");
        const form = { name: "DamagedBackup", message: /: its manifest has another form\. Use another copy\.$/ };
        await assert.rejects(verifyBackup(made, NONE), form, what);
        await assert.rejects(restore(made, folder), form, what);
        assert.equal(existsSync(folder), false, what);
      }
    });

    it("never need more room than they have bytes (rule 236)", async (t) => {
      const stage = makeFolder(t);
      writeFileSync(join(stage, "latchkey.db"), Buffer.alloc(8 * 2 ** 20, randomBytes(65_536)));
      for (const [name, options, message] of [
        [
          "gzip.backup",
          { gzip: true },
          /gzip\.backup is compressed\. Decompress it with gunzip, and give that file\.$/,
        ],
        [
          "zstd.backup",
          { zstd: true },
          /zstd\.backup is compressed\. Decompress it with unzstd, and give that file\.$/,
        ],
        // It has no beginning of its own, and is recognized by the name.
        [
          "brotli.tbr",
          { brotli: true },
          /brotli\.tbr is not a complete backup: "latchkey\.db" does not belong into it/,
        ],
      ] as const) {
        const bomb = join(makeFolder(t), name);
        await createTar({ cwd: stage, file: bomb, ...options }, ["latchkey.db"]);
        const [place, data] = [makeFolder(t), join(makeFolder(t), "data")];
        await assert.rejects(verifyBackup(bomb, NONE, [place]), message);
        await assert.rejects(restore(bomb, data), message);
        assert.deepEqual([readdirSync(place), existsSync(data)], [[], false]);
      }
    });
  });

  describe("that cannot be restored", () => {
    it("leave nothing where there was nothing", async (t) => {
      const damaged = join(directory, "damaged.backup");
      writeFileSync(damaged, readFileSync(file).subarray(0, 20_000));
      const other = join(directory, "other.backup");
      writeFileSync(other, "this is no archive");
      const foreign = await altered(t, (manifest) => manifest, { "root-key": "lk_root_of_an_attacker" });
      for (const bad of [damaged, other, foreign, join(directory, "missing"), directory]) {
        const parent = makeFolder(t);
        await assert.rejects(restore(bad, join(parent, "a/b/data")), { name: /Error|DamagedBackup/ }, bad);
        assert.deepEqual(readdirSync(parent), [], bad);
      }
    });

    it("leave a folder that existed as it was", async (t) => {
      const folder = makeFolder(t);
      mkdirSync(join(folder, "lost+found"));
      const bad = join(directory, "bad.backup");
      writeFileSync(bad, "this is no archive");
      await assert.rejects(restore(bad, folder), { name: "DamagedBackup" });
      assert.deepEqual(readdirSync(folder), ["lost+found"]);
      // After a restore that was interrupted, the service must still not start.
      mkdirSync(join(folder, "restoring"));
      await assert.rejects(restore(bad, folder), { name: "DamagedBackup" });
      assert(existsSync(join(folder, "restoring")));
      await assert.rejects(
        new TestServer({ settings: { DATA_DIR: folder } }).open(),
        /a restore into this folder did not end/,
      );
      await restore(file, folder);
    });
  });
});

/** Takes a lock, and waits for a byte between opening its file and locking it, and before it ends. */
const lateProcess = `
  import { readSync, writeSync } from "node:fs";
  import { DatabaseSync } from "node:sqlite";
  import { lockPath } from "${new URL("../src/platform/store/sqlite/claim.ts", import.meta.url)}";
  let opened = 0;
  const wait = (said) => { writeSync(1, said); readSync(0, Buffer.alloc(1)); };
  const release = lockPath(process.argv[1], (file) => {
    const lock = new DatabaseSync(file, { timeout: 0 });
    if (opened++ === 0) wait("opened ");
    return lock;
  });
  wait(release === undefined ? "rejected" : "granted after " + opened);
`;

it("a lock is not granted to a process that opened its file before the former holder removed it", async (t) => {
  const path = join(makeFolder(t), "folder");
  const former = lockPath(path)!;
  const late = spawn(process.execPath, ["--input-type=module", "-e", lateProcess, path], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => void late.kill("SIGKILL"));
  let said = "";
  late.stdout.setEncoding("utf8").on("data", (text) => {
    said += text;
  });
  await eventually("the other process opens the file", () => said === "opened ");
  removeLock(path);
  former();
  late.stdin.write(".");
  await eventually("the other process has locked the path", () => /granted|rejected/.test(said));
  assert.match(said, /^opened granted after [23]$/);
  // Otherwise both would hold the path.
  assert.equal(lockPath(path), undefined);
});

for (const kind of stores) {
  describe(`a move to ${kind} that is killed`, () => {
    const server = new TestServer();
    before(() => server.open());
    after(() => server.close());

    it("before the copy begins leaves a target on which no service starts", async (t) => {
      const folder = makeFolder(t);
      const { url, drop } = kind === "postgres" ? await freshDatabase() : { url: `sqlite:${folder}`, drop() {} };
      t.after(drop);
      const values = new Map([["DATA_DIR", server.dataDirectory]]);
      const [config, secrets] = [readConfig(values), readSecrets(values)];
      const to = settingsOf(url, config, secrets);
      const source = await openSource(config, secrets, systemClock);
      // Twice: the command was killed, and again.
      for (let run = 0; run < 2; run++) {
        const target = await openTarget(to.config, to.secrets, systemClock, source.name);
        await target.close();
      }
      await source.close();
      const settings = { DATA_DIR: folder, ...(kind === "postgres" && { DATABASE_URL: url }) };
      await assert.rejects(
        new TestServer({ settings }).open(),
        /^OperatorError: This database is an unfinished copy of sqlite:.*migrate-store.*continues\.$/,
      );
    });
  });
}

it("a move that is killed while it creates the database leaves a folder on which no service starts", async (t) => {
  for (const hasFile of [false, true]) {
    const folder = makeFolder(t);
    writeFileSync(join(folder, "moving"), "sqlite:/var/lib/latchkey/latchkey.db\n");
    if (hasFile) writeFileSync(join(folder, "latchkey.db"), "");
    await assert.rejects(
      new TestServer({ settings: { DATA_DIR: folder } }).open(),
      /a move of sqlite:\/var\/lib\/latchkey\/latchkey\.db into this folder did not end\. Run `latchkey migrate-store`/,
    );
  }
});
