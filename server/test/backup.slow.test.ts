/** Backups of the embedded database, with the real program: consistent, complete, and restored only into empty folders. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { create as createTar } from "tar";
import { systemClock } from "../../engine/src/clock/system.ts";
import { verifyBackup } from "../src/backup/verify.ts";
import { eventually, launch, makeFolder, Program, run, type Server, start } from "./process.ts";

const main = new URL("../src/main.ts", import.meta.url).pathname;

/** Concurrent callers. A creation and a change are a commit each; spends share commits, so they raise the rate. */
const CREATORS = 8;
const RENAMERS = 8;
const SPENDERS = 48;

/** Runs a command on a data folder below `directory`. */
const command = (directory: string, args: string[], folder = "data", under?: string[]) =>
  run(args, { directory, settings: { DATA_DIR: join(directory, folder) }, ...(under && { under }) });

/** A service with an API, and a way to create keys in it. */
async function serve(directory: string) {
  const server = await start({ directory });
  const { apiId } = await server.ok("apis.createApi", { name: "orders" });
  return { server, apiId, create: (input = {}) => server.ok("keys.createKey", { apiId, ...input }) };
}

const isValid = async (server: Server, key: string, input = {}) =>
  (await server.ok("keys.verifyKey", { key, ...input })).valid as boolean;

describe("a backup", () => {
  it("of a running service restores keys, counters and recoverable keys; the start says what is lost", async (t) => {
    const directory = makeFolder(t);
    const { server, create } = await serve(directory);
    const kept = await create({ recoverable: true, credits: { remaining: 5 } });
    await isValid(server, kept.key);
    const limit = { ratelimits: [{ name: "calls", limit: 1, duration: 3_600_000 }] };
    assert.equal(await isValid(server, kept.key, limit), true);
    // Counters are written every second.
    await eventually("the counter on disk", () => statSync(join(directory, "data/counters")).size > 20);
    const file = join(directory, "copy.backup");
    const made = await command(directory, ["backup", file, "--include-vault-key"]);
    assert.equal(made.code, 0, made.output);
    assert.match(made.stdout, /contains the master key of the vault/);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(directory).sort(), ["copy.backup", "data"]);
    await server.ok("keys.deleteKey", { keyId: kept.keyId });
    const later = await create();
    await server.kill("SIGTERM");

    const verified = await command(directory, ["backup", "verify", file, "--json"], "nowhere");
    assert.equal(verified.code, 0, verified.output);
    const report = JSON.parse(verified.stdout);
    assert.equal(report.decrypted, 1);
    assert.equal(report.tables.keys, 1);

    const restored = await command(directory, ["restore", file], "second");
    assert.equal(restored.code, 0, restored.output);
    assert.match(restored.stdout, /Changes after that time are lost/);
    const second = await start({ directory, settings: { DATA_DIR: join(directory, "second") } });
    const line = second.log.find(({ msg }) => String(msg).startsWith("this data folder was restored"))!;
    assert.equal(line.copiedAt, report.copiedAt);
    // The key was revoked after the copy.
    assert.equal(await isValid(second, kept.key, limit), false);
    assert.equal((await second.ok("keys.verifyKey", { key: kept.key, ...limit })).code, "RATE_LIMITED");
    const { key, credits } = await second.ok("keys.getKey", { keyId: kept.keyId, decrypt: true }).then((found) => ({
      key: found.plaintext,
      credits: found.credits.remaining,
    }));
    assert.deepEqual({ key, credits }, { key: kept.key, credits: 3 });
    assert.equal(await isValid(second, later.key), false);
  });

  it("without the vault key says that it must be kept apart, and decrypts with the one at hand", async (t) => {
    const directory = makeFolder(t);
    const { server, create } = await serve(directory);
    await create({ recoverable: true });
    const file = join(directory, "copy.backup");
    const made = await command(directory, ["backup", file]);
    assert.match(made.stdout, /Keep that key apart/);
    await server.kill("SIGKILL");
    assert.equal(JSON.parse((await command(directory, ["backup", "verify", file, "--json"])).stdout).decrypted, 1);
    assert.match((await command(directory, ["backup", "verify", file], "nowhere")).stdout, /were not checked/);
    // As in a container whose root is read-only.
    const verify = (dataDirectory: string) =>
      run(["backup", "verify", file], {
        directory,
        settings: { DATA_DIR: dataDirectory },
        environment: { TMPDIR: "/nonexistent" },
      });
    assert.match((await verify(join(directory, "data"))).stdout, /is complete: .*\n1 recoverable keys were decrypted/);
    const restored = await command(directory, ["restore", file], "second");
    const expected = /Before the start, copy the vault key \(\w+\) to \S+\/second\/vault-key, .*secrets of webhooks/;
    assert.match(restored.stdout, expected);
  });

  it("under sustained writes ends, and has every write that was acknowledged before it began", async (t) => {
    const directory = makeFolder(t);
    const { server, create } = await serve(directory);
    const CREDITS = 1_000_000;
    const spent = await create({ credits: { remaining: CREDITS } });
    // One for each writer that renames, so that the names of a key have an order.
    const renamed = await Promise.all(Array.from({ length: RENAMERS }, () => create()));
    const acknowledged = { created: [] as string[], renamed: [] as { keyId: string; name: string }[], spends: 0 };
    const count = () => acknowledged.created.length + acknowledged.renamed.length + acknowledged.spends;
    let writing = true;
    const kinds: { writers: number; write: (writer: number) => Promise<void> }[] = [
      { writers: CREATORS, write: async () => void acknowledged.created.push((await create()).keyId) },
      {
        writers: RENAMERS,
        async write(writer) {
          const { keyId } = renamed[writer]!;
          const name = `renamed ${acknowledged.renamed.length}`;
          await server.ok("keys.updateKey", { keyId, name });
          acknowledged.renamed.push({ keyId, name });
        },
      },
      {
        writers: SPENDERS,
        async write() {
          assert(await isValid(server, spent.key));
          acknowledged.spends++;
        },
      },
    ];
    const startedAt = systemClock.monotonic();
    const writers = kinds.flatMap(({ writers, write }) =>
      Array.from({ length: writers }, async (_, writer) => {
        while (writing) await write(writer);
      }),
    );
    await eventually("some writes", () => count() > 600);
    const before = {
      created: [...acknowledged.created],
      renamed: acknowledged.renamed.length,
      spends: acknowledged.spends,
    };
    const [countBefore, beganAt] = [count(), systemClock.monotonic()];
    const file = join(directory, "copy.backup");
    const made = await command(directory, ["backup", file, "--include-vault-key", "--rate", "4"]);
    writing = false;
    await Promise.all(writers);
    const rates = [
      countBefore / (beganAt - startedAt),
      (count() - countBefore) / (systemClock.monotonic() - beganAt),
    ].map((perMs) => Math.round(1_000 * perMs));
    t.diagnostic(`${rates[0]} writes a second before the backup, ${rates[1]} during it`);
    assert.equal(made.code, 0, made.output);
    assert(count() > countBefore, "no write during the backup");
    await server.kill("SIGKILL");
    const restored = await command(directory, ["restore", file], "second");
    assert.equal(restored.code, 0, restored.output);
    const second = await start({ directory, settings: { DATA_DIR: join(directory, "second") } });
    for (const keyId of before.created) assert.equal((await second.call("keys.getKey", { keyId })).status, 200, keyId);
    const newest = new Map(acknowledged.renamed.slice(0, before.renamed).map(({ keyId, name }) => [keyId, name]));
    assert(newest.size > 0, "keys were renamed before the backup");
    for (const [keyId, name] of newest) {
      const names = acknowledged.renamed.filter((change) => change.keyId === keyId).map((change) => change.name);
      const found = (await second.ok("keys.getKey", { keyId })).name;
      assert(names.indexOf(found) >= names.indexOf(name), `${keyId} is named ${found}, not ${name} or a later name`);
    }
    const { remaining } = (await second.ok("keys.getKey", { keyId: spent.keyId })).credits;
    assert(remaining <= CREDITS - before.spends, `${CREDITS - remaining} of ${before.spends} spends are in the backup`);
  });

  it("that is killed leaves no file, and the next one removes its remains", async (t) => {
    const directory = makeFolder(t);
    const { server } = await serve(directory);
    await server.kill("SIGTERM");
    const file = join(directory, "copy.backup");
    for (const remain of ["files/latchkey.db", "files/manifest.json", "backup.tar"]) {
      const settings = { LATCHKEY_DATA_DIR: join(directory, "data") };
      const running = new Program([main, "backup", file, "--rate", "1"], { directory, environment: settings });
      await eventually(remain, () => existsSync(join(`${file}.partial`, remain)) || running.hasEnded);
      await running.kill("SIGKILL");
      assert(!existsSync(file), `killed at ${remain}`);
      const verified = await command(directory, ["backup", "verify", join(`${file}.partial`, "backup.tar")]);
      assert.equal(verified.code, 1, verified.output);
    }
    assert.equal((await command(directory, ["backup", file])).code, 0);
    assert(!existsSync(`${file}.partial`));
    assert.equal((await command(directory, ["backup", "verify", file])).code, 0);
  });

  it("never replaces a file without --force", async (t) => {
    const directory = makeFolder(t);
    const { server } = await serve(directory);
    await server.kill("SIGTERM");
    const file = join(directory, "copy.backup");
    writeFileSync(file, "precious");
    const rejected = await command(directory, ["backup", file]);
    assert.equal(rejected.code, 1);
    assert.match(rejected.stderr, /copy\.backup exists\. Name another file, or replace this one with --force/);
    assert.equal(readFileSync(file, "utf8"), "precious");
    assert.equal((await command(directory, ["backup", file, "--force"])).code, 0);
    assert.equal((await command(directory, ["backup", "verify", file])).code, 0);
  });

  it("on a full disk fails with one line and leaves nothing", async (t) => {
    const directory = makeFolder(t);
    const { server } = await serve(directory);
    await server.kill("SIGTERM");
    const folder = join(directory, "full");
    mkdirSync(folder);
    const script = 'mount -t tmpfs -o size=256k tmpfs "$1"; shift; "$@"; code=$?; ls -A "$0"; exit $code';
    const under = ["unshare", "--mount", "sh", "-c", script, folder, folder];
    if (spawnSync(under[0]!, [...under.slice(1), "true"]).status !== 0) return t.skip("mounting is not allowed");
    const failed = await command(directory, ["backup", join(folder, "copy.backup")], "data", under);
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /^latchkey: [^\n]*copy\.backup: no backup was written: the disk is full[^\n]*\n$/);
    assert.equal(failed.stdout, "");
  });

  it("that is truncated or altered anywhere is rejected", async (t) => {
    const directory = makeFolder(t);
    const { server } = await serve(directory);
    await server.kill("SIGTERM");
    const file = join(directory, "copy.backup");
    assert.equal((await command(directory, ["backup", file])).code, 0);
    const bytes = readFileSync(file);
    const damaged = join(directory, "damaged.backup");
    const expectRejected = async (content: Buffer, what: string) => {
      writeFileSync(damaged, content);
      await assert.rejects(verifyBackup(damaged, { kind: "none" }), { name: "DamagedBackup" }, what);
    };
    await verifyBackup(file, { kind: "none" });
    // The end of an archive is 1,024 zeros.
    for (let part = 0; part < 10; part++) {
      const length = Math.floor(((bytes.length - 1_100) * part) / 10);
      await expectRejected(bytes.subarray(0, length), `${length} bytes`);
    }
    for (let at = 0; at < bytes.length; at += Math.floor(bytes.length / 40)) {
      // Zeros can be padding.
      const position = bytes.findIndex((byte, index) => index >= at && byte !== 0);
      if (position === -1) break;
      const altered = Buffer.from(bytes);
      altered[position]! ^= 0x10;
      await expectRejected(altered, `byte ${position}`);
    }
  });

  it("with other files in it is rejected, and none of them is written", async (t) => {
    const directory = makeFolder(t);
    const stage = join(directory, "stage");
    mkdirSync(stage);
    writeFileSync(join(directory, "outside"), "outside");
    writeFileSync(join(stage, "root-key"), "lk_root_of_an_attacker");
    symlinkSync(directory, join(stage, "analytics"));
    for (const [names, found] of [
      [["root-key"], "root-key"],
      [["analytics"], "analytics"],
      [["../outside"], "../outside"],
    ] as const) {
      const file = join(directory, "made.backup");
      await createTar({ cwd: stage, file, preservePaths: true }, [...names]);
      const restored = await command(directory, ["restore", file], "second");
      assert.equal(restored.code, 1);
      assert(restored.stderr.includes(`"${found}`), restored.stderr);
      assert.equal(existsSync(join(directory, "second")), false);
    }
  });
});

describe("a restore", () => {
  it("never overwrites a data folder, and can be repeated after it was interrupted", async (t) => {
    const directory = makeFolder(t);
    const { server, create } = await serve(directory);
    const { key } = await create();
    const file = join(directory, "copy.backup");
    assert.equal((await command(directory, ["backup", file, "--include-vault-key"])).code, 0);
    const whileRunning = await command(directory, ["restore", file]);
    assert.match(whileRunning.stderr, /is not empty: it has .*Restore into an empty folder/);
    await server.kill("SIGTERM");
    const before = readFileSync(join(directory, "data/latchkey.db"));
    assert.equal((await command(directory, ["restore", file])).code, 1);
    assert(readFileSync(join(directory, "data/latchkey.db")).equals(before));

    // What a restore leaves that was killed while it placed its files.
    mkdirSync(join(directory, "second/restoring"), { recursive: true });
    writeFileSync(join(directory, "second/analytics.db"), "half");
    const settings = { DATA_DIR: join(directory, "second") };
    const early = launch({ directory, settings });
    assert.equal((await early.ended).code, 1);
    assert.match(early.stderr, /a restore into this folder did not end/);
    assert.equal((await command(directory, ["restore", file], "second")).code, 0);
    assert.equal(await isValid(await start({ directory, settings }), key), true);
  });

  it("on PostgreSQL names the tools to use", async (t) => {
    const directory = makeFolder(t);
    const settings = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };
    for (const args of [
      ["backup", "x"],
      ["restore", "x"],
    ]) {
      const { code, stderr } = await run(args, { directory, settings });
      assert.equal(code, 1);
      assert.match(stderr, /pg_dump/);
    }
  });
});
