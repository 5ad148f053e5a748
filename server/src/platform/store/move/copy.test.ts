/** Copying between databases, statement by statement: what triggers record, and when writes are rejected. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { systemClock } from "../../../../../engine/src/clock/system.ts";
import { eventually } from "../../../../test/process.ts";
import { freshDatabase } from "../../../../test/services/postgres.ts";
import { findTables } from "../catalog.ts";
import type { DialectName } from "../dialect.ts";
import { CopyDiffers, StoreCopy } from "./copy.ts";
import type { CopyDatabase, Row } from "./database.ts";
import { openPostgresCopy } from "./postgres.ts";
import { SourcePart } from "./source.ts";
import { openSqliteCopy } from "./sqlite.ts";
import { tablesToCopy } from "./tables.ts";
import { TargetPart } from "./target.ts";

const SCHEMA = `
  create table owners (id text not null primary key, name text not null);
  create unique index owners_name on owners (name);
  create table cars (owner_id text not null references owners (id) on delete cascade, number bigint not null, color text,
    primary key (owner_id, number))`;

/** Opens a database several times. */
type Opener = () => Promise<CopyDatabase>;

/** Rows of `owners` whose id is in `gone` are never inserted, as keys that were forgotten. */
const GONE = {
  sqlite: `
    create table gone (id text not null primary key);
    create trigger keep_gone before insert on owners when exists (select 1 from gone where id = new.id)
      begin select raise(ignore); end`,
  postgres: `
    create table gone (id text not null primary key);
    create function keep_gone() returns trigger language plpgsql as $$
      begin if exists (select 1 from gone where id = new.id) then return null; end if; return new; end $$;
    create trigger keep_gone before insert on owners for each row execute function keep_gone()`,
};

async function emptyDatabase(t: TestContext, dialect: DialectName, schema: string): Promise<Opener> {
  const opened: CopyDatabase[] = [];
  let open: Opener;
  if (dialect === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    open = async () => openSqliteCopy(join(folder, "test.db"));
  } else {
    const { url, drop } = await freshDatabase();
    t.after(drop);
    open = () => openPostgresCopy(url);
  }
  t.after(() => Promise.all(opened.map((database) => database.close())));
  const tracked = async () => {
    const database = await open();
    opened.push(database);
    return database;
  };
  const first = await tracked();
  await first.run(SCHEMA.replaceAll("bigint", dialect === "sqlite" ? "integer" : "bigint"));
  await first.run(schema);
  return tracked;
}

/** A source and a target with a copy between them, and another connection to the source. */
async function openCopy(t: TestContext, from: DialectName, to: DialectName, more = { sqlite: "", postgres: "" }) {
  const [openSource, openTarget] = [await emptyDatabase(t, from, more[from]), await emptyDatabase(t, to, more[to])];
  const [sourceDatabase, targetDatabase, other] = [await openSource(), await openTarget(), await openSource()];
  if (from === "sqlite") await other.run("pragma foreign_keys = on");
  const tables = tablesToCopy(await findTables(sourceDatabase), await findTables(targetDatabase));
  const [source, target] = [new SourcePart(sourceDatabase, tables), new TargetPart(targetDatabase, tables)];
  const copy = new StoreCopy(
    tables.map((table) => ({ table, source, target })),
    {
      clock: systemClock,
      rowsPerSecond: 1_000_000,
      rewriting: { copy: (_, row) => row, comparable: (_, row) => row },
      onProgress: () => {},
    },
  );
  await source.state();
  await target.state();
  await source.record("move", "there");
  await target.begin("move", "here");
  const touched = async (): Promise<Row[]> => (await source.touched("0", 100)).map(({ table, key }) => [table, ...key]);
  return { source, target, copy, other, sourceDatabase, targetDatabase, touched };
}

for (const dialect of ["sqlite", "postgres"] as const) {
  describe(`a source on ${dialect}`, () => {
    it("records the keys of all rows that a transaction touches, in the transaction", async (t) => {
      const { other, touched, sourceDatabase } = await openCopy(t, dialect, "sqlite");
      const recorded = async (text: string) => {
        await sourceDatabase.run("delete from move_changes");
        await other.run(text);
        return touched();
      };
      assert.deepEqual(await recorded("insert into owners values ('a', 'Ann'), ('b', 'Bob')"), [
        ["owners", "a"],
        ["owners", "b"],
      ]);
      assert.deepEqual(await recorded("insert into cars values ('a', 1, 'red'), ('a', 9007199254740991, null)"), [
        ["cars", "a", "1"],
        ["cars", "a", "9007199254740991"],
      ]);
      assert.deepEqual(await recorded("update cars set color = 'blue' where number = 1"), [["cars", "a", "1"]]);
      assert.deepEqual((await recorded("update cars set number = 2 where number = 1")).sort(), [
        ["cars", "a", "1"],
        ["cars", "a", "2"],
      ]);
      assert.deepEqual(
        await recorded("insert into owners values ('b', 'Bea') on conflict (id) do update set name = 'Bea'"),
        [["owners", "b"]],
      );
      assert.deepEqual(await recorded("begin; update owners set name = 'Abe' where id = 'a'; rollback"), []);
      // Foreign keys delete the cars.
      assert.deepEqual((await recorded("delete from owners where id = 'a'")).sort(), [
        ["cars", "a", "2"],
        ["cars", "a", "9007199254740991"],
        ["owners", "a"],
      ]);
    });

    it("rejects writes for a bounded time, and for ever after the end", async (t) => {
      const { source, other } = await openCopy(t, dialect, "sqlite");
      const write = (name: string) => other.run(`insert into owners values ('${name}', '${name}')`);
      const isRejected = () => assert.rejects(write("rejected"), /writes wait for `latchkey migrate-store`/);
      await source.close(300);
      await isRejected();
      await other.rows("select * from owners");
      // Its process was killed: nothing opens the source but time.
      await eventually("an open source", () =>
        write("later").then(
          () => true,
          () => false,
        ),
      );
      await source.close(60_000);
      assert.equal(await source.end(), false, "a row was touched");
      await source.open();
      await write("again");
      await source.snapshot(async () => {});
      assert.equal(await source.end(), false, "writes were not stopped");
      await source.close(60_000);
      assert.equal(await source.end(), true);
      await source.open();
      await isRejected();
      assert.equal(await source.end(), true);
      await source.forget();
      await write("at last");
    });
  });

  if (dialect === "postgres") {
    it("a source on postgres waits for open transactions before writes count as stopped", async (t) => {
      const { source, other, touched } = await openCopy(t, dialect, "sqlite");
      await other.run("begin; insert into owners values ('a', 'Ann')");
      let isClosed = false;
      const closing = source.close(60_000).then(() => {
        isClosed = true;
      });
      const waiting =
        "select 1 from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())";
      while ((await other.rows(waiting)).length === 0) assert(!isClosed, "it did not wait");
      await other.run("commit");
      await closing;
      assert.deepEqual(await touched(), [["owners", "a"]]);
    });
  }

  const to = dialect === "sqlite" ? "postgres" : "sqlite";
  describe(`a copy from ${dialect} to ${to}`, () => {
    it("follows changes between rounds, unique values that change places too", async (t) => {
      const { copy, other, target, targetDatabase } = await openCopy(t, dialect, to);
      const owners = Array.from({ length: 3_000 }, (_, at) => `('${at}', 'name ${at}')`);
      await other.run(`insert into owners values ${owners.join(", ")}`);
      await other.run(`insert into cars select id, 7, 'red' from owners`);
      await copy.copyTables();
      await other.run("insert into owners values ('new', 'new')");
      await copy.round();
      await copy.createIndexes();
      await copy.compare();
      const before = copy.digests();
      await other.run(`
        update owners set name = 'free' where id = '5';
        update owners set name = 'name 5' where id = '6';
        update owners set name = 'name 6' where id = '5';
        delete from owners where id = '9';
        insert into owners values ('ten', 'name 9');
        update cars set number = 8 where owner_id = '11'`);
      await copy.round();
      const found = await targetDatabase.rows(
        "select id, name from owners where id in ('5', '6', '9', 'ten') order by id",
      );
      assert.deepEqual(found, [
        ["5", "name 6"],
        ["6", "name 5"],
        ["ten", "name 9"],
      ]);
      // More than one batch: every owner gets the name of the next.
      await other.run(`
        update owners set name = 'x' || name;
        update owners set name = 'name ' || ((cast(id as bigint) + 1) % 3000) where id not in ('new', 'ten');
        insert into owners values ('more', 'more')`);
      await copy.catchUp();
      const after = copy.digests();
      assert.notEqual(after.owners!.digest, before.owners!.digest);
      assert.equal(after.owners!.rows, 3_002);
      assert.equal(after.cars!.rows, 2_999);
      // The digests that followed the changes are those of all rows.
      await copy.compare();
      assert.deepEqual(copy.digests(), after);
      await target.end(undefined);
      await target.validate();
      await assert.rejects(targetDatabase.run("insert into owners values ('z', 'name 7')"), /unique|duplicate/i);
    });

    it("is not changed by triggers of the target, which work again at its end", async (t) => {
      const { copy, other, target, targetDatabase } = await openCopy(t, dialect, to, GONE);
      await other.run("insert into owners values ('a', 'Ann'), ('b', 'Bob')");
      await copy.copyTables();
      // Marked first, deleted minutes later, and changed in between.
      await other.run("insert into gone values ('a')");
      await copy.round();
      await other.run("update owners set name = 'Abe' where id = 'a'");
      await copy.round();
      await copy.createIndexes();
      await copy.compare();
      assert.deepEqual(await targetDatabase.rows("select id, name from owners order by id"), [
        ["a", "Abe"],
        ["b", "Bob"],
      ]);
      await target.end(undefined);
      await targetDatabase.run("insert into gone values ('c'); insert into owners values ('c', 'Cid'), ('d', 'Dan')");
      assert.deepEqual(await targetDatabase.rows("select id from owners order by id"), [["a"], ["b"], ["d"]]);
    });

    it("is rejected when one value of the target differs, or a row is missing or too many", async (t) => {
      const { copy, other, targetDatabase } = await openCopy(t, dialect, to);
      await other.run("insert into owners values ('a', 'Ann'), ('b', 'Bob'); insert into cars values ('a', 1, null)");
      await copy.copyTables();
      await copy.round();
      await copy.compare();
      for (const [change, undo] of [
        ["update cars set color = ''", "update cars set color = null"],
        ["delete from owners where id = 'b'", "insert into owners values ('b', 'Bob')"],
        ["insert into owners values ('c', 'Cid')", "delete from owners where id = 'c'"],
      ] as const) {
        await targetDatabase.run(change);
        await assert.rejects(copy.compare(), CopyDiffers);
        await targetDatabase.run(undo);
        await copy.compare();
      }
    });
  });
}
