/** The feed of changes on PostgreSQL: it misses no change, nothing blocks it, and it recognises another server. */
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { Kysely, PostgresDialect } from "kysely";
import { Client } from "pg";
import { instantAt } from "../../../engine/src/clock/clock.ts";
import { systemClock } from "../../../engine/src/clock/system.ts";
import type { Changes, ChangesCursor } from "../../../engine/src/directory/changes.ts";
import { CHANGES_RETENTION } from "../../../engine/src/directory/changes.ts";
import { seededRandom } from "../../../engine/src/random/seeded.ts";
import { insertChange, pruneChanges } from "../../src/platform/store/changes.ts";
import { migrate } from "../../src/platform/store/migrate.ts";
import { readPostgresChanges } from "../../src/platform/store/postgres/changes.ts";
import { postgresDialect } from "../../src/platform/store/postgres/dialect.ts";
import { openPostgresStore } from "../../src/platform/store/postgres/store.ts";
import type { Sql, Store } from "../../src/platform/store/store.ts";
import { type FreshDatabase, freshDatabase } from "../services/postgres.ts";

const direct = {
  reading: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
  writing: { run: (sql: Sql, work: (sql: Sql) => Promise<unknown>) => work(sql) },
};

/** Seeds of the property; `SEEDS=500 npm test -- postgres-feed` runs more. */
const SEEDS = Number(process.env.SEEDS ?? 12);
const FIRST_SEED = Number(process.env.SEED ?? 1);
const STEPS = 120;
const LOCK_CLASS = 0x4c4b;

let database: FreshDatabase;
let store: Store<typeof direct>;
const clients: Client[] = [];

before(async () => {
  database = await freshDatabase();
  store = await openPostgresStore({ url: database.url, clock: systemClock, idleInTransactionTimeout: 60_000 }, direct);
  await store.transact("run", migrate);
});
after(async () => {
  await Promise.all(clients.map((client) => client.end()));
  await store.close();
  await database.drop();
});
beforeEach(() => store.transact("run", ({ db }) => db.deleteFrom("changes").execute()) as Promise<void>);

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  clients.push(client);
  return client;
}

const invalidate = (...tags: string[]) =>
  store.transact("run", (sql: Sql) => insertChange(sql, tags, systemClock.now(), null)) as Promise<number>;
const read = (cursor?: ChangesCursor) =>
  store.read("run", (sql: Sql) => sql.dialect.readChanges(sql, cursor)) as Promise<Changes>;

/** A reader that calls `between` before every statement, so that others run in between. */
function slowReader(client: Client, between: () => Promise<void>): Sql {
  const borrowed = {
    async query(text: string, values: unknown[]) {
      await between();
      const result = await client.query(text, values);
      // As the store does it: every integer of the schema fits into a number.
      for (const row of result.rows) {
        for (const name of ["sequence", "drawn", "bound"])
          if (typeof row[name] === "string") row[name] = Number(row[name]);
      }
      return result;
    },
    release() {},
  };
  const pool = { connect: async () => borrowed, end: async () => {}, options: {} } as never;
  return { db: new Kysely({ dialect: new PostgresDialect({ pool }) }), dialect: postgresDialect } as Sql;
}

describe("the feed", () => {
  it(`misses no change in any order of steps (${SEEDS} seeds)`, async (t) => {
    const writers = await Promise.all(Array.from({ length: 4 }, connect));
    const readingClient = await connect();
    let [reads, rows] = [0, 0];
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
      const random = seededRandom(seed);
      const states = writers.map((client) => ({
        client,
        open: false,
        bound: undefined as string | undefined,
        tags: [] as string[],
      }));
      /** Tags by the number of the step at which they were committed. */
      const committed: string[] = [];
      let made = 0;

      /** Runs one statement of one writer. The other writers stay where they are. */
      const step = async () => {
        const state = states[random.below(states.length)]!;
        const { client } = state;
        const action = random.below(10);
        if (!state.open) {
          await client.query("begin");
          Object.assign(state, { open: true, bound: undefined, tags: [] });
        } else if (action < 2) {
          // The steps of the trigger, separated: the bound is read long before the lock is taken.
          const { rows } = await client.query(
            "select case when is_called then last_value else last_value - 1 end as drawn from changes_sequence_seq",
          );
          state.bound ??= rows[0].drawn;
        } else if (action < 4 && state.bound !== undefined) {
          const key = (BigInt(LOCK_CLASS) << 48n) + BigInt(state.bound);
          await client.query("select pg_advisory_xact_lock_shared($1)", [key.toString()]);
        } else if (action < 7) {
          const tag = `${seed}/${++made}`;
          if (random.below(4) === 0) {
            await client.query("savepoint a");
            await client.query("insert into changes (tags, created_at) values ('[\"undone\"]', 0)");
            await client.query("rollback to a");
          }
          await client.query("insert into changes (tags, created_at) values ($1, 0)", [JSON.stringify([tag])]);
          state.tags.push(tag);
        } else if (action === 7) {
          await client.query("rollback");
          state.open = false;
        } else {
          await client.query("commit");
          state.open = false;
          committed.push(...state.tags);
        }
      };

      const reader = slowReader(readingClient, async () => {
        for (let steps = random.below(4); steps > 0; steps--) await step();
      });
      const seen = new Set<string>();
      let { cursor } = await readPostgresChanges(reader, undefined, 3);
      // A reader returns no changes from before its start.
      const unread = committed.length;
      const check = async () => {
        const due = committed.slice(unread);
        for (let hasMore = true; hasMore; ) {
          const changes = await readPostgresChanges(reader, cursor, 3);
          assert(!changes.isLost, `seed ${seed}: mistaken for another server`);
          for (const { tags } of changes.rows) seen.add(tags[0]!);
          ({ cursor, hasMore } = changes);
          reads++;
          rows += changes.rows.length;
        }
        for (const tag of due)
          assert(seen.has(tag), `SEED=${seed}: ${tag} was committed before the read and is missing`);
        assert(!seen.has("undone"));
      };
      for (let steps = 0; steps < STEPS; steps++) {
        await step();
        if (random.below(6) === 0) await check();
      }
      for (const state of states.filter(({ open }) => open)) {
        await state.client.query("commit");
        state.open = false;
        committed.push(...state.tags);
      }
      await check();
      for (const state of states.filter(({ open }) => open)) await state.client.query("rollback");
    }
    t.diagnostic(`${SEEDS} seeds, ${reads} reads, ${rows} rows`);
  });

  it("is not blocked by a long transaction", async (t) => {
    const long = await connect();
    await long.query("begin isolation level repeatable read");
    await long.query("create table long_one (a int)");
    let { cursor } = await read();
    for (let i = 0; i < 3; i++) {
      await invalidate(`${i}`);
      const changes = await read(cursor);
      assert.deepEqual(
        changes.rows.map(({ tags }) => tags),
        [[`${i}`]],
      );
      cursor = changes.cursor;
    }
    await long.query("rollback");
    t.diagnostic("every read returned only its own row while a transaction of another kind stayed open");
  });

  it("returns rows above a writer that is frozen, and the rows of that writer after its commit", async () => {
    const frozen = await connect();
    const { cursor } = await read();
    await frozen.query("begin");
    await frozen.query("insert into changes (tags, created_at) values ('[\"frozen\"]', 0)");
    await invalidate("later");
    const first = await read(cursor);
    assert.deepEqual(
      first.rows.map(({ tags }) => tags[0]),
      ["later"],
    );
    await frozen.query("commit");
    const second = await read(first.cursor);
    assert.deepEqual(
      second.rows.map(({ tags }) => tags[0]),
      ["frozen", "later"],
    );
    assert.deepEqual((await read(second.cursor)).rows, []);
  });
});

describe("a cursor", () => {
  const admin = (statement: string) => store.transact("run", ({ db }) => sqlOf(db, statement)) as Promise<unknown>;
  const sqlOf = async (_: unknown, statement: string) => {
    const client = await connect();
    await client.query(statement);
  };
  /** Whether a cursor from before `happens` is rejected as another server's afterwards. */
  const isLostBy = async (...happens: string[]) => {
    await invalidate("before");
    const { cursor } = await read();
    for (const statement of happens) await admin(statement);
    const changes = await read(cursor);
    const { isLost } = await read(changes.cursor);
    assert.equal(isLost, false, "the new cursor fits");
    return changes.isLost;
  };

  it("is rejected after the newest row was lost, after its number was reused, and after numbers went back", async () => {
    const newest = "(select max(sequence) from changes)";
    assert.equal(await isLostBy("select 1"), false);
    assert.equal(await isLostBy(`delete from changes where sequence = ${newest}`), true);
    assert.equal(await isLostBy(`update changes set nonce = gen_random_uuid() where sequence = ${newest}`), true);
    await invalidate("one more");
    const { cursor } = await read();
    await admin("select setval('changes_sequence_seq', 1)");
    assert.equal((await read(cursor)).isLost, true);
    await admin(`select setval('changes_sequence_seq', ${newest})`);
    assert.equal((await read(cursor)).isLost, false);
  });

  it("of an idle database survives the pruning of all rows that it has read", async () => {
    const { cursor } = await read();
    await invalidate("a");
    await invalidate("b");
    const changes = await read(cursor);
    await admin("update changes set created_at = 0");
    await store.transact("run", (sql: Sql) => pruneChanges(sql, instantAt(systemClock.now() - CHANGES_RETENTION), 100));
    assert.equal((await read(changes.cursor)).isLost, false);
    const left = (await store.read("run", ({ db }: Sql) =>
      db.selectFrom("changes").select("tags").execute(),
    )) as object[];
    assert.deepEqual(left, [{ tags: '["b"]' }]);
  });

  it("works for a role without access to the timeline", async (t) => {
    const role = `limited_${Math.trunc(systemClock.monotonic() * 1000)}`;
    await admin(`create role ${role} login`);
    await admin(`grant select on changes, changes_sequence_seq to ${role}`);
    await admin("revoke execute on function pg_control_system() from public");
    const url = new URL(database.url);
    url.username = role;
    const limited = await openPostgresStore({ url: url.href, clock: systemClock, allowUnsafe: true }, direct);
    t.after(async () => {
      await limited.close();
      await admin("grant execute on function pg_control_system() to public");
      await admin(`drop owned by ${role}`);
      await admin(`drop role ${role}`);
    });
    const readLimited = (cursor?: ChangesCursor) =>
      limited.read("run", (sql: Sql) => sql.dialect.readChanges(sql, cursor)) as Promise<Changes>;
    const { cursor } = await readLimited();
    assert.match(JSON.parse(cursor).server, /^127\.0\.0\.1/);
    await invalidate("seen");
    const changes = await readLimited(cursor);
    assert.deepEqual([changes.isLost, changes.rows.map(({ tags }) => tags[0])], [false, ["seen"]]);
    const { cursor: ours } = await read();
    assert.match(JSON.parse(ours).server, /^\d+ [0-9A-F]{8}$/);
  });
});
