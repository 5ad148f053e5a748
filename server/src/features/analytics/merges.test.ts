import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it, type TestContext } from "node:test";
import pg from "pg";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { freshDatabase } from "../../../test/services/postgres.ts";
import { openPostgresStore } from "../../platform/store/postgres/store.ts";
import { openSqliteConnection } from "../../platform/store/sqlite/connection.ts";
import { openSqliteStore } from "../../platform/store/sqlite/store.ts";
import { levels } from "./levels.ts";
import type { Rollups } from "./rollups.ts";
import { LOG, NOON, OFTEN_MERGED, RETENTION } from "./rollups-contract.ts";
import type { MergeOptions } from "./sql/merge-plan.ts";
import { type AnalyticsProcedures, openRollupProcedures } from "./sql/procedures.ts";
import { analyticsModule, openSqlRollups } from "./sql/store.ts";

const clock = new SimulatedClock(NOON);

/** Minutes around the end of an hour. */
const FIRST = NOON + 58 * levels.minute;
const range = { workspaceId: "ws_1", level: "hour", start: NOON, end: NOON + 2 * levels.hour } as const;

/** Batches of one verification of each of this many keys in two workspaces, one batch per minute. */
function wideBatches(minutes: number, keys: number): string[] {
  return Array.from({ length: minutes }, (_, minute) => {
    const verifications = Array.from({ length: keys }, (_, i) => {
      const [at, keyId] = [FIRST + minute * levels.minute, `key_${(i * 7) % keys}`];
      return [at, "ws_1", "api_1", keyId, `id_${i % 3}`, "", i % 4 ? "VALID" : "EXPIRED", 1, 2, 3];
    });
    const others = verifications.map(([at, , , key, ...rest]) => [at, "ws_2", "api_2", `${key}_2`, ...rest]);
    return JSON.stringify({
      recorder: "rec_1",
      sequence: minute + 1,
      verifications: [...verifications, ...others],
      ratelimits: [],
    });
  });
}

/** Everything that the store answers of the keys, the API and the identities of a workspace. */
async function answers(rollups: Rollups, keys: number): Promise<unknown[]> {
  const subjects = ["api_1", "id_1", "key_none", ...Array.from({ length: keys }, (_, i) => `key_${i}`)];
  const top = { limit: 100, examinedMax: 1_000_000, ...range } as const;
  return [
    ...(await Promise.all(
      subjects.flatMap((subject) =>
        (["minute", "hour"] as const).map((level) =>
          rollups.stats({ about: "verifications", tags: [], ...range, level, subject }),
        ),
      ),
    )),
    (await rollups.counts({ subjects, ...range })).toSorted((a, b) => (a.subject < b.subject ? -1 : 1)),
    await rollups.top({ by: "key", ...top }),
    await rollups.top({ by: "key", ...top, apiId: "api_2" }),
    await rollups.top({ by: "identity", ...top }),
  ];
}

interface Opened {
  open(merging: MergeOptions | null): Promise<Rollups>;
  /** Runs one statement. */
  query(text: string): Promise<Record<string, string | number | null>[]>;
}

function embedded(t: TestContext): Opened & { file: string } {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-merges-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "analytics.db");
  return {
    file,
    async open(merging) {
      const module = { module: analyticsModule, options: merging };
      return openSqlRollups(await openSqliteStore<AnalyticsProcedures>(file, module, { clock }), RETENTION, LOG);
    },
    async query(text) {
      const database = new DatabaseSync(file);
      try {
        return database.prepare(text).all() as Record<string, string | number | null>[];
      } finally {
        database.close();
      }
    },
  };
}

async function served(t: TestContext): Promise<Opened> {
  const { url, drop } = await freshDatabase();
  t.after(drop);
  return {
    open: async (merging) =>
      openSqlRollups(await openPostgresStore({ url, clock }, openRollupProcedures(merging)), RETENTION, LOG),
    async query(text) {
      const client = new pg.Client(url);
      await client.connect();
      try {
        return (await client.query(text)).rows;
      } finally {
        await client.end();
      }
    },
  };
}

/** Writes two batches at a time as a segment or a run, so that a subject has several rows in it. */
async function write(database: Opened, batches: readonly string[]): Promise<void> {
  const rollups = await database.open(OFTEN_MERGED);
  for (let i = 0; i < batches.length; i += 2) await rollups.write(batches.slice(i, i + 2));
  await rollups.close();
}

/** The answers of a store that has no segments and runs. */
async function expectedOf(t: TestContext, batches: readonly string[], keys: number): Promise<unknown[]> {
  const rollups = await embedded(t).open(null);
  for (const batch of batches) await rollups.write([batch]);
  const expected = await answers(rollups, keys);
  await rollups.close();
  return expected;
}

/** Asks at every step of a merge, with a restart in the middle. */
async function askWhileMerging(database: Opened, keys: number, expected: unknown[]): Promise<void> {
  let rollups = await database.open(OFTEN_MERGED);
  try {
    let steps = 0;
    do {
      assert.deepEqual(await answers(rollups, keys), expected);
      if (++steps !== 3) continue;
      await rollups.close();
      rollups = await database.open(OFTEN_MERGED);
    } while (await rollups.merge(clock.now()));
    assert(steps > 5, `${steps} steps`);
    assert.deepEqual(await answers(rollups, keys), expected);
  } finally {
    await rollups.close();
  }
}

const lists = ["analytics_segments", "analytics_segment_rows", "analytics_runs", "analytics_run_blocks"] as const;

async function rowsOf({ query }: Opened): Promise<number[]> {
  const rows = await query(
    lists.map((table) => `select '${table}' as name, count(*) as rows from ${table}`).join(" union all "),
  );
  return lists.map((table) => Number(rows.find(({ name }) => name === table)!.rows));
}

/** Copies the rows of tables, as a move of the store does. */
async function move(from: Opened, to: Opened, tables: readonly string[], overriding: string): Promise<void> {
  const literal = (value: string | number | null) =>
    typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : `${value}`;
  for (const table of tables) {
    for (const row of await from.query(`select * from ${table}`)) {
      const columns = Object.keys(row).map((column) => `"${column}"`);
      const values = Object.values(row).map(literal);
      await to.query(`insert into ${table} (${columns.join(", ")}) ${overriding} values (${values.join(", ")})`);
    }
    await from.query(`delete from ${table}`);
  }
}

const KEYS = 23;
/** Each without some keys, so that the blocks of two runs end at different keys. */
const BATCHES = wideBatches(6, KEYS).map((text, minute) => {
  const batch = JSON.parse(text) as { verifications: unknown[] };
  return JSON.stringify({
    ...batch,
    verifications: batch.verifications.filter((_, i) => (i * 5 + minute) % 7 > minute / 2),
  });
});

describe("counts that wait for a merge", () => {
  for (const [name, openDatabase] of [
    ["SQLite", embedded],
    ["PostgreSQL", served],
  ] as const) {
    it(`answer as written rows do, at every step of it and after a restart in the middle of one, on ${name} (rule 207)`, async (t) => {
      const database = await openDatabase(t);
      await write(database, BATCHES);
      const waiting = await rowsOf(database);
      assert.deepEqual(
        waiting.map((rows) => rows > 0),
        name === "SQLite" ? [false, false, true, true] : [true, true, false, false],
      );
      await askWhileMerging(database, KEYS, await expectedOf(t, BATCHES, KEYS));
      assert.deepEqual(await rowsOf(database), [0, 0, 0, 0]);
    });
  }

  it("are merged from the segments of an earlier release, beside new runs (rule 207)", async (t) => {
    const [earlier, database] = [await served(t), embedded(t)];
    await write(earlier, BATCHES.slice(0, 2));
    await write(database, BATCHES.slice(2));
    await move(earlier, database, lists.slice(0, 2), "");
    assert((await rowsOf(database)).every((rows) => rows > 0));
    await askWhileMerging(database, KEYS, await expectedOf(t, BATCHES, KEYS));
    assert.deepEqual(await rowsOf(database), [0, 0, 0, 0]);
  });

  it("are unpacked when a store was moved in the middle of a merge (rule 207)", async (t) => {
    const [source, target] = [embedded(t), await served(t)];
    await write(source, BATCHES);
    const rollups = await source.open(OFTEN_MERGED);
    for (let step = 0; step < 4; step++) assert(await rollups.merge(clock.now()));
    await rollups.close();
    await write(target, []);
    const merged = ["minutes", "hours", "days", "usage_hours", "usage_days"].map((level) => `analytics_${level}`);
    await move(source, target, merged, "");
    await move(source, target, lists, "overriding system value");
    const expected = await expectedOf(t, BATCHES, KEYS);
    const moved = await target.open(OFTEN_MERGED);
    t.after(() => moved.close());
    const [segments = 0, , runs] = await rowsOf(target);
    assert.deepEqual([segments > 0, runs], [true, 0]);
    assert.deepEqual(await answers(moved, KEYS), expected);
    while (await moved.merge(instantAt(NOON + levels.day)));
    assert.deepEqual(await answers(moved, KEYS), expected);
  });

  it("are merged once although steps are rolled back (rule 207)", async (t) => {
    const database = embedded(t);
    await write(database, BATCHES);
    const { writing } = openRollupProcedures(OFTEN_MERGED);
    const { transaction, close } = openSqliteConnection(database.file, "write");
    const failed = new Error("The disk is full");
    for (let more = true, step = 0; more; step++) {
      if (step % 3 > 0) {
        const rolledBack = transaction(async (sql) => {
          await writing.merge(sql, { now: clock.now() });
          throw failed;
        });
        await assert.rejects(rolledBack, failed);
      }
      more = await transaction((sql) => writing.merge(sql, { now: clock.now() }));
    }
    close();
    const rollups = await database.open(null);
    t.after(() => rollups.close());
    assert.deepEqual(await answers(rollups, KEYS), await expectedOf(t, BATCHES, KEYS));
    assert.deepEqual(await rowsOf(database), [0, 0, 0, 0]);
  });

  it("are merged when they are many rows, or old", async (t) => {
    for (const [rowsPerSubject, openDatabase] of [
      [8, embedded],
      [4, served],
    ] as const) {
      const mergedRowsMin = { segments: 1_000, runs: 1_000 };
      const rollups = await (await openDatabase(t)).open({ ...OFTEN_MERGED, rowsPerStep: 100, mergedRowsMin });
      t.after(() => rollups.close());
      const mergeAt = async (now: number) => {
        let steps = 0;
        while (await rollups.merge(instantAt(now))) steps++;
        return steps;
      };
      const [first = "", second = ""] = wideBatches(2, 250);
      await rollups.write([first]);
      assert.equal(await mergeAt(FIRST + 9 * levels.minute), 0);
      assert((await mergeAt(FIRST + 10 * levels.minute)) > 0);
      // The last merge found 508 subjects.
      await rollups.write([second]);
      for (let writes = 2; writes <= rowsPerSubject; writes++) {
        assert.equal(await mergeAt(FIRST + 2 * levels.minute), 0, `${writes}`);
        await rollups.write([second.replace('"rec_1"', `"rec_${writes}"`)]);
      }
      assert((await mergeAt(FIRST + 2 * levels.minute)) > 0);
    }
  });

  it("are examined for a ranking up to a limit, beyond which no bucket is complete", async (t) => {
    for (const [minutes, openDatabase, examinedMax] of [
      // Rows: of runs eight times as many as in tables, of segments four times as many.
      [4, embedded, 21],
      [1, served, 11],
      // Keys: twice as many.
      [1, embedded, 21],
    ] as const) {
      const rollups = await (await openDatabase(t)).open(OFTEN_MERGED);
      t.after(() => rollups.close());
      await rollups.write(wideBatches(minutes, 41));
      const question = { by: "key", limit: 1, ...range } as const;
      assert.equal((await rollups.top({ ...question, examinedMax: examinedMax - 1 })).incompleteBefore, range.end);
      assert.equal((await rollups.top({ ...question, examinedMax })).incompleteBefore, undefined);
    }
  });
});
