import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { systemClock } from "../../clock/system.ts";
import { type Procedures, StoreUnavailable } from "../store.ts";
import { openSqliteStore } from "./store.ts";

/** Procedures that end the thread in which they run. */
const module = `data:text/javascript,${encodeURIComponent(`
  const end = async () => process.exit(1);
  const wait = () => new Promise(() => {});
  export default () => ({ reading: { end, wait, answer: async () => 1 }, writing: { end, wait, answer: async () => 1 } });
`)}`;

type Endings = Procedures & Record<"reading" | "writing", Record<"end" | "wait" | "answer", never>>;

describe("the embedded database", () => {
  for (const thread of ["writing", "reading"] as const) {
    it(`reports that its ${thread} thread has ended, and fails what waits for it`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      const store = await openSqliteStore<Endings>(
        join(folder, "latchkey.db"),
        { module, options: null },
        { clock: systemClock },
      );
      t.after(() => store.close());
      const call = (name: string): Promise<unknown> =>
        thread === "writing" ? store.transact(name as never, null as never) : store.read(name as never, null as never);

      assert.equal(await call("answer"), 1);
      assert.equal(store.failure, undefined);
      const waiting = [call("end"), call("answer")];
      for (const result of await Promise.allSettled(waiting)) {
        assert(result.status === "rejected" && result.reason instanceof StoreUnavailable, JSON.stringify(result));
      }
      assert.match(store.failure ?? "", /the thread of the embedded database has ended/);
      await assert.rejects(call("answer"), StoreUnavailable);
      // The other thread still answers.
      const other =
        thread === "writing"
          ? store.read("answer" as never, null as never)
          : store.transact("answer" as never, null as never);
      assert.equal(await other, 1);
    });
  }
});
