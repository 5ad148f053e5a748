/**
 * Moving a store that is in use to PostgreSQL, with kills: `npm run bench:moving -- [--keys 200000] [--kills 5]
 * [--within 60] [--seed 1] [--writes 20]`.
 *
 * A service serves from an embedded database with the keys and 30 days of traffic of `latchkey demo`. Callers verify keys,
 * and create, update, spend and delete `writes` times a second, while `latchkey migrate-store` is killed (SIGKILL) at random
 * moments, at most `within` seconds after its start, and started again. At the end every row of both sides is read again. Fails unless the digests are equal, no
 * acknowledged spend is missing, and every verification of a key without credits succeeded.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs } from "node:util";
import { seededRandom } from "../engine/src/random/seeded.ts";
import { findTables } from "../server/src/platform/store/catalog.ts";
import { type CopyDatabase, pick, type Row } from "../server/src/platform/store/move/database.ts";
import { TableDigest } from "../server/src/platform/store/move/digest.ts";
import { openPostgresCopy } from "../server/src/platform/store/move/postgres.ts";
import { readPage } from "../server/src/platform/store/move/source.ts";
import { openSqliteCopy } from "../server/src/platform/store/move/sqlite.ts";
import { tablesToCopy } from "../server/src/platform/store/move/tables.ts";
import { makeFolder, Program, run, start } from "../server/test/process.ts";
import { startPostgres } from "../server/test/services/postgres.ts";
import { describeMachine } from "./lib/machine.ts";
import { wholeNumber } from "./lib/options.ts";

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "200000" },
    kills: { type: "string", default: "5" },
    within: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    writes: { type: "string", default: "20" },
  },
});
const keyCount = wholeNumber(values, "keys", 100, 1_000_000);
const kills = wholeNumber(values, "kills", 0, 100);
const within = wholeNumber(values, "within", 2, 3_600);
const random = seededRandom(wholeNumber(values, "seed", 0, 2 ** 31));
const writesPerSecond = wholeNumber(values, "writes", 1, 500);

const main = new URL("../server/src/main.ts", import.meta.url).pathname;
const cleanups: (() => void | Promise<void>)[] = [];
const directory = makeFolder({ after: (undo) => cleanups.push(undo) });
const settings = { DATA_DIR: join(directory, "data") };
const postgres = await startPostgres();
cleanups.push(() => postgres.stop());
console.log(describeMachine());
try {
  await (await start({ directory, settings })).kill("SIGTERM");
  const demo = await run(["demo", "--keys", String(keyCount)], { directory, settings });
  assert.equal(demo.code, 0, demo.output);
  const server = await start({ directory, settings });
  const { apiId } = await server.ok("apis.createApi", { name: "written meanwhile" });
  const { key: plain } = await server.ok("keys.createKey", { apiId });
  const paid = await server.ok("keys.createKey", { apiId, credits: { remaining: 1_000_000 } });

  let isOver = false;
  const counts = { verified: 0, written: 0, rejected: 0, spent: 0 };
  const verifying = (async () => {
    while (!isOver) {
      assert.equal((await server.ok("keys.verifyKey", { key: plain })).code, "VALID");
      counts.verified++;
      await setTimeout(20);
    }
  })();
  const writing = (async () => {
    const own: string[] = [];
    while (!isOver) {
      const keyId = own[random.below(Math.max(1, own.length))];
      const [operation, body] = (
        [
          ["keys.createKey", { apiId }],
          ["keys.verifyKey", { key: paid.key }],
          ["keys.updateKey", { keyId, name: `name ${counts.written}` }],
          ["keys.deleteKey", { keyId: own.at(-1), permanent: true }],
        ] as const
      )[keyId === undefined ? 0 : random.below(4)]!;
      const { status, body: answer } = await server.call(operation, body);
      if (status === 503) counts.rejected++;
      else {
        assert.equal(status, 200, JSON.stringify(answer));
        counts.written++;
        if (operation === "keys.createKey") own.push(answer.data.keyId);
        if (operation === "keys.deleteKey") own.pop();
        if (operation === "keys.verifyKey") counts.spent++;
      }
      await setTimeout(1_000 / writesPerSecond);
    }
  })();

  const launch = () => new Program([main, "migrate-store", "--to", postgres.url, "--json"], { directory, settings });
  const startedAt = performance.now();
  let killed = 0;
  while (killed < kills) {
    const program = launch();
    const delay = 1_000 + random.below((within - 1) * 1_000);
    await Promise.race([setTimeout(delay), program.ended]);
    if (program.hasEnded) throw new Error(`It ended after ${killed} kills: choose more keys.\n${program.output}`);
    await program.kill("SIGKILL");
    const at = program.stderr.trim().split("\n").at(-1);
    console.log(`killed after ${delay} ms, during "${at}"`);
    killed++;
  }
  const lastAt = performance.now();
  const program = launch();
  assert.equal((await program.ended).code, 0, program.output);
  const endedAt = performance.now();
  console.log(program.stderr);
  isOver = true;
  await Promise.all([verifying, writing]);
  await server.kill("SIGTERM");

  const report = JSON.parse(program.stdout) as { tables: Record<string, { rows: number }>; stoppedMs: number };
  const rows = Object.values(report.tables).reduce((sum, table) => sum + table.rows, 0);
  const target = await openPostgresCopy(postgres.url);
  for (const file of ["latchkey.db", "analytics.db"]) {
    const source = openSqliteCopy(join(settings.DATA_DIR, file));
    for (const table of tablesToCopy(await findTables(source), await findTables(target))) {
      const digests = [await digestOf(source, table), await digestOf(target, table)];
      assert.equal(String(digests[0]), String(digests[1]), table.name);
      assert.equal(digests[0]!.rows, digests[1]!.rows, table.name);
    }
    await source.close();
  }
  const [balance] = await target.rows(
    "select remaining from balances b join keys k on k.pool_id = b.pool_id where k.id = ?",
    [paid.keyId],
  );
  await target.close();
  assert.equal(Number(balance![0]), 1_000_000 - counts.spent);
  const seconds = (endedAt - startedAt) / 1_000;
  console.log(
    `${rows} rows of ${Object.keys(report.tables).length} tables, ${keyCount} keys: equal digests after ${killed} kills. ` +
      `${seconds.toFixed(1)} s with all runs, ${((endedAt - lastAt) / 1_000).toFixed(1)} s for the last. Writes were stopped for ` +
      `${report.stoppedMs.toFixed(0)} ms. Meanwhile: ${counts.verified} verifications, all valid; ${counts.written} writes ` +
      `(${counts.spent} spends), ${counts.rejected} rejected with 503.`,
  );
} finally {
  for (const undo of cleanups) await undo();
}

async function digestOf(database: CopyDatabase, table: Parameters<typeof readPage>[1]): Promise<TableDigest> {
  const digest = new TableDigest();
  for (let last: Row | null = null; ; ) {
    const rows: Row[] = await readPage(database, table, last, 5_000);
    for (const row of rows) digest.add(row);
    if (rows.length < 5_000) return digest;
    last = pick(table, rows.at(-1)!, table.order);
  }
}
