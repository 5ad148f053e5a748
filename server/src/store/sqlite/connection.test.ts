import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { openSqliteConnection } from "./connection.ts";

describe("a writing connection to SQLite", () => {
  const folder = (t: { after(undo: () => void): void }) => {
    const made = mkdtempSync(join(tmpdir(), "latchkey-test-"));
    t.after(() => rmSync(made, { recursive: true, force: true }));
    return made;
  };

  it("is opened when every commit is synced", (t) => {
    openSqliteConnection(join(folder(t), "latchkey.db"), "write").close();
  });

  it("refuses to write where a commit may be forgotten", (t) => {
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
