/**
 * Two processes with independent counts of one limit never run side by side: each pair either shares its counters, or the second
 * process ends with an error of one line. Real processes, each pair on fresh databases.
 */
import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { Client } from "pg";
import { eventually, launch, makeFolder, type Server, start } from "../process.ts";
import { freshDatabase } from "../services/postgres.ts";
import { startRedis } from "../services/redis.ts";
import type { Service } from "../services/service.ts";
import { TcpProxy } from "../tcp-proxy.ts";

const LIMIT = 10;

/** Calls a fresh limit of 10 thirty times through each of these services; returns the number of admissions. */
async function admitted(services: readonly Server[], identifier: string): Promise<number> {
  const calls = services.flatMap((server) =>
    Array.from({ length: 30 }, () =>
      server.call("ratelimits.limit", { namespace: "two", identifier, limit: LIMIT, duration: 3_600_000 }),
    ),
  );
  return (await Promise.all(calls)).filter(({ status, body }) => status === 200 && body.data.success).length;
}

describe("two processes", () => {
  let redis: Service;
  let otherRedis: Service;
  before(async () => {
    [redis, otherRedis] = await Promise.all([startRedis(), startRedis()]);
  });
  after(() => Promise.all([redis.stop(), otherRedis.stop()]));

  const redisOf = (kind: string): Record<string, string> =>
    kind === "none" ? {} : { REDIS_URL: kind === "redis" ? redis.url : otherRedis.url };

  async function pair(t: TestContext, first: Record<string, string>, second: Record<string, string>) {
    const directory = makeFolder(t);
    const one = await start({ directory, settings: first });
    const two = launch({ directory, settings: second });
    const listens = await Promise.race([two.logged("latchkey is listening"), two.ended.then(() => undefined)]).catch(
      () => undefined,
    );
    const total = listens === undefined ? await admitted([one], "pair") : undefined;
    if (listens !== undefined) two.address = listens.address as string;
    const admittedByBoth = total ?? (await admitted([one, two], "pair"));
    return { one, two, isRejected: listens === undefined, admittedByBoth };
  }

  const combinations = [
    ["none", "none"],
    ["none", "redis"],
    ["redis", "none"],
    ["redis", "redis"],
    ["redis", "other"],
  ] as const;
  for (const [a, b] of combinations) {
    for (const folder of ["same", "other"]) {
      it(`on PostgreSQL, ${a} beside ${b}, ${folder} data folder`, async (t) => {
        const database = await freshDatabase();
        t.after(() => database.drop());
        const folders = join(makeFolder(t), "data");
        const settings = (kind: string, name: string) => ({
          DATABASE_URL: database.url,
          DATA_DIR: folders + name,
          ...redisOf(kind),
        });
        const { two, isRejected, admittedByBoth } = await pair(
          t,
          settings(a, "1"),
          settings(b, folder === "same" ? "1" : "2"),
        );
        t.diagnostic(
          `${isRejected ? "rejected" : "together"}, admitted ÷ limit = ${(admittedByBoth / LIMIT).toFixed(2)}`,
        );
        assert.equal(isRejected, folder === "same" || a !== b || a === "none", two.output);
        assert(admittedByBoth <= LIMIT, `${admittedByBoth} of ${LIMIT}`);
        if (isRejected) assertRejected(two, folder === "same" ? /data folder/ : /each would count limits for itself/);
      });
    }
  }

  for (const [a, b] of combinations) {
    for (const path of a === b ? ["same path", "link"] : ["same path"]) {
      it(`on one SQLite file, ${a} beside ${b}, ${path}`, async (t) => {
        const folder = makeFolder(t);
        const file = join(folder, "shared.db");
        const link = join(folder, "link.db");
        if (path === "link") symlinkSync(file, link);
        const { two, isRejected } = await pair(
          t,
          { DATABASE_URL: `sqlite:${file}`, DATA_DIR: join(folder, "1"), ...redisOf(a) },
          {
            DATABASE_URL: `sqlite:${path === "link" ? link : file}`,
            DATA_DIR: join(folder, "2"),
            ...redisOf(b),
          },
        );
        assert(isRejected, two.output);
        assertRejected(two, /embedded database/);
      });
    }
  }

  it("on the embedded database in one data folder: the second one is rejected", async (t) => {
    const { two, isRejected } = await pair(t, {}, {});
    assert(isRejected);
    assertRejected(two, /LATCHKEY_DATA_DIR=.*: another Latchkey serves from this data folder/);
  });

  it("of which the first loses its connection: it regains the claim before the second one starts", async (t) => {
    const database = await freshDatabase();
    const directory = makeFolder(t);
    const settings = (name: string) => ({ DATABASE_URL: database.url, DATA_DIR: join(directory, name) });
    const one = await start({ directory, settings: settings("1") });
    assert.equal(await admitted([one], "claim"), LIMIT);
    const client = new Client({ connectionString: database.url });
    client.on("error", () => {});
    await client.connect();
    t.after(async () => {
      await client.end();
      await database.drop();
    });
    let others = 0;
    for (let round = 0; round < 3; round++) {
      const two = launch({ directory, settings: settings("2") });
      await client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'latchkey-claim%'",
      );
      await Promise.race([two.ended, two.logged("latchkey is listening").catch(() => {})]);
      if (!two.hasEnded) {
        two.address = (await two.logged("latchkey is listening")).address as string;
        // It got the lock first and serves, but counts nothing before the holder had time to notice.
        others += await admitted([two], "claim");
        await two.ended;
      }
      assert.match(two.stderr, /each would count limits for itself/);
    }
    t.diagnostic(
      `3 connections ended: ${others} admitted by the second process, ${await admitted([one], "claim")} again by the first`,
    );
    assert.equal(others, 0);
    assert.equal(await admitted([one], "claim"), 0, "the exhausted limit stays exhausted");
    assert.equal(await admitted([one], "fresh"), LIMIT, "the holder continues to count");
  });

  it("of which the first is cut off: it stops counting before the second one begins", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const proxy = await TcpProxy.open(database.url);
    t.after(() => proxy.close());
    const directory = makeFolder(t);
    // A node counts for this long without its claim, and its successor waits for this long.
    const settings = (name: string, url: string) => ({
      DATABASE_URL: url,
      DATA_DIR: join(directory, name),
      STALE_MAX: "3s",
    });
    const one = await start({ directory, settings: settings("1", proxy.url) });
    assert.equal(await admitted([one], "before"), LIMIT);
    proxy.isClosed = true;
    proxy.cut();
    const two = await start({ directory, settings: settings("2", database.url) });
    let total = 0;
    let overlap = 0;
    await eventually("the second one to count", async () => {
      const [first, second] = [await admitted([one], "cut off"), await admitted([two], "cut off")];
      if (second > 0 && first > 0) overlap++;
      total += first + second;
      return second > 0;
    });
    t.diagnostic(`cut-off holder and its successor: admitted ${total} of 2 × ${LIMIT}, overlap ${overlap}`);
    assert.equal(await admitted([one], "after"), 0, "the former holder counts nothing");
    assert.equal(overlap, 0);
    proxy.isClosed = false;
    assert.deepEqual(await one.ended, { code: 1, signal: null });
    assert.match(one.stderr, /^latchkey: .*each would count limits for itself/);
    assert.equal(await admitted([two], "after"), LIMIT);
  });

  it("of which the first was killed: the second one starts at once on the same data folder", async (t) => {
    const database = await freshDatabase();
    t.after(() => database.drop());
    const directory = makeFolder(t);
    const settings = { DATABASE_URL: database.url };
    const one = await start({ directory, settings });
    await admitted([one], "killed");
    await one.kill("SIGKILL");
    const two = await start({ directory, settings });
    assert.equal(await admitted([two], "next"), LIMIT);
    await two.kill("SIGTERM");
    const three = await start({ directory, settings: { ...settings, DATA_DIR: join(directory, "elsewhere") } });
    assert.equal(await admitted([three], "third"), LIMIT, "a clean stop releases the claim");
  });
});

/** Asserts that the process ended with 1 and one line that gives the reason. */
function assertRejected(server: Server, reason: RegExp): void {
  assert.match(server.stderr, reason);
  assert.match(server.stderr, /^latchkey: [^\n]*\n$/, "one line");
}
