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
import { batchText } from "./batch.ts";
import { levels } from "./levels.ts";
import type { Rollups } from "./rollups.ts";
import { describeRollups, LOG, mergeAll, NOON, OFTEN_MERGED, RETENTION } from "./rollups-contract.ts";
import type { MergeOptions } from "./sql/merge-plan.ts";
import { type AnalyticsProcedures, openRollupProcedures } from "./sql/procedures.ts";
import { analyticsModule, openSqlRollups } from "./sql/store.ts";

const clock = new SimulatedClock(NOON);

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
describeRollups("SQLite, in runs", async () => mergedInBetween(await openEmbedded(OFTEN_MERGED)));

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
        "select name from sqlite_schema where type = 'table' and (name like 'analytics_usage_%' or name like 'analytics_decision%' or name like 'analytics_segment%' or name like 'analytics_run%')",
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
describeRollups("PostgreSQL, in segments", async () => mergedInBetween(await openServed(OFTEN_MERGED)));

for (const [name, open] of [
  ["SQLite", openEmbedded],
  ["PostgreSQL", openServed],
] as const) {
  it(`recorders of edges are kept for some days in ${name}, and those of nodes for longer (rule 217)`, async (t) => {
    const rollups = await open(null);
    t.after(() => rollups.close());
    const batchOf = (recorder: string) => {
      const cell = [NOON, "ws_1", "api_1", `key_${recorder}`, null, "", "VALID", 1, 0, 0];
      const parts = { keys: [], ratelimits: [], decisions: [] };
      return batchText({ recorder, sequence: 1 }, { ...parts, verifications: [JSON.stringify([cell])] });
    };
    const totals = async () => {
      const totalOf = async (recorder: string) => {
        await rollups.write([batchOf(recorder)]);
        const range = { level: "day", start: NOON - (NOON % levels.day), end: NOON + levels.day } as const;
        const asked = { about: "verifications", workspaceId: "ws_1", subject: `key_${recorder}`, tags: [] } as const;
        return JSON.parse(`{${await rollups.stats({ ...asked, ...range })}}`).total;
      };
      return [await totalOf("edge_1"), await totalOf("node_1")];
    };
    assert.deepEqual(await totals(), [1, 1]);
    await rollups.prune(instantAt(NOON + 2 * levels.day));
    assert.deepEqual(await totals(), [1, 1], "a repetition");
    await rollups.prune(instantAt(NOON + 4 * levels.day));
    assert.deepEqual(await totals(), [2, 1], "one that the service would leave out");
  });
}

for (const [name, open] of [
  ["SQLite", openEmbedded],
  ["PostgreSQL", openServed],
] as const) {
  it(`credits of one tenant that are too many to be added up keep nothing of another one from ${name} (rule 216)`, async (t) => {
    const rollups = await open(null);
    t.after(() => rollups.close());
    // One more than fit into a column.
    const writes = 1_025;
    const cellOf = (name: string, credits: number) => [
      NOON,
      `ws_${name}`,
      "api_1",
      `key_${name}`,
      `id_${name}`,
      "",
      "VALID",
      1,
      credits,
      0,
    ];
    for (let sequence = 1; sequence <= writes; sequence++) {
      const cells = [cellOf("hostile", Number.MAX_SAFE_INTEGER), cellOf("innocent", 1)];
      const parts = { keys: [], ratelimits: [], decisions: [], verifications: [JSON.stringify(cells)] };
      await rollups.write([batchText({ recorder: "node_1", sequence }, parts)]);
    }
    const start = NOON - (NOON % levels.day);
    for (const level of ["hour", "day"] as const) {
      const range = { level, start, end: start + levels.day };
      for (const [name, credits] of [
        ["hostile", Number.MAX_SAFE_INTEGER],
        ["innocent", writes],
      ] as const) {
        for (const by of ["key", "identity"] as const) {
          const asked = { by, workspaceId: `ws_${name}`, limit: 1, examinedMax: 10, ...range } as const;
          const { entries } = await rollups.top(asked);
          assert.deepEqual([entries[0]?.total, entries[0]?.creditsSpent], [writes, credits]);
        }
        const stats = { about: "verifications", workspaceId: `ws_${name}`, subject: `key_${name}`, tags: [] } as const;
        const { total, creditsSpent } = JSON.parse(`{${await rollups.stats({ ...stats, ...range })}}`);
        assert.deepEqual([total, creditsSpent], [writes, credits]);
      }
    }
  });
}
