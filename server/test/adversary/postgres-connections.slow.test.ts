/** Connections to PostgreSQL that break, hang or wait, in every state. */
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import { sql as raw } from "kysely";
import { Client } from "pg";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { StoreUnavailable } from "../../../engine/src/errors/store-unavailable.ts";
import { migrate } from "../../src/platform/store/migrate.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import type { PoolName, Sql } from "../../src/platform/store/store.ts";
import { busyness } from "../busyness.ts";
import { freshDatabase } from "../services/postgres.ts";
import { TcpProxy } from "../tcp-proxy.ts";

const run = (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql);
const procedures = {
  reading: { run, lookUp: run, readFeed: run },
  writing: { run, spend: run, import: run, migrate: (sql: Sql, _: null) => migrate(sql) },
  pools: { migrate: "maintenance", lookUp: "lookup", readFeed: "feed", spend: "ledger" } as Record<string, PoolName>,
  mayTakeLong: (name: string) => name === "import",
  hasMarkers: true,
};

/** A store behind a proxy, with a table `kept` for writes. */
async function open(t: TestContext, options: { statementTimeout?: number } = {}) {
  const { url, drop } = await freshDatabase();
  const proxy = await TcpProxy.open(url);
  const admin = new Client({ connectionString: url });
  admin.on("error", () => {});
  await admin.connect();
  await admin.query("create table kept (id integer primary key)");
  const store = await openPostgresStore({ url: proxy.url, clock: systemClock, ...options }, procedures);
  t.after(async () => {
    await store.close();
    await proxy.close();
    await admin.end();
    await drop();
  });
  await store.transact("migrate", null);
  const kept = async () => (await admin.query("select id from kept order by id")).rows.map(({ id }) => id as number);
  return { store, proxy, admin, kept };
}

const insert =
  (id: number) =>
  async ({ db }: Sql) => {
    await raw`insert into kept values (${id})`.execute(db);
    await raw`select 1`.execute(db);
  };
const look = ({ db }: Sql) => raw`select 1`.execute(db);

/** Whether it succeeded. The only accepted failure is StoreUnavailable. */
async function succeeds(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    assert(error instanceof StoreUnavailable, String((error as Error).stack));
    return false;
  }
}

/** The time in milliseconds until it succeeds. */
async function untilItSucceeds(work: () => Promise<unknown>): Promise<number> {
  const startedAt = systemClock.monotonic();
  while (!(await succeeds(work()))) {
    assert(systemClock.monotonic() - startedAt < 60_000, "it does not recover");
    await setTimeout(20);
  }
  return systemClock.monotonic() - startedAt;
}

/** The message with which a server ends a connection. */
function fatal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

const FATAL = fatal("57P01", "terminating connection due to administrator command");

/** Ways in which this message can arrive relative to an answer. */
const arrivals: Record<string, (answer: Buffer) => Buffer[]> = {
  "in one packet with": (answer) => [Buffer.concat([answer, FATAL])],
  "in a packet after": (answer) => [answer, FATAL],
  "instead of": () => [FATAL],
  "in two halves after": (answer) => [Buffer.concat([answer, FATAL.subarray(0, 20)]), FATAL.subarray(20)],
  "after half of": (answer) => [Buffer.concat([answer.subarray(0, answer.length >> 1)]), FATAL],
};

describe("a connection that the server ends", () => {
  for (const [arrival, piecesOf] of Object.entries(arrivals)) {
    it(`${arrival} any answer causes no crash, and every outcome is reported correctly`, async (t) => {
      const { store, proxy, kept } = await open(t);
      const acknowledged: number[] = [];
      const rejected: number[] = [];
      let rounds = 0;
      // The n-th message of the server from here on: during the start of a connection, its setup, a read, between the
      // statements of a transaction, or in its commit.
      for (let nth = 0, isOver = false; !isOver; nth++, rounds++) {
        // New connections only, so that every round passes through all states.
        await untilItSucceeds(() => store.read("run", look));
        proxy.cut();
        await setTimeout(20);
        let answers = 0;
        proxy.answer = (bytes) => {
          if (answers++ !== nth) return { pieces: [bytes], ends: false };
          return { pieces: piecesOf(bytes), ends: true };
        };
        const id = nth;
        // The end of a connection in the pool comes while it is idle.
        const spend = await succeeds(store.transact("run", insert(id)));
        (spend ? acknowledged : rejected).push(id);
        await succeeds(store.read("run", look));
        isOver = answers < nth;
        proxy.answer = (bytes) => ({ pieces: [bytes], ends: false });
      }
      await untilItSucceeds(() => store.read("run", look));
      const there = await kept();
      assert.deepEqual(
        there.filter((id) => rejected.includes(id)),
        [],
        "a rejected row is absent",
      );
      assert.deepEqual(there, acknowledged);
      t.diagnostic(`${rounds} rounds, ${acknowledged.length} acknowledged, ${rejected.length} rejected`);
    });
  }

  it("is replaced while it is idle, reading and writing under load: 40 terminations, no crash", async (t) => {
    const { store, admin, kept } = await open(t);
    let id = 0;
    let isOver = false;
    const acknowledged: number[] = [];
    let rejected = 0;
    const work = async () => {
      while (!isOver) {
        const mine = id++;
        if (await succeeds(store.transact("spend", insert(mine)))) acknowledged.push(mine);
        else rejected++;
        await succeeds(store.read("lookUp", look));
      }
    };
    const load = Promise.all(Array.from({ length: 8 }, work));
    for (let turn = 0; turn < 40; turn++) {
      await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and application_name like 'latchkey-%'`,
      );
      await setTimeout(100);
    }
    isOver = true;
    await load;
    assert.deepEqual(
      await kept(),
      acknowledged.sort((a, b) => a - b),
    );
    t.diagnostic(`${acknowledged.length} acknowledged, ${rejected} rejected`);
  });
});

describe("connections that hang", () => {
  for (const newOnesToo of [false, true]) {
    it(`are replaced${newOnesToo ? ", and so are new ones" : " while new ones work"}`, async (t) => {
      const { store, proxy, kept } = await open(t);
      let id = 0;
      const spend = () => store.transact("spend", insert(id++));
      // All connections of the ledger and of look-ups are open and idle.
      await Promise.all(Array.from({ length: 6 }, spend));
      await Promise.all(Array.from({ length: 3 }, () => store.read("lookUp", look)));
      proxy.blackhole(newOnesToo);
      if (newOnesToo) {
        const startedAt = systemClock.monotonic();
        assert.equal(await succeeds(store.read("lookUp", look)), false);
        const waited = systemClock.monotonic() - startedAt;
        assert(waited < 6_000 * busyness(), `a look-up waited ${waited} ms`);
        proxy.blackhole(false);
      }
      const [reads, spends] = await Promise.all([
        untilItSucceeds(() => store.read("lookUp", look)),
        untilItSucceeds(spend),
      ]);
      assert(reads < 6_000 * busyness(), `look-ups recovered after ${reads} ms`);
      assert(spends < 9_000 * busyness(), `spends recovered after ${spends} ms`);
      for (let i = 0; i < 10; i++) {
        assert(await succeeds(spend()), "no dead connection is left in the pool");
        assert(await succeeds(store.read("lookUp", look)));
      }
      const there = await kept();
      assert.equal(new Set(there).size, there.length);
      t.diagnostic(`look-ups after ${Math.round(reads)} ms, spends after ${Math.round(spends)} ms`);
    });
  }
});

describe("connection pools", () => {
  it("isolate look-ups, the feed and the ledger from the control plane", async (t) => {
    const { store, admin } = await open(t);
    await admin.query("begin; lock table kept");
    const updates = Array.from({ length: 200 }, (_, i) => succeeds(store.transact("run", insert(1_000 + i))));
    const timeOf = async (work: Promise<unknown>) => {
      const startedAt = systemClock.monotonic();
      await work;
      return systemClock.monotonic() - startedAt;
    };
    await setTimeout(200);
    const times = [
      await timeOf(store.read("lookUp", look)),
      await timeOf(store.read("readFeed", look)),
      await timeOf(store.transact("spend", look)),
    ];
    await admin.query("rollback");
    await Promise.all(updates);
    t.diagnostic(`look-up, feed, spend: ${times.map((ms) => ms.toFixed(1)).join(", ")} ms`);
    // The table stays locked until they have ended: one that waited for it would have failed.
    for (const ms of times) assert(ms < 5_000, `${times} ms`);
  });

  it("end a transaction whose client is frozen, so that it delays others by at most 3 s", async (t) => {
    const { store, kept } = await open(t);
    const never = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const frozen = store.transact("spend", async (sql: Sql) => {
      await insert(1)(sql);
      held.resolve();
      await never.promise;
    });
    const failed = assert.rejects(frozen, StoreUnavailable);
    await held.promise;
    const startedAt = systemClock.monotonic();
    await store.transact("spend", insert(1));
    const waited = systemClock.monotonic() - startedAt;
    never.resolve();
    await failed;
    assert.deepEqual(await kept(), [1]);
    t.diagnostic(`waited ${Math.round(waited)} ms`);
    // The limit of the service, and an allowance for the machine.
    assert(waited < 5_000, `${waited} ms`);
  });

  it("give imports more time for a statement than other writes", async (t) => {
    const { store, kept } = await open(t, { statementTimeout: 200 });
    const insertSlowly =
      (id: number) =>
      async ({ db }: Sql) => {
        await raw`insert into kept select ${id} from (select pg_sleep(0.5)) as pause`.execute(db);
      };
    await assert.rejects(store.transact("run", insertSlowly(1)), StoreUnavailable);
    await store.transact("import", insertSlowly(2));
    await assert.rejects(store.transact("run", insertSlowly(3)), StoreUnavailable, "on the same connection afterwards");
    assert.deepEqual(await kept(), [2]);
  });

  it("return no connection to the pool while it is in a transaction", async (t) => {
    const { store } = await open(t);
    const statusOf = ({ db }: Sql) =>
      raw<{ now: string; start: string }>`select now()::text as now, statement_timestamp()::text as start`.execute(db);
    for (let i = 0; i < 20; i++) {
      // A reading procedure that leaves its connection in a transaction, aborted or not.
      await succeeds(store.read("lookUp", ({ db }: Sql) => raw`begin`.execute(db)));
      if (i % 2 === 0) {
        await store.read("lookUp", ({ db }: Sql) => raw`begin; select 1/0`.execute(db)).catch(() => {});
      }
      const { rows } = (await store.read("lookUp", statusOf)) as Awaited<ReturnType<typeof statusOf>>;
      assert.equal(rows[0]!.now, rows[0]!.start, "a statement of its own transaction");
    }
  });
});
