import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { instantAt } from "../../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../../engine/src/clock/simulated.ts";
import type { Events } from "../log/events.ts";
import { readConfig } from "../platform/config/config.ts";
import { readSecrets } from "../platform/config/secrets.ts";
import { openStore } from "../service/app-store.ts";
import { BackupSchedule } from "./schedule.ts";

const HOUR = 3_600_000;

/** A data folder with a database, what a backup of it has, and the folder of its backups, which does not exist. */
async function openFolder(t: TestContext) {
  const dataDirectory = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  t.after(() => rmSync(dataDirectory, { recursive: true, force: true }));
  const clock = new SimulatedClock(instantAt(1_768_478_400_000));
  const settings = new Map([["DATA_DIR", dataDirectory]]);
  const store = await openStore(readConfig(settings), readSecrets(settings), { clock });
  t.after(() => store.close());
  await store.transact("prepare", { now: clock.now(), rootKey: undefined });
  const plan = { database: join(dataDirectory, "latchkey.db"), dataDirectory, version: "0.0.0" };
  return { clock, folder: join(dataDirectory, "backups"), plan };
}

describe("scheduled backups", () => {
  it("are made when they are due, keep the newest, and continue after a failure", async (t) => {
    const { clock, folder, plan } = await openFolder(t);

    let next = Promise.withResolvers<string>();
    const events = { backupMade: () => next.resolve("made"), backupFailed: () => next.resolve("failed") };
    const open = () => new BackupSchedule({ every: HOUR, keep: 2, folder, plan }, clock, events as unknown as Events);
    const schedule = open();
    t.after(() => schedule.stop());
    const advance = async (ms: number) => {
      next = Promise.withResolvers<string>();
      clock.advance(ms);
      const result = await next.promise;
      // The job schedules its next run after it ended.
      await new Promise(setImmediate);
      return result;
    };

    writeFileSync(folder, "in the way");
    assert.equal(await advance(60_000), "failed");
    assert.equal(schedule.failures, 1);
    assert(schedule.trouble);
    assert.deepEqual(schedule.describe(), {
      everyMs: HOUR,
      nextAt: clock.now(),
      failures: 1,
      trouble: schedule.trouble,
    });
    rmSync(folder);
    for (let made = 0; made < 3; made++) assert.equal(await advance(HOUR), "made");
    assert.equal(schedule.trouble, undefined);
    const names = readdirSync(folder).sort();
    assert.equal(names.length, 2);
    const newest = new Date(schedule.lastMadeAt!).toISOString().replaceAll(":", "").slice(0, 17);
    assert.equal(names[1], `latchkey-${newest}Z.backup`);
    const bytes = statSync(join(folder, names[1]!)).size;
    const { lastMadeAt } = schedule;
    const described = { everyMs: HOUR, lastMadeAt, bytes, nextAt: lastMadeAt! + HOUR };
    assert.deepEqual(schedule.describe(), { ...described, failures: 1 });
    // A restarted service continues the schedule.
    const again = open();
    assert.deepEqual(again.describe(), { ...described, failures: 0 });
    await again.stop();
  });

  it("are made also when the clock was set back, and those of before are removed first (rule 236)", async (t) => {
    const { clock, folder, plan } = await openFolder(t);
    mkdirSync(folder);
    // Ten years ahead, and one hour: what is due then is not due for as long.
    writeFileSync(join(folder, "latchkey-2036-01-15T120000Z.backup"), "");
    for (const keep of [1, 2]) {
      let made = Promise.withResolvers<void>();
      const events = { backupMade: () => made.resolve(), backupFailed: (error: unknown) => made.reject(error) };
      const schedule = new BackupSchedule({ every: HOUR, keep, folder, plan }, clock, events as unknown as Events);
      t.after(() => schedule.stop());
      writeFileSync(join(folder, "latchkey-2035-01-15T120000Z.backup"), "");
      for (let count = 0; count < 2; count++) {
        made = Promise.withResolvers();
        clock.advance(HOUR);
        await made.promise;
        await new Promise(setImmediate);
      }
      assert(clock.now() - schedule.lastMadeAt! < HOUR);
      const names = readdirSync(folder);
      assert.equal(names.length, keep);
      assert(
        names.every((name) => name.startsWith("latchkey-2026-")),
        names.join(),
      );
      await schedule.stop();
    }
  });
});
