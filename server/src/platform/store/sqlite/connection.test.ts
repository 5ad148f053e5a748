import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { describe, it } from "node:test";
import { Rollback } from "../store.ts";
import { openSqliteConnection, raw } from "./connection.ts";
import { SyncMark } from "./write-health.ts";

describe("a writing connection to SQLite", () => {
  const folder = (t: { after(undo: () => void): void }) => {
    const made = mkdtempSync(join(tmpdir(), "latchkey-test-"));
    t.after(() => rmSync(made, { recursive: true, force: true }));
    return made;
  };

  it("is opened when every commit is synced", (t) => {
    openSqliteConnection(join(folder(t), "latchkey.db"), "write").close();
  });

  it("moves commits out of the log at a checkpoint, in small steps", async (t) => {
    const file = join(folder(t), "latchkey.db");
    const { sql, transaction, checkpoint, close } = openSqliteConnection(file, "write");
    t.after(close);
    const run = (text: string) => transaction(() => raw(sql, text));
    const logBytes = () => statSync(`${file}-wal`).size;
    await run("create table numbers (number integer primary key, filling blob)");
    // Too few pages for a checkpoint: the log only grows.
    await run("insert into numbers (filling) values (zeroblob(100000))");
    const before = logBytes();
    checkpoint();
    await run("insert into numbers (filling) values (zeroblob(100000))");
    assert(logBytes() > before + 90_000);
    // From here on, the log is reused.
    for (let i = 0; i < 100; i++) {
      await run("insert into numbers (filling) values (zeroblob(100000))");
      checkpoint();
    }
    assert(logBytes() < 1_000_000, `${logBytes()} bytes`);
  });

  it("gives a table another version after each statement that may change it, and each commit of another connection", async (t) => {
    const file = join(folder(t), "latchkey.db");
    const { sql, transaction, close } = openSqliteConnection(file, "write");
    t.after(close);
    const run = (text: string) => transaction(() => raw(sql, text));
    for (const table of ["numbers", "others"]) await run(`create table ${table} (number integer)`);
    const changes = async (work: () => unknown) => {
      const before = sql.versionOf!("numbers");
      await work();
      return sql.versionOf!("numbers") !== before;
    };
    for (const text of [
      "insert into numbers values (1)",
      'INSERT INTO "numbers" values (2)',
      "insert or ignore into numbers values (2)",
      "replace into numbers values (2)",
      "update numbers set number = 3 where number = 1",
      "update or ignore numbers set number = 3 where number = 2",
      'with some as (select 3 as number) update "numbers" set number = 4 where number in (select number from some)',
      'delete from "numbers" where number = 2',
    ]) {
      assert(await changes(() => run(text)), text);
      assert(await changes(() => run(text)), `${text}, again`);
    }
    const row = { number: 7 } as never;
    assert(
      await changes(() =>
        sql.db
          .insertInto("numbers" as never)
          .values(row)
          .execute(),
      ),
      "by the query builder",
    );
    const deletion = { statement: "delete from numbers where number = ?1", table: "numbers", inserts: false };
    assert(await changes(() => sql.each!(deletion, [[7], [8]])), "for each row");
    assert(await changes(() => transaction(async () => new Rollback(await raw(sql, "delete from numbers")))));
    const other = openSqliteConnection(file, "write");
    t.after(() => other.close());
    assert(await changes(() => other.transaction(() => raw(other.sql, "delete from numbers"))), "elsewhere");
    for (const text of ["select number from numbers", "insert into others select number from numbers"]) {
      assert.equal(await changes(() => run(text)), false, text);
    }
  });

  it("names the columns of rows as they are after a change of the schema", async (t) => {
    const { sql, close } = openSqliteConnection(join(folder(t), "latchkey.db"), "write");
    t.after(close);
    await raw(sql, "create table numbers (number integer, word text)");
    await raw(sql, "insert into numbers values (1, 'one')");
    const rows = async () => ((await raw(sql, "select * from numbers")) as { rows: unknown[] }).rows;
    assert.deepEqual(await rows(), [{ number: 1, word: "one" }]);
    await raw(sql, "alter table numbers rename column word to name");
    assert.deepEqual(await rows(), [{ number: 1, name: "one" }]);
    await raw(sql, "alter table numbers add column sign integer");
    assert.deepEqual(await rows(), [{ number: 1, name: "one", sign: null }]);
    await raw(sql, "alter table numbers drop column number");
    assert.deepEqual(await rows(), [{ name: "one", sign: null }]);
  });

  it("marks each sync while it is under way, and nothing else", async (t) => {
    const syncs = new SyncMark();
    const { sql, transaction, checkpoint, close } = openSqliteConnection(join(folder(t), "latchkey.db"), "write", {
      syncs,
    });
    t.after(close);
    const marked: [text: string, isSync: boolean][] = [];
    const { exec } = DatabaseSync.prototype;
    t.mock.method(DatabaseSync.prototype, "exec", function (this: DatabaseSync, text: string) {
      marked.push([text, syncs.current !== undefined]);
      exec.call(this, text);
    });
    await transaction(async () => {
      await raw(sql, "create table numbers (number integer primary key, filling blob)");
      await raw(sql, "insert into numbers (filling) values (zeroblob(1000000))");
      assert.equal(syncs.current, undefined);
    });
    await assert.rejects(transaction(() => raw(sql, "insert into nothing values (1)")));
    assert.deepEqual(marked, [
      ["begin immediate", false],
      ["commit", true],
      ["begin immediate", false],
      ["rollback", false],
    ]);
    const before = new Int32Array(syncs.buffer)[0]!;
    const marks = () => new Int32Array(syncs.buffer)[0]! - before;
    // The transaction has written 250 pages, so another one like it may follow.
    checkpoint();
    assert.deepEqual([marks(), syncs.current], [0, undefined]);
    await transaction(() => raw(sql, "insert into numbers (filling) values (zeroblob(10))"));
    checkpoint();
    assert.deepEqual([marks(), syncs.current], [4, undefined], "of the commit, and of the checkpoint");
  });

  it("continues when a checkpoint fails", (t) => {
    const { checkpoint, close } = openSqliteConnection(join(folder(t), "latchkey.db"), "write");
    t.after(close);
    const mock = t.mock.method(StatementSync.prototype, "get", () => {
      throw new Error("disk is full");
    });
    checkpoint();
    assert.equal(mock.mock.callCount(), 1);
    mock.mock.restore();
  });

  it("is rejected when a commit may be lost", (t) => {
    const { exec } = DatabaseSync.prototype;
    for (const [setting, value] of [
      ["off", 0],
      ["normal", 1],
    ] as const) {
      const mock = t.mock.method(DatabaseSync.prototype, "exec", function (this: DatabaseSync, text: string) {
        exec.call(this, text.replace("synchronous = full", `synchronous = ${setting}`));
      });
      const open = () => openSqliteConnection(join(folder(t), "latchkey.db"), "write");
      assert.throws(open, new RegExp(`synchronous = ${value}; writes need 2`));
      mock.mock.restore();
    }
  });
});
