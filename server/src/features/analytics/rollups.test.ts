import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { instantAt } from "../../../../engine/src/clock/clock.ts";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { freshDatabase } from "../../../test/services/postgres.ts";
import { openPostgresStore } from "../../platform/store/postgres/store.ts";
import { openSqliteStore } from "../../platform/store/sqlite/store.ts";
import { levels } from "./levels.ts";
import type { Rollups } from "./rollups.ts";
import { describeRollups, LOG, NOON, RETENTION } from "./rollups-contract.ts";
import { type AnalyticsProcedures, openRollupProcedures } from "./sql/procedures.ts";
import type { MergeOptions } from "./sql/segments.ts";
import { analyticsModule, openSqlRollups } from "./sql/store.ts";

const clock = new SimulatedClock(NOON);

/** Every write is a segment, and a merge takes many steps. */
const SEGMENTED: MergeOptions = { segmentRowsMin: 1, mergedRowsMin: 40, rowsPerStep: 7 };

async function openEmbedded(merging: MergeOptions | null): Promise<Rollups> {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-rollups-"));
  const store = await openSqliteStore<AnalyticsProcedures>(
    join(folder, "analytics.db"),
    { module: analyticsModule, options: merging },
    { clock, durability: "normal" },
  );
  const rollups = await openSqlRollups(store, RETENTION, LOG);
  return {
    ...rollups,
    async close() {
      await rollups.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Merges all segments, because they are old a day later. */
async function mergeAll(rollups: Rollups): Promise<void> {
  // The first loop may end a merge that began before the last write.
  for (let i = 0; i < 2; i++) while (await rollups.merge(instantAt(NOON + 30 * levels.day)));
}

/** The store, which does one step of a merge after every write and before every answer. */
function mergedInBetween(rollups: Rollups): Rollups {
  const step = () => rollups.merge(clock.now());
  return {
    ...rollups,
    write: async (batches) => {
      await rollups.write(batches);
      await step();
    },
    stats: async (query) => {
      await step();
      return rollups.stats(query);
    },
    counts: async (query) => {
      await step();
      return rollups.counts(query);
    },
    top: async (query) => {
      // What a ranking examines is bounded separately for rows that are not merged.
      if (query.examinedMax < 1_000) await mergeAll(rollups);
      await step();
      return rollups.top(query);
    },
    prune: async (now) => {
      await mergeAll(rollups);
      return rollups.prune(now);
    },
  };
}

describeRollups("SQLite", () => openEmbedded(null));
describeRollups("SQLite, in segments", async () => mergedInBetween(await openEmbedded(SEGMENTED)));

describe("segments", () => {
  /** Batches of one verification of each of this many keys, one batch per minute. */
  const wideBatches = (minutes: number, keys: number) =>
    Array.from({ length: minutes }, (_, minute) => {
      const verifications = Array.from({ length: keys }, (_, i) => {
        const [at, keyId] = [NOON + minute * levels.minute, `key_${(i * 7) % keys}`];
        return [at, "ws_1", "api_1", keyId, `id_${i % 3}`, "", i % 4 ? "VALID" : "EXPIRED", 1, 2, 3];
      });
      return JSON.stringify({ recorder: "rec_1", sequence: minute + 1, verifications, ratelimits: [] });
    });
  const range = { workspaceId: "ws_1", level: "hour", start: NOON, end: NOON + levels.hour } as const;

  /** Everything that the store answers of the keys, the API and the identities. */
  async function answers(rollups: Rollups, keys: number): Promise<unknown[]> {
    const subjects = ["api_1", "id_1", ...Array.from({ length: keys }, (_, i) => `key_${i}`)];
    const stats = { about: "verifications", tags: [], ...range } as const;
    const top = { limit: 100, examinedMax: 1_000_000, ...range } as const;
    return [
      ...(await Promise.all(subjects.map((subject) => rollups.stats({ ...stats, subject })))),
      (await rollups.counts({ subjects, ...range })).toSorted((a, b) => (a.subject < b.subject ? -1 : 1)),
      await rollups.top({ by: "key", ...top }),
      await rollups.top({ by: "identity", ...top }),
    ];
  }

  it("answer as written rows do, at every step of a merge and after a restart in the middle of one", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-rollups-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const open = async (file: string, merging: MergeOptions | null) => {
      const module = { module: analyticsModule, options: merging };
      const store = await openSqliteStore<AnalyticsProcedures>(join(folder, file), module, { clock });
      return openSqlRollups(store, RETENTION, LOG);
    };
    const [keys, batches] = [23, wideBatches(4, 23)];
    const written = await open("written.db", null);
    t.after(() => written.close());
    for (const batch of batches) await written.write([batch]);
    const expected = await answers(written, keys);

    let segmented = await open("segmented.db", SEGMENTED);
    t.after(() => segmented.close());
    for (const batch of batches) await segmented.write([batch]);
    let steps = 0;
    do {
      assert.deepEqual(await answers(segmented, keys), expected);
      if (++steps !== 3) continue;
      await segmented.close();
      segmented = await open("segmented.db", SEGMENTED);
    } while (await segmented.merge(clock.now()));
    assert(steps > 5, `${steps} steps`);
    assert.deepEqual(await answers(segmented, keys), expected);
    const database = new DatabaseSync(join(folder, "segmented.db"), { readOnly: true });
    t.after(() => database.close());
    for (const table of ["analytics_segments", "analytics_segment_rows"]) {
      assert.deepEqual({ ...database.prepare(`select count(*) as rows from ${table}`).get() }, { rows: 0 });
    }
  });

  it("are merged when they are many rows, or old", async (t) => {
    const rollups = await openEmbedded({ ...SEGMENTED, mergedRowsMin: 1_000 });
    t.after(() => rollups.close());
    const mergeAt = async (now: number) => {
      let steps = 0;
      while (await rollups.merge(instantAt(now))) steps++;
      return steps;
    };
    const [first = "", second = ""] = wideBatches(2, 500);
    await rollups.write([first]);
    assert.equal(await mergeAt(NOON + 9 * levels.minute), 0);
    assert((await mergeAt(NOON + 10 * levels.minute)) > 0);
    await rollups.write([second]);
    assert.equal(await mergeAt(NOON + 2 * levels.minute), 0);
    // The last merge found 504 subjects, so that the next one waits for 2,016 rows.
    for (const [i, batch] of wideBatches(3, 500).entries()) {
      await rollups.write([batch.replace('"rec_1"', `"rec_${i + 2}"`)]);
      assert.equal((await mergeAt(NOON + 2 * levels.minute)) > 0, i === 2, `${i}`);
    }
  });

  it("are examined for a ranking up to a limit, beyond which no bucket is complete", async (t) => {
    const rollups = await openEmbedded(SEGMENTED);
    t.after(() => rollups.close());
    await rollups.write(wideBatches(1, 41));
    const question = { by: "key", limit: 1, ...range } as const;
    assert.equal((await rollups.top({ ...question, examinedMax: 10 })).incompleteBefore, range.end);
    assert.equal((await rollups.top({ ...question, examinedMax: 11 })).incompleteBefore, undefined);
  });
});

describe("migrations of the analytics", () => {
  it("keep the counts of an earlier release, whose nodes can continue to write", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "latchkey-rollups-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "analytics.db");
    const open = () =>
      openSqliteStore<AnalyticsProcedures>(file, { module: analyticsModule, options: null }, { clock });
    const first = await open();
    await first.transact("migrate", null);
    const row = {
      time: NOON,
      subject: "key_1",
      part: "",
      outcome: "VALID",
      label: "",
      count: 3,
      amount: 0,
      latencyUs: 9,
    };
    await first.transact("addRollups", { level: "day", rows: [row] });
    await first.close();

    // The database as the earlier release left it.
    const database = new DatabaseSync(file);
    const names = database
      .prepare(
        "select name from sqlite_schema where type = 'table' and (name like 'analytics_usage_%' or name like 'analytics_decision%' or name like 'analytics_segment%')",
      )
      .all();
    for (const { name } of names) database.exec(`drop table ${name}`);
    database.exec("drop table analytics_schema_steps");
    const earlier = database.prepare(
      `insert into analytics_days values (?, 'key_1', '', 'VALID', '', 2, 0, 9)
       on conflict (time, subject, part, outcome) do update set count = count + excluded.count`,
    );
    const store = await open();
    t.after(() => store.close());
    await store.transact("migrate", null);
    earlier.run(NOON);
    database.close();
    const range = { level: "day", start: NOON, end: NOON + levels.day } as const;
    const text = await store.read("stats", {
      about: "verifications",
      workspaceId: "ws_1",
      subject: "key_1",
      tags: [],
      ...range,
    });
    assert.equal(JSON.parse(`{${text}}`).total, 5);
    const top = { by: "key", workspaceId: "ws_1", limit: 1, examinedMax: 10, ...range } as const;
    assert.deepEqual(await store.read("top", top), { entries: [] });
  });
});

async function openServed(merging: MergeOptions | null): Promise<Rollups> {
  const { url, drop } = await freshDatabase();
  const store = await openPostgresStore({ url, clock }, openRollupProcedures(merging));
  const rollups = await openSqlRollups(store, RETENTION, LOG);
  return {
    ...rollups,
    async close() {
      await rollups.close();
      await drop();
    },
  };
}

describeRollups("PostgreSQL", () => openServed(null));
describeRollups("PostgreSQL, in segments", async () => mergedInBetween(await openServed(SEGMENTED)));
