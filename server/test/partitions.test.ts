/** Tables that PostgreSQL divides by month: how they come to be, how they go on, and what they survive. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { sql as raw } from "kysely";
import { Client } from "pg";
import { instantAt } from "../../engine/src/clock/clock.ts";
import { systemClock } from "../../engine/src/clock/system.ts";
import { digest } from "../../engine/src/crypto/digest.ts";
import { analyticsPlan } from "../src/features/analytics/sql/procedures.ts";
import { AuditReader } from "../src/features/audit/statements/reader.ts";
import { auditRetention } from "../src/features/audit/statements/retention.ts";
import { digestRows, findStoredTables } from "../src/platform/store/inspection.ts";
import { takeLease } from "../src/platform/store/lease.ts";
import { mainPlan, migrate, pendingSteps, schemaState } from "../src/platform/store/migrate.ts";
import { schemaSteps } from "../src/platform/store/migrations/index.ts";
import { type MonthlyTable, monthlyTableNames } from "../src/platform/store/monthly-tables.ts";
import {
  findPartitionStates,
  monthStart,
  partitionStep,
  preparePartitions,
} from "../src/platform/store/postgres/partitions.ts";
import { openPostgresStore } from "../src/platform/store/postgres/store.ts";
import { changeLayout, retain } from "../src/platform/store/retention.ts";
import type { Sql } from "../src/platform/store/store.ts";
import { busyness } from "./busyness.ts";
import { openTestServer } from "./harness.ts";
import { freshDatabase } from "./services/postgres.ts";

const DAY = 86_400_000;
const NEVER = instantAt(0);

const direct = {
  reading: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
  writing: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
};

/** A database with the schema, and a connection beside the store. */
async function openDatabase(t: TestContext, release: "this" | "previous") {
  const { url, drop } = await freshDatabase();
  const store = await openPostgresStore({ url, clock: systemClock, allowUnsafe: true }, direct);
  const client = new Client({ connectionString: url });
  await client.connect();
  t.after(async () => {
    await client.end();
    await store.close();
    await drop();
  });
  const write = <T>(work: (sql: Sql) => Promise<T>) => store.transact("run", work) as Promise<T>;
  const read = <T>(work: (sql: Sql) => Promise<T>) => store.read("run", work) as Promise<T>;
  const without = (steps: object, last: string) =>
    Object.fromEntries(Object.entries(steps).filter(([name]) => name !== last));
  const plans = [
    release === "this" ? mainPlan : { ...mainPlan, steps: without(schemaSteps, "019-partitions") },
    release === "this" ? analyticsPlan : { ...analyticsPlan, steps: without(analyticsPlan.steps, "003-partitions") },
  ];
  for (const plan of plans) await write((sql) => migrate(sql, plan));
  const rows = async (text: string) => (await client.query({ text, rowMode: "array" })).rows as unknown[][];
  const value = async (text: string) => (await rows(text))[0]![0];
  /** Changes the layout of a table until there is nothing left to do; returns the steps. */
  const layOut = async (table: MonthlyTable, before = NEVER) => {
    const steps: string[] = [];
    for (;;) {
      const done = await write((sql) => partitionStep(sql, table, before));
      if (done === null) return steps;
      steps.push(done.step === "kept" ? `kept: ${done.reason}` : done.step);
      if (done.step === "kept") return steps;
      if (done.step === "unprepared") await read((sql) => preparePartitions(sql, table));
      assert(steps.length < 100, steps.join());
    }
  };
  /** The digest of a table as `latchkey verify-store` computes it. */
  const digestOf = async (table: string) => {
    const stored = (await read(findStoredTables)).find(({ name }) => name === table)!;
    let cursor = { ...stored, after: null as (string | number)[] | null, digest: "" };
    for (;;) {
      const page = await read((sql) => digestRows(sql, cursor));
      if (page.next === null) return page.digest;
      cursor = page.next;
    }
  };
  const partitions = async (table: string) =>
    (
      await rows(
        `select relname from pg_inherits join pg_class on oid = inhrelid where inhparent = '${table}'::regclass order by 1`,
      )
    ).map(([name]) => name as string);
  /**
   * Lets the partition of the first months of a table without rows end with this month, so that the next ones are always
   * missing. How far ahead it ends depends on the day of the month.
   */
  const endWithThisMonth = async (table: MonthlyTable) => {
    const whole = (await partitions(table)).find((name) => name.includes("_until_"))!;
    await client.query(`alter table ${table} detach partition ${whole};
      alter table ${table} attach partition ${whole} for values from (minvalue) to (${monthStart(systemClock.now(), 1)})`);
  };
  /** The last of the months that were made. */
  const lastMonth = async (table: MonthlyTable) =>
    (await partitions(table)).filter((name) => /_\d{4}_\d\d$/.test(name) && !name.includes("_until_")).at(-1)!;
  return { url, client, write, read, rows, value, layOut, digestOf, partitions, endWithThisMonth, lastMonth };
}

/** The month that the name of a partition ends with. */
const startOf = (partition: string) => Date.UTC(Number(partition.slice(-7, -3)), Number(partition.slice(-2)) - 1, 1);

/** Adds entries to the audit log of `workspaces` workspaces, one an hour backwards from `until`, each with a target. */
const fillAudit = (count: number, until: number, workspaces = 3) => `
  insert into workspaces (id, name, enabled, has_imported_keys, is_default, created_at)
    select 'ws_' || n, 'w', 1, 0, 0, 0 from generate_series(0, ${workspaces - 1}) n on conflict do nothing;
  insert into audit_events (id, workspace_id, occurred_at, actor, action, targets, meta)
    select 'evt_' || n, 'ws_' || n % ${workspaces}, ${until}::bigint - n::bigint * 3600000 / ${Math.ceil(count / 10_000)},
      'cli', 'a', '["key_' || n % 50 || '"]', '{}' from generate_series(1, ${count}) n;
  insert into audit_targets (workspace_id, target, occurred_at, event_id)
    select workspace_id, 'key_' || substr(id, 5)::int % 50, occurred_at, id from audit_events on conflict do nothing`;

const fillCounts = (table: string, count: number, until: number) => `
  insert into ${table} (time, subject, part, outcome, label, count, amount, latency_us)
    select ${until}::bigint - n::bigint * 3600000, 'key_' || n % 7, '', 'VALID', '', 1, 0, 5 from generate_series(1, ${count}) n`;

const indexesOf = (table: string) =>
  `select relname, indisprimary, array(select attname::text from pg_attribute a join unnest(indkey) with ordinality k(n, at)
     on a.attnum = k.n where a.attrelid = indrelid order by at) from pg_index join pg_class on oid = indexrelid
   where indrelid = '${table}'::regclass order by 1`;

describe("a new database", () => {
  it("has tables by month, which go on for the next months", async (t) => {
    const { partitions, layOut, read, rows } = await openDatabase(t, "this");
    const now = systemClock.now();
    for (const table of monthlyTableNames) {
      const made = await partitions(table);
      assert.equal(made.length, 2, made.join());
      assert.match(made[1]!, new RegExp(`^${table}_until_\\d{4}_\\d\\d$`));
      await layOut(table);
      assert.deepEqual(await layOut(table), []);
    }
    for (const { until, isDivided, strays, table } of await read(findPartitionStates)) {
      assert(isDivided && strays === 0, table);
      assert(until! > now + 62 * DAY && until! < now + 100 * DAY, `${table} ends at ${until}`);
      assert.equal(until, monthStart(until!));
    }
    assert.deepEqual(await rows(indexesOf("audit_events")), [
      ["audit_events_action", false, ["workspace_id", "action", "occurred_at", "id"]],
      ["audit_events_actor", false, ["workspace_id", "actor", "occurred_at", "id"]],
      ["audit_events_pkey", true, ["id", "occurred_at"]],
      ["audit_events_time", false, ["workspace_id", "occurred_at", "id"]],
    ]);
  });

  it("makes partitions that are missing, and puts what was in the default partition into them", async (t) => {
    const { client, partitions, layOut, value, digestOf, endWithThisMonth, lastMonth } = await openDatabase(t, "this");
    const now = systemClock.now();
    await endWithThisMonth("audit_events");
    await layOut("audit_events");
    const { length } = await partitions("audit_events");
    const next = await lastMonth("audit_events");
    await client.query(`drop table ${next}`);
    const end = monthStart(now, 4);
    // A clock that is months ahead writes into months that have no partition.
    await client.query(fillAudit(2_000, end));
    const strays = Number(await value("select count(*) from audit_events_default"));
    assert(strays > 500, String(strays));
    const before = await digestOf("audit_events");
    assert.deepEqual(await layOut("audit_events"), ["made"]);
    assert.equal((await partitions("audit_events")).length, length);
    const start = startOf(next);
    assert.equal(
      await value(`select count(*) from ${next} where occurred_at >= ${start}`),
      await value(`select count(*) from ${next}`),
    );
    assert(Number(await value(`select count(*) from ${next}`)) > 500);
    assert(Number(await value("select count(*) from audit_events_default")) < strays);
    assert.equal(await digestOf("audit_events"), before);
  });

  it("leaves a month in the default partition that has too many rows there, and says how many", async (t) => {
    const { client, layOut, read, endWithThisMonth, lastMonth } = await openDatabase(t, "this");
    await endWithThisMonth("analytics_hours");
    await layOut("analytics_hours");
    const last = await lastMonth("analytics_hours");
    const at = startOf(last);
    await client.query(`drop table ${last}`);
    await client.query(`
      insert into analytics_hours (time, subject, part, outcome, label, count, amount, latency_us)
      select ${at}, 'key_' || n, '', 'VALID', '', 1, 0, 5 from generate_series(1, 10001) n`);
    assert.deepEqual(await layOut("analytics_hours"), []);
    const state = (await read(findPartitionStates)).find(({ table }) => table === "analytics_hours")!;
    assert.equal(state.strays, 10_001);
    await client.query(`delete from analytics_hours where subject = 'key_1'`);
    assert.deepEqual(await layOut("analytics_hours"), ["made"]);
  });
});

describe("a database of the previous release", () => {
  it("is divided beside the service, and every row, index and right stays", async (t) => {
    const { client, layOut, rows, value, digestOf, read, partitions, write } = await openDatabase(t, "previous");
    const now = systemClock.now();
    await client.query(fillAudit(20_000, now));
    for (const table of monthlyTableNames.filter((name) => /minutes|analytics_hours|analytics_days/.test(name)))
      await client.query(fillCounts(table, 3_000, now));
    const [tables, role] = [
      monthlyTableNames,
      `reader_${digest(String(now)).slice(0, 8)}`.toLowerCase().replace(/\W/g, "x"),
    ];
    await client.query(`create role ${role}`);
    t.after(async () => {
      await client.query(`drop owned by ${role}; drop role ${role}`).catch(() => {});
    });
    await client.query(`grant select on audit_events to ${role}; grant insert on audit_events to public`);
    const digests = await Promise.all(tables.map(digestOf));
    const indexes = await rows(indexesOf("audit_events"));

    // The step of the schema leaves tables alone that have rows.
    for (const plan of [mainPlan, analyticsPlan]) await write((sql) => migrate(sql, plan));
    assert.equal(await value("select relkind from pg_class where oid = 'audit_events'::regclass"), "r");
    assert.deepEqual(pendingSteps(await read((sql) => schemaState(sql))), []);
    assert.deepEqual(await layOut("audit_events"), ["bounded", "unprepared", "divided"]);
    assert.deepEqual(await layOut("audit_targets"), ["bounded", "unprepared", "divided"]);
    for (const table of tables.slice(2)) {
      const { isDivided } = (await read(findPartitionStates)).find((state) => state.table === table)!;
      // The empty ones were divided by the migration.
      if (!isDivided) assert.deepEqual((await layOut(table)).slice(0, 3), ["bounded", "unprepared", "divided"]);
    }
    assert.deepEqual(await Promise.all(tables.map(digestOf)), digests);
    const changed = indexes.map(([name, primary, columns]) => [
      name,
      primary,
      primary ? ["id", "occurred_at"] : columns,
    ]);
    assert.deepEqual(await rows(indexesOf("audit_events")), changed);
    assert.equal(await value(`select has_table_privilege('${role}', 'audit_events', 'select')`), true);
    assert.equal(await value(`select has_table_privilege('${role}', 'audit_events', 'insert')`), true);
    assert.equal(await value(`select has_table_privilege('${role}', 'audit_targets', 'select')`), false);
    assert.deepEqual(
      await rows("select conname from pg_constraint where conname like '%month_check'"),
      [],
      "a boundary was left",
    );
    const [stray, whole] = await partitions("audit_events");
    assert.equal(stray, "audit_events_default");
    assert.match(whole!, /^audit_events_until_\d{4}_\d\d$/);
    assert.deepEqual(await rows(`select indisvalid from pg_index where not indisvalid`), []);
    assert.deepEqual(await layOut("audit_events"), []);
  });

  it("accepts every statement of the previous release before, during and after", async (t) => {
    const { client, layOut, value, write, read } = await openDatabase(t, "previous");
    const now = systemClock.now();
    await client.query(fillAudit(100, now));
    await client.query(fillCounts("analytics_hours", 100, now));
    let number = 0;
    const previous = async () => {
      number++;
      const at = now - number;
      await client.query(
        "insert into audit_events (id, workspace_id, occurred_at, actor, action, targets, meta) values ($1, 'ws_1', $2, 'cli', 'a', '[\"x\"]', '{}')",
        [`evt_x${number}`, at],
      );
      await client.query(
        "insert into audit_targets (workspace_id, target, occurred_at, event_id) values ('ws_1', 'x', $2, $1)",
        [`evt_x${number}`, at],
      );
      for (const table of ["analytics_minutes", "analytics_hours", "analytics_days"]) {
        await client.query(
          `insert into ${table} as t (time, subject, part, outcome, label, count, amount, latency_us)
           select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
           on conflict (time, subject, part, outcome) do update set count = t.count + excluded.count,
           amount = t.amount + excluded.amount, latency_us = t.latency_us + excluded.latency_us`,
          [[monthStart(now)], ["old"], [""], ["VALID"], [""], [1], [0], [5]],
        );
      }
      const { rows } = await client.query(
        `select e.* from audit_targets as t inner join audit_events as e on e.id = t.event_id
         where t.workspace_id = 'ws_1' and t.target = 'x' order by t.occurred_at desc, t.event_id desc limit 1000`,
      );
      assert.equal(rows.length, number);
      await client.query(
        `delete from audit_targets where (workspace_id, target, occurred_at, event_id) in (
           select 'ws_1', target, occurred_at, event_id from json_to_recordset('[{"target":"none","occurred_at":1,"event_id":"none"}]')
           as input(target text, occurred_at bigint, event_id text))`,
      );
      await client.query("delete from audit_events where id = 'none'");
    };
    await previous();
    for (const table of ["audit_events", "audit_targets", "analytics_hours"] as const) {
      for (;;) {
        const done = await write((sql) => partitionStep(sql, table, NEVER));
        await previous();
        if (done === null) break;
        if (done.step === "unprepared") await read((sql) => preparePartitions(sql, table));
      }
    }
    await previous();
    for (const table of ["analytics_hours", "analytics_days"]) {
      assert.equal(Number(await value(`select count from ${table} where subject = 'old'`)), number);
    }
    await layOut("audit_events");
  });

  it("with 200,000 rows never keeps a writer for long", async (t) => {
    const { url, client, layOut, value } = await openDatabase(t, "previous");
    await client.query(fillAudit(200_000, systemClock.now()));
    await client.query("vacuum analyze");
    const writer = new Client({ connectionString: url });
    await writer.connect();
    let [isOver, longest, written] = [false, 0, 0];
    const writing = (async () => {
      for (; !isOver; written++) {
        const startedAt = systemClock.monotonic();
        const at = systemClock.now();
        await writer.query(`begin; insert into audit_events (id, workspace_id, occurred_at, actor, action, targets, meta)
          values ('evt_w${written}', 'ws_1', ${at}, 'cli', 'a', '["w"]', '{}');
          insert into audit_targets (workspace_id, target, occurred_at, event_id) values ('ws_1', 'w', ${at}, 'evt_w${written}');
          commit`);
        longest = Math.max(longest, systemClock.monotonic() - startedAt);
      }
      await writer.end();
    })();
    const startedAt = systemClock.monotonic();
    await layOut("audit_events");
    await layOut("audit_targets");
    const took = systemClock.monotonic() - startedAt;
    isOver = true;
    await writing;
    t.diagnostic(`${written} writes in ${Math.round(took)} ms; the longest took ${Math.round(longest)} ms`);
    assert(written > 10);
    assert.equal(Number(await value("select count(*) from audit_events")), 200_000 + written);
    assert.equal(Number(await value("select count(*) from audit_targets where target = 'w'")), written);
    assert(longest < 1_000 * busyness(), `a write took ${longest} ms`);
  });

  it("is divided by the next holder when one was killed between two steps", async (t) => {
    const { client, write, read, layOut, value } = await openDatabase(t, "previous");
    await client.query(fillAudit(500, systemClock.now()));
    for (let done = 1; done <= 2; done++) {
      assert.notEqual(await write((sql) => partitionStep(sql, "audit_events", NEVER)), null);
      // What it was doing besides has no end: an index that is not valid.
      await client.query("create unique index if not exists audit_events_month_key on audit_events (id, occurred_at)");
      await client.query(
        "update pg_index set indisvalid = false where indexrelid = 'audit_events_month_key'::regclass",
      );
    }
    await read((sql) => preparePartitions(sql, "audit_events"));
    await read((sql) => preparePartitions(sql, "audit_events"));
    assert.deepEqual(await layOut("audit_events"), ["divided"]);
    assert.equal(Number(await value("select count(*) from audit_events")), 500);
  });

  it("chooses a boundary after every row of a clock that is ahead, and a new one when it has come near", async (t) => {
    const { client, write, layOut, rows, partitions } = await openDatabase(t, "previous");
    const now = systemClock.now();
    const ahead = now + 120 * DAY;
    await client.query(fillAudit(500, ahead));
    assert.equal((await write((sql) => partitionStep(sql, "audit_events", NEVER)))!.step, "bounded");
    // The clock that is ahead goes on to write.
    await client.query(fillAudit(0, now).split(";")[0]!);
    await client.query(
      `insert into audit_events values ('evt_ahead', 'ws_1', ${ahead + 30 * DAY}, 'cli', 'a', '[]', '{}')`,
    );
    const [[definition]] = (await rows(
      "select pg_get_constraintdef(oid) from pg_constraint where conname = 'audit_events_month_check'",
    )) as [[string]];
    assert(Number(/\d{10,}/.exec(definition)![0]) >= monthStart(ahead + 95 * DAY, 1), definition);
    await client.query(`
      delete from audit_events where occurred_at > ${now};
      alter table audit_events drop constraint audit_events_month_check;
      alter table audit_events add constraint audit_events_month_check check (occurred_at < ${now + 3 * DAY}) not valid`);
    assert.deepEqual(await layOut("audit_events"), ["bounded", "bounded", "unprepared", "divided"]);
    const end = (await partitions("audit_events"))[1]!.slice(-7);
    assert.equal(end, new Date(monthStart(now + 95 * DAY, 1)).toISOString().slice(0, 7).replace("-", "_"));
  });

  it("stays as it is where something refers to it, or a row is years ahead", async (t) => {
    const { client, layOut, write } = await openDatabase(t, "previous");
    const now = systemClock.now();
    await client.query(fillAudit(10, now));
    await client.query(fillCounts("analytics_days", 10, now + 5_000 * DAY));
    await client.query("create view seen as select id from audit_events");
    for (const plan of [mainPlan, analyticsPlan]) await write((sql) => migrate(sql, plan));
    assert.deepEqual(await layOut("audit_events"), ["kept: a view or a rule depends on it"]);
    assert.match((await layOut("analytics_days")).join(), /^kept: it has rows of 20\d\d-\d\d-\d\d: a clock was wrong$/);
    await client.query("drop view seen; create publication p for table audit_events");
    assert.deepEqual(await layOut("audit_events"), ["kept: a publication names it"]);
    await client.query("drop publication p");
    assert.deepEqual(await layOut("audit_events"), ["bounded", "unprepared", "divided"]);
  });

  it("accepts rows again when the boundary turns out to be wrong", async (t) => {
    const { client, layOut, value } = await openDatabase(t, "previous");
    const now = systemClock.now();
    // A target without its entry, so no entry shows how far ahead it is.
    await client.query(`insert into audit_targets values ('ws_1', 'x', ${now + 300 * DAY}, 'evt_none')`);
    await assert.rejects(layOut("audit_targets"), { code: "23514" });
    await client.query(`insert into audit_targets values ('ws_1', 'y', ${now + 300 * DAY}, 'evt_none')`);
    assert.equal(Number(await value("select count(*) from audit_targets")), 2);
  });
});

describe("old partitions", () => {
  /** A divided log with 40 months of entries in partitions of their own. */
  async function openLog(t: TestContext) {
    const database = await openDatabase(t, "this");
    const { client, partitions } = database;
    const now = systemClock.now();
    const [first, second, third] = [monthStart(now, -3), monthStart(now, -2), monthStart(now, -1)];
    for (const table of ["audit_events", "audit_targets"]) {
      const until = (await partitions(table))[1]!;
      // The next months are missing, on every day of a month.
      const end = monthStart(now, 1);
      await client.query(`alter table ${table} detach partition ${until};
        drop table ${until};
        create table ${table}_a partition of ${table} for values from (minvalue) to (${first});
        create table ${table}_b partition of ${table} for values from (${first}) to (${second});
        create table ${table}_c partition of ${table} for values from (${second}) to (${third});
        create table ${table}_d partition of ${table} for values from (${third}) to (${end})`);
    }
    await client.query(fillAudit(10_000, now));
    return { ...database, now, first, second, third };
  }

  const countOf = `select count(*) from audit_events`;

  it("are dropped when all of their rows are too old, and no other", async (t) => {
    const { layOut, partitions, value, second, rows } = await openLog(t);
    const young = await value(`${countOf} where occurred_at >= ${second}`);
    assert.deepEqual(
      (await layOut("audit_events", instantAt(second - 1))).slice(0, 2),
      ["dropped", "made"].slice(0, 2),
    );
    assert((await partitions("audit_events")).includes("audit_events_b"), "a partition with a young row was dropped");
    await layOut("audit_events", instantAt(second));
    const left = (await partitions("audit_events")).map((name) => name.replace("audit_events_", ""));
    assert(!left.includes("a") && !left.includes("b") && left.includes("c") && left.includes("d"), left.join());
    assert.equal(await value(countOf), young);
    assert.deepEqual(await rows("select 1 from pg_class where relname in ('audit_events_a', 'audit_events_b')"), []);
  });

  it("are dropped by the holder of the lease alone, by both clocks", async (t) => {
    const { write, partitions, value, now, first, client } = await openLog(t);
    const count = async () => (await partitions("audit_events")).length;
    const before = await count();
    const lease = (await write((sql) => takeLease(sql, { name: "retention", holder: "a", now })))!;
    const step = (at: number, held = lease, keep = now - first - DAY) =>
      write((sql) => changeLayout(sql, { table: "audit_events", keep, now: instantAt(at), lease: held }));
    // A clock that is years behind or ahead of the database's.
    for (const at of [now - 1_000 * DAY, now + 10_000 * DAY]) {
      const done = await step(at, lease, 200 * DAY);
      assert.notEqual(done?.step, "dropped");
    }
    while ((await step(now - 1_000 * DAY, lease, 200 * DAY)) !== null);
    assert((await count()) >= before);
    await write(({ db }) => raw`update leases set expires_at = 0`.execute(db));
    const next = (await write((sql) => takeLease(sql, { name: "retention", holder: "b", now })))!;
    await assert.rejects(step(now), { name: "LeaseLost" });
    assert((await partitions("audit_events")).includes("audit_events_a"));
    assert.deepEqual(await step(now, next), { step: "dropped", partition: "audit_events_a", rows: 0 });
    await client.query("analyze");
    assert(Number(await value(countOf)) > 0);
  });

  it("report PostgreSQL's estimate of their rows", async (t) => {
    const { write, client, second, value } = await openLog(t);
    await client.query("analyze audit_events");
    const rows = Number(await value("select count(*) from audit_events_a"));
    assert(rows > 1_000);
    const done = await write((sql) => partitionStep(sql, "audit_events", instantAt(second)));
    assert.deepEqual(done, { step: "dropped", partition: "audit_events_a", rows });
  });

  it("lose single rows in the months that are not over, and in the default partition", async (t) => {
    const { write, client, value, now, second, partitions } = await openLog(t);
    const lease = (await write((sql) => takeLease(sql, { name: "retention", holder: "a", now })))!;
    const keep = now - second - 10 * DAY;
    const times = { audit: keep, events: keep, deleted: keep, holds: keep, expiredHolds: keep };
    // A clock that is years behind: months that are gone have no partition.
    await client.query("drop table audit_events_a, audit_targets_a");
    await client.query(fillAudit(0, now).split(";")[0]!);
    await client.query(`insert into audit_events values ('evt_behind', 'ws_1', 5, 'cli', 'a', '["x"]', '{}');
      insert into audit_targets values ('ws_1', 'x', 5, 'evt_behind')`);
    assert.equal(Number(await value("select count(*) from audit_events_default")), 1);
    const total = Number(await value(countOf));
    let deleted = 0;
    for (;;) {
      const step = await write((sql) => retain(sql, auditRetention, { times, now: instantAt(now), lease }));
      deleted += step.deleted;
      if (step.deleted === 0) break;
    }
    assert(deleted > 100 && deleted < total, `${deleted} of ${total}`);
    assert.equal(Number(await value(countOf)), total - deleted);
    const oldest = Number(await value("select min(occurred_at) from audit_events"));
    assert(oldest >= systemClock.now() - keep - DAY && oldest < now - keep + DAY, String(now - keep - oldest));
    assert.equal(Number(await value("select count(*) from audit_targets")), total - deleted);
    assert.equal(Number(await value("select count(*) from audit_events_default")), 0);
    assert((await partitions("audit_events")).includes("audit_events_b"));
  });

  it("wait a fraction of a second for a long transaction, and let writers go on", async (t) => {
    const { write, url, client, second, partitions } = await openLog(t);
    const reader = new Client({ connectionString: url });
    await reader.connect();
    await reader.query("begin; select count(*) from audit_events");
    const startedAt = systemClock.monotonic();
    const dropping = write((sql) => partitionStep(sql, "audit_events", instantAt(second)));
    const failed = assert.rejects(dropping, /lock timeout/);
    await client.query(
      `insert into audit_events values ('evt_z', 'ws_1', ${systemClock.now()}, 'cli', 'a', '[]', '{}')`,
    );
    const took = systemClock.monotonic() - startedAt;
    await failed;
    assert(took < 2_000 * busyness(), `a write waited ${took} ms`);
    assert((await partitions("audit_events")).includes("audit_events_a"));
    await reader.query("rollback");
    await reader.end();
    assert.equal((await write((sql) => partitionStep(sql, "audit_events", instantAt(second))))!.step, "dropped");
  });

  it("stay while a move copies the database, or has ended", async (t) => {
    const { client, layOut, partitions, second } = await openLog(t);
    const before = await partitions("audit_events");
    for (const [role, ended] of [
      ["source", "null"],
      ["source", "5"],
      ["target", "null"],
    ]) {
      await client.query(`delete from moves; insert into moves values (1, 'm', '${role}', 'o', 1, null, ${ended})`);
      assert.deepEqual(await layOut("audit_events", instantAt(second)), []);
      assert.deepEqual(await partitions("audit_events"), before);
    }
    await client.query("update moves set ended_at = 5");
    const steps = await layOut("audit_events", instantAt(second));
    assert.deepEqual(steps.slice(0, 2), ["dropped", "dropped"]);
  });
});

describe("a service", () => {
  it("drops old partitions, makes those of the next months, and reports it", async (t) => {
    const server = await openTestServer({ store: "postgres", settings: { RETENTION_AUDIT: "4d" } });
    t.after(() => server.close());
    const run = (text: string) => server.change([], ({ db }) => raw.raw(text).execute(db));
    const month = monthStart(server.clock.now(), -1);
    const partitions = async () =>
      (
        await server.change([], ({ db }) =>
          raw<{ name: string }>`select inhrelid::regclass::text as name from pg_inherits
            where inhparent = 'audit_events'::regclass`.execute(db),
        )
      ).rows.map(({ name }) => name);
    const whole = (await partitions()).find((name) => name.includes("_until_"))!;
    const kept = (await server.rowsOf("audit_events")).length;
    assert(kept > 0);
    await run(`alter table audit_events detach partition ${whole}`);
    await run(`create table audit_events_old partition of audit_events for values from (minvalue) to (${month})`);
    // So that the next months are missing, on every day of a month.
    const end = monthStart(systemClock.now(), 1);
    await run(`alter table audit_events attach partition ${whole} for values from (${month}) to (${end})`);
    await run(`insert into audit_events values ('evt_old', 'ws_1', ${month - 5}, 'cli', 'a', '[]', '{}')`);
    await server.pass(90_000);
    const left = await partitions();
    assert(!left.includes("audit_events_old") && left.includes(whole), left.join());
    const ahead = left.filter((name) => /_events_\d{4}_\d\d$/.test(name)).map(startOf);
    assert(Math.max(...ahead) > systemClock.now() + 30 * DAY, left.join());
    assert.equal((await server.rowsOf("audit_events")).length, kept);
    assert.match(await server.scrape(), /^latchkey_retention_partitions_dropped_total\{table="audit_events"\} 1$/m);
    const dropped = server.logged.filter(({ message }) => /^a partition whose rows/.test(message as string));
    assert.deepEqual(
      dropped.map(({ fields }) => (fields as { partition: string }).partition),
      ["audit_events_old"],
    );
    assert(!server.logged.some(({ message }) => /could not be (changed|deleted)/.test(message as string)));
  });
});

describe("queries on tables by month", () => {
  it("read the partitions that they need, by their indexes", async (t) => {
    const { client, read, layOut, partitions, rows } = await openDatabase(t, "previous");
    const now = systemClock.now();
    await client.query(fillAudit(20_000, now, 20));
    await client.query(fillCounts("analytics_hours", 20_000, now));
    await layOut("audit_events");
    await layOut("audit_targets");
    await layOut("analytics_hours");
    await client.query("analyze");
    assert((await partitions("audit_events")).length >= 2);
    const plans: string[] = [];
    const explain = async (text: string) => {
      const plan = (await rows(`explain ${text}`)).map(([line]) => line as string).join("\n");
      plans.push(plan);
      assert.doesNotMatch(plan, /Seq Scan on (audit|analytics)_\w*until/, plan);
      return plan;
    };
    const last = (await read((sql) => new AuditReader(sql, "ws_1").page({ limit: 100 }))).at(-1)!;
    const from = { at: last.occurred_at, id: last.id };
    const next = await read((sql) => new AuditReader(sql, "ws_1").page({ limit: 50, from }));
    assert.deepEqual([next.length, next[0]!.id], [50, last.id]);
    const ofTarget = await read((sql) => new AuditReader(sql, "ws_1").page({ limit: 50, target: "key_11", from }));
    assert(ofTarget.length > 5 && ofTarget.every(({ targets }) => targets === '["key_11"]'));
    await explain(`select * from audit_events as e where e.workspace_id = 'ws_1' and (e.occurred_at, e.id) <= (${from.at}, '${from.id}')
      order by e.occurred_at desc, e.id desc limit 50`);
    await explain(`select e.* from audit_targets as t join audit_events as e on e.id = t.event_id and e.occurred_at = t.occurred_at
      where t.workspace_id = 'ws_1' and t.target = 'key_11' order by t.occurred_at desc, t.event_id desc limit 50`);
    const hour = now - (now % 3_600_000);
    const stats = await explain(
      `select r.time, sum(r.count) from analytics_hours as r where r.time = any('{${hour - 3_600_000},${hour}}'::bigint[])
       and r.subject = 'key_1' group by 1`,
    );
    assert.doesNotMatch(stats, /default/, "a partition is read that has no row of the range");
    await explain(
      `select max(time) from (select time from analytics_hours where time < ${now - 300 * DAY} order by time limit 10000) as old`,
    );
    await explain(
      `delete from audit_targets where (workspace_id, target, occurred_at, event_id) in (select 'ws_1', target, occurred_at, event_id
       from json_to_recordset('[{"target":"a","occurred_at":1,"event_id":"b"}]') as input(target text collate "C", occurred_at bigint, event_id text collate "C"))`,
    );
    await explain("delete from audit_events where id = any(array['evt_1', 'evt_2'])");
  });
});
