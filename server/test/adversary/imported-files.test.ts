/** Files that damage, other programs or an attacker left for `latchkey import`, and disks and processes in its way. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { hashSecret } from "../../../engine/src/crypto/hash.ts";
import { TestServer } from "../harness.ts";
import { Importing } from "../importing.ts";
import { makeFolder } from "../process.ts";

describe("an import", () => {
  const server = new TestServer({ settings: { PORT: "0" } });
  const importing = new Importing(server);

  async function importer(t: TestContext, directory = makeFolder(t)) {
    const opened = await importing.open(directory);
    const run = (name: string, ...args: string[]) => opened.run(name, "--from", "generic", ...args);
    const write = (name: string, content: string | Buffer) => writeFileSync(join(directory, name), content);
    return { ...opened, run, write };
  }

  it("rejects the row that the service would refuse, and imports the others (rule 233)", async (t) => {
    const { run, write, linesOf, keys } = await importer(t);
    const hostile = ['{"__proto__":{"a":1}}', '{"a":"\\ud800"}', '{"a\\udc00":1}', '{"a":[{"__proto__":1}]}'];
    write("h.jsonl", hostile.map((meta, i) => `{"key":"h${i}","meta":${meta}}\n{"key":"g${i}"}`).join("\n"));
    write("h.csv", `key,meta\nc0,"{""__proto__"":1}"\nc1,\n`);
    for (const [file, rejected] of [
      ["h.jsonl", [1, 3, 5, 7]],
      ["h.csv", [1]],
    ] as const) {
      for (const args of [["--dry-run"], []]) {
        const { code, stderr } = await run(file, ...args);
        assert.deepEqual([code, stderr], [1, ""]);
        const lines = linesOf(`${file}.${args.length ? "dry-run" : "report"}.jsonl`);
        assert.deepEqual(
          lines.filter(({ outcome }) => outcome === "rejected").map(({ row }) => row),
          rejected,
        );
      }
    }
    assert.equal((await keys()).length, hostile.length + 1);
  });

  it("keeps numbers that no double holds, of owners and in metadata (rule 233)", async (t) => {
    const { run, write, keys } = await importer(t);
    const row =
      '{"key":"KEY","externalId":9007199254740993,"meta":{"n":12345678901234567891,"x":1e999,"y":0.5,"z":-7}}';
    write("n.jsonl", `${row.replace("KEY", "n0")}\n`);
    write("n.json", `[${row.replace("KEY", "n1")}]`);
    write("n.yaml", `- ${row.replace("KEY", "n2").replaceAll(":", ": ")}\n`);
    write("n.csv", `key,externalId,meta\nn3,9007199254740993,"${/\{"n.*?\}/.exec(row)![0].replaceAll('"', '""')}"\n`);
    for (const file of ["n.jsonl", "n.json", "n.yaml", "n.csv"]) {
      const { code, stderr, stdout } = await run(file);
      assert.deepEqual([code, stderr], [0, ""], file + stdout);
    }
    const found = await keys();
    assert.equal(found.length, 4);
    for (const { identity, meta } of found) {
      assert.equal((identity as { externalId: string }).externalId, "9007199254740993");
      assert.deepEqual(meta, { n: "12345678901234567891", x: "1e999", y: 0.5, z: -7 });
    }
  });

  it("of a file in another encoding imports no row of it, also not of those before (rule 233)", async (t) => {
    const { run, write, keys, directory } = await importer(t);
    // More than a thousand rows, which are sent together, and more than is read at once.
    const rows = Array.from({ length: 1_500 }, (_, i) => `k${i}_${"x".repeat(200)}`);
    const inLatin1 = { key: "M\u00fcller", name: "M\u00fcller" };
    write("l.csv", Buffer.from(`key,name\n${rows.map((key) => `${key},n\n`).join("")}${inLatin1.key},n\n`, "latin1"));
    write(
      "l.jsonl",
      Buffer.from([...rows.map((key) => ({ key })), inLatin1].map((row) => JSON.stringify(row)).join("\n"), "latin1"),
    );
    write("l.json", Buffer.from(JSON.stringify([{ key: "k0" }, inLatin1]), "latin1"));
    write("l.yaml", Buffer.from("- key: k0\n- key: M\u00fcller\n", "latin1"));
    for (const [file, line] of [
      ["l.csv", 1_502],
      ["l.jsonl", 1_501],
      ["l.json", 1],
      ["l.yaml", 2],
    ] as const) {
      for (const args of [["--dry-run"], []]) {
        const { code, stderr } = await run(file, ...args);
        assert.equal(code, 1);
        assert.match(stderr, new RegExp(`^latchkey: ${file} is not UTF-8: see line ${line}\\. Convert it, .*\\n$`));
      }
      assert(!existsSync(join(directory, `${file}.report.jsonl`)));
    }
    assert.deepEqual(await keys(), []);
  });

  it("reads files with a byte order mark, as spreadsheets write them (rule 233)", async (t) => {
    const { as, run, write } = await importer(t);
    const contents = {
      csv: "key,name\r\nKEY,M\u00fcller\r\n",
      jsonl: '{"key":"KEY"}\r\n',
      json: '[{"key":"KEY"}]',
      yaml: "- key: KEY\r\n",
    };
    for (const [format, content] of Object.entries(contents)) {
      for (const encoding of ["utf8", "utf16le", "utf16be"]) {
        const key = `marked_${format}_${encoding}`;
        const text = `\ufeff${content.replace("KEY", key)}`;
        const bytes = Buffer.from(text, encoding === "utf8" ? "utf8" : "utf16le");
        write(`${key}.${format}`, encoding === "utf16be" ? bytes.swap16() : bytes);
        const { code, stdout, stderr } = await run(`${key}.${format}`);
        assert.deepEqual([code, stderr], [0, ""], stdout);
        assert.equal((await server.verify(key, {}, { as })).code, "VALID");
      }
    }
  });

  it("rejects a row that has a field twice, in two spellings", async (t) => {
    const { run, write, linesOf } = await importer(t);
    write("two.jsonl", '{"key":"t0","externalId":"a","external_id":"b"}\n');
    assert.equal((await run("two.jsonl")).code, 1);
    assert.equal(linesOf("two.jsonl.report.jsonl")[0].reason, "has the field external_id twice, in two spellings");
  });

  it("rejects a row of JSON that has a member twice, at any depth, and a document with one (rule 243)", async (t) => {
    const { run, write, linesOf, as } = await importer(t);
    const rows = [
      '{"key":"r0","name":"a","name":"b"}',
      '{"key":"r1","meta":{"seats":1,"s\\u0065ats":2}}',
      '{"key":"r2","meta":"{\\"a\\":[{\\"b\\":1,\\"b\\":2}]}"}',
      '{"key":"r3","meta":{"text":"a\\u003a b","a":1,"a":2}}',
      '{"key":"r4","meta":{"name":"x:y","a":{"name":"\\"a\\": 1"},"b":[{"name":1},{"name":2}]}}',
    ];
    write("twice.jsonl", rows.map((row) => `${row}\n`).join(""));
    assert.equal((await run("twice.jsonl")).code, 1);
    assert.deepEqual(
      linesOf("twice.jsonl.report.jsonl").flatMap(({ row, reason }) => (row === 5 ? [] : [[row, reason]])),
      ["name", "seats", "b", "a"].map((name, i) => [i + 1, `has the member "${name}" twice`]),
    );
    for (const [i, code] of ["NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "NOT_FOUND", "VALID"].entries()) {
      assert.equal((await server.verify(`r${i}`, {}, { as })).code, code);
    }
    write("twice.json", `[\n${rows[4]},\n${rows[1]}\n]\n`);
    const { code, stderr } = await run("twice.json");
    assert.deepEqual(
      [code, stderr],
      [1, 'latchkey: twice.json has the member "seats" twice in one object, at line 3.\n'],
    );
    write("cell.csv", 'key,meta\nr5,"{""a"":1,""a"":2}"\n');
    assert.equal((await run("cell.csv")).code, 1);
    assert.equal(linesOf("cell.csv.report.jsonl")[0].reason, 'has the member "a" twice');
  });

  it("says at once that it reads files only", { skip: process.platform === "win32" }, async (t) => {
    const { run, directory } = await importer(t);
    execFileSync("mkfifo", [join(directory, "pipe.jsonl")]);
    for (const name of ["pipe.jsonl", "/dev/zero", "-"]) {
      const { code, stderr } = await run(name, "--format", "jsonl");
      assert.equal(code, 2);
      assert.equal(stderr, `latchkey: ${name} is no file. Write what it gives to a file first, and import that.\n`);
    }
  });

  it("follows no link in the place of its own files, and lets nobody else read them", async (t) => {
    const { run, write, directory } = await importer(t);
    const victim = join(directory, "victim");
    write("victim", "precious");
    const own = ["dry-run.jsonl", "report.jsonl", "import-state.json", "import-state.json.draft", "import-lock"].map(
      (name) => join(directory, `s.csv.${name}`),
    );
    write("s.csv", "key,name\ns0,n\n");
    for (const path of own) {
      symlinkSync(victim, path);
      for (const args of [["--dry-run"], []]) await run("s.csv", ...args);
      assert.equal(readFileSync(victim, "utf8"), "precious", path);
      for (const other of own) rmSync(other, { force: true });
    }
    for (const path of own) {
      rmSync(path, { force: true });
      writeFileSync(path, "");
      chmodSync(path, 0o666);
    }
    rmSync(own[2]!);
    for (const args of [["--dry-run"], []]) await run("s.csv", ...args);
    for (const path of own.filter((name) => existsSync(name))) assert.equal(statSync(path).mode & 0o777, 0o600, path);
    assert(existsSync(own[0]!) && existsSync(own[1]!) && existsSync(own[2]!));
  });

  it("runs once at a time for one file, and after one that was killed (rule 234)", async (t) => {
    const { run, write, keys, directory } = await importer(t);
    write("two.csv", "key,name\na,n\n");
    const lock = join(directory, "two.csv.import-lock");
    // This process runs, and is not that of the command.
    writeFileSync(lock, String(process.pid));
    const { code, stderr } = await run("two.csv");
    assert.equal(code, 1);
    assert.equal(
      stderr,
      `latchkey: This file is being imported by the process ${process.pid}. Wait until it ends, or remove two.csv.import-lock if it is no import.\n`,
    );
    assert.deepEqual(await keys(), []);
    const { pid } = spawnSync(process.execPath, ["--version"]);
    for (const left of [String(pid), "", "no number"]) {
      writeFileSync(lock, left);
      assert.equal((await run("two.csv")).code, 0);
      assert(!existsSync(lock));
    }
    assert.equal((await keys()).length, 1);
  });

  it("says that the file changed while it was read, and does not count as finished (rule 234)", async (t) => {
    const { run, write, directory } = await importer(t);
    write("c.csv", `hash\n${Array.from({ length: 10 }, (_, i) => hashSecret(`c${i}`)).join("\n")}\n`);
    const proxy = createServer(async (request, response) => {
      const body = Buffer.concat(await request.toArray());
      appendFileSync(join(directory, "c.csv"), `${hashSecret("later")}\n`);
      const headers = { "content-type": "application/json", authorization: request.headers.authorization! };
      const reply = await fetch(`${importing.url}${request.url}`, { method: "POST", headers, body });
      response.writeHead(reply.status, { "content-type": "application/json" }).end(await reply.text());
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      proxy.close();
      proxy.closeAllConnections();
    });
    const { code, stderr } = await run("c.csv", "--url", `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    assert.equal(code, 1);
    assert.match(stderr, /^latchkey: c\.csv changed while it was read: .*\n$/);
    assert.equal(JSON.parse(readFileSync(join(directory, "c.csv.import-state.json"), "utf8")).isFinished, false);
  });

  describe("on a disk that becomes full (rule 234)", () => {
    const rows = 1_000;
    const content = `key,name\n${Array.from({ length: rows }, (_, i) => `full${i},n${i}\n`).join("")}`;

    function smallDisk(t: TestContext): string | undefined {
      const folder = mkdtempSync(join(tmpdir(), "latchkey-disk-"));
      const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=200k", "tmpfs", folder]);
      t.after(() => {
        if (status === 0) execFileSync("umount", ["--lazy", folder]);
        rmSync(folder, { recursive: true });
      });
      if (status !== 0) return undefined;
      writeFileSync(join(folder, "full.csv"), content);
      return folder;
    }

    for (const [part, args] of [
      ["the report of a dry run", ["--dry-run"]],
      ["the report", []],
    ] as const) {
      it(`says in one line that ${part} is not complete, and continues when there is room`, async (t) => {
        const folder = smallDisk(t);
        if (folder === undefined) return t.skip("no file system can be mounted");
        const { run, linesOf } = await importer(t, folder);
        const filler = join(folder, "filler");
        // Less than the report has, so that a write of it ends early and does not fail.
        writeFileSync(filler, Buffer.alloc(136 * 1_024));
        const { code, stdout, stderr } = await run("full.csv", ...args);
        assert.deepEqual([code, stdout], [1, ""]);
        assert.match(stderr, /^latchkey: full\.csv\.\S+ cannot be written: the disk is full\. Make room, .*\n$/);
        rmSync(filler);
        const again = await run("full.csv", ...args);
        assert.equal(again.code, 0, again.stderr);
        assert.equal(linesOf(`full.csv.${args.length ? "dry-run" : "report"}.jsonl`).length, rows);
      });
    }
  });
});
