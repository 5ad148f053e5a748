import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { openSqliteConnection, raw } from "../platform/store/sqlite/connection.ts";
import { isReplaced, requireIntegrity } from "./integrity-check.ts";

const insert = (rows: number) =>
  `with recursive n(i) as (select 1 union all select i + 1 from n where i < ${rows}) ` +
  "insert into numbers (text) select hex(randomblob(20)) from n";

/** A database that a killed process left with commits in its log, and an older copy of it. */
async function killed(t: TestContext, folder: string): Promise<{ file: string; older: string }> {
  const [used, file, older] = ["used.db", "a.db", "older.db"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const { sql, close } = openSqliteConnection(used, "write");
  t.after(close);
  await raw(sql, "create table numbers (number integer primary key, text text unique)");
  await raw(sql, insert(2_000));
  await raw(sql, "pragma wal_checkpoint(truncate)");
  copyFileSync(used, older);
  await raw(sql, insert(3_000));
  await raw(sql, "pragma wal_checkpoint(truncate)");
  await raw(sql, insert(20));
  copyFileSync(used, file);
  copyFileSync(`${used}-wal`, `${file}-wal`);
  return { file, older };
}

function openFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe("an embedded database at the start", () => {
  it("is accepted with its own log, which stays as it is", async (t) => {
    const { file } = await killed(t, openFolder(t));
    const before = [readFileSync(file), readFileSync(`${file}-wal`)];
    requireIntegrity("LATCHKEY_DATA_DIR", file);
    assert.deepEqual([readFileSync(file), readFileSync(`${file}-wal`)], before);
  });

  it("is rejected beside the log of another file, and nothing is changed", async (t) => {
    const { file, older } = await killed(t, openFolder(t));
    copyFileSync(older, file);
    assert.throws(() => requireIntegrity("LATCHKEY_DATA_DIR", file), {
      name: "OperatorError",
      message: /^LATCHKEY_DATA_DIR=.*a\.db: the database with its log .*fails the integrity check .*latchkey restore/,
    });
    assert(readFileSync(file).equals(readFileSync(older)));
  });

  it("is rejected if its end is missing, or it is no database", async (t) => {
    const { file } = await killed(t, openFolder(t));
    openSqliteConnection(file, "write").close();
    requireIntegrity("LATCHKEY_DATA_DIR", file);
    truncateSync(file, readFileSync(file).length - 4096);
    assert.throws(() => requireIntegrity("LATCHKEY_DATA_DIR", file), /its end is missing/);
    writeFileSync(file, "x".repeat(5_000));
    assert.throws(() => requireIntegrity("LATCHKEY_DATA_DIR", file), /the file is not a database/);
  });

  it("counts as replaced if it changed long after its log", () => {
    assert.equal(isReplaced(20_000, 15_000), false);
    assert.equal(isReplaced(15_000, 20_000), false);
    assert.equal(isReplaced(30_001, 20_000), true);
  });
});
