import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { ErrorReply } from "@redis/client";
import { SimulatedClock } from "../../../../engine/src/clock/simulated.ts";
import { eventually, eventuallyWith } from "../../../test/process.ts";
import { useProxiedRedis } from "../../../test/services/proxied-redis.ts";
import { startRedis } from "../../../test/services/redis.ts";
import type { Service } from "../../../test/services/service.ts";
import { TcpProxy } from "../../../test/tcp-proxy.ts";
import { isPermanentFailure, RedisConnection, type RedisOptions, RedisOutage } from "./connection.ts";

const scripts = { echo: "return ARGV[1]" };

describe("isPermanentFailure", () => {
  it("is for what only the operator can repair", () => {
    const isPermanent = (message: string) => isPermanentFailure(new ErrorReply(message));
    assert.equal(isPermanent("WRONGPASS invalid username-password pair or user is disabled."), true);
    for (const message of ["LOADING Redis is loading", "CLUSTERDOWN The cluster is down", "MOVED 7 a:1"]) {
      assert.equal(isPermanent(message), false, message);
    }
    assert.equal(isPermanentFailure(new Error("ECONNREFUSED")), false);
  });
});

describe("RedisConnection", () => {
  let server: Service;
  let proxy: TcpProxy;
  const opened = useProxiedRedis((redis) => {
    ({ server, proxy } = redis);
  });

  async function open(options: Partial<RedisOptions> = {}) {
    const clock = new SimulatedClock(0);
    const events: string[] = [];
    let notify = () => {};
    const receive = (what: string) => {
      events.push(what);
      notify();
    };
    const connection = await RedisConnection.open({
      url: proxy.url,
      clock,
      timeout: 250,
      scripts,
      onOutage: (cause) => receive(`away: ${(cause as Error).message}`),
      onBack: (outageLength) => receive(`back after ${outageLength}`),
      ...options,
    });
    opened.push(connection);
    /** Resolves after `count` events. Meanwhile `clock` advances by `step` per turn of the loop. */
    const untilEvents = async (count: number, step = 0) => {
      while (events.length < count) {
        if (step === 0) {
          await new Promise<void>((resolve) => {
            notify = resolve;
          });
        } else await turns(1, step);
      }
    };
    /** Runs `count` turns of the loop, and advances the clock by `step` ms in each. */
    const turns = async (count: number, step: number) => {
      for (let i = 0; i < count; i++) {
        clock.advance(step);
        await setImmediate();
      }
    };
    return { connection, clock, events, untilEvents, turns };
  }

  it("rejects a Redis that may evict counters", async () => {
    const evicting = await startRedis({ "maxmemory-policy": "allkeys-lru" });
    await assert.rejects(open({ url: evicting.url }), { name: "RedisUnsuitable", message: /is allkeys-lru/ });
    await evicting.stop();
  });

  it("warns about a Redis without an append-only file", async () => {
    assert.match((await open()).connection.warnings.join(), /append-only/);
    const lasting = await startRedis({ appendonly: "yes" });
    assert.deepEqual((await open({ url: lasting.url })).connection.warnings, []);
    await lasting.stop();
  });

  it("rejects when the connection is refused", async () => {
    const gone = await TcpProxy.open(server.url);
    const { url } = gone;
    await gone.close();
    await assert.rejects(open({ url }), { code: "ECONNREFUSED" });
  });

  it("waits for a late reply without an outage", async () => {
    const { connection, clock, events } = await open();
    proxy.stall();
    const stalled = proxy.heldBack();
    const replies = ["a", "b"].map((text) => connection.run("echo", [], [text]));
    await stalled;
    clock.advance(249);
    await setImmediate();
    proxy.resume();
    assert.deepEqual(await Promise.all(replies), ["a", "b"]);
    clock.advance(10_000);
    await setImmediate();
    assert.equal(await connection.run("echo", [], ["c"]), "c");
    assert.deepEqual(events, []);
  });

  it("does not mistake its own blocked event loop for an outage", async () => {
    const { connection, clock, events } = await open({ url: server.url });
    const reply = connection.send(["BLPOP", "woken", "0"]);
    for (let turn = 0; turn < 3; turn++) await setImmediate();
    // The reply arrives while this process is blocked.
    const { hostname, port } = new URL(server.url);
    const push = `const socket = require("node:net").connect(${port}, "${hostname}", () => socket.write("RPUSH woken a\\r\\n"));
      socket.on("data", () => process.exit());`;
    execFileSync(process.execPath, ["-e", push]);
    clock.advance(1_000);
    assert.deepEqual(await reply, ["woken", "a"]);
    assert.deepEqual(events, []);
  });

  it("measures the timeout from the last reply to any command", async () => {
    const { connection, events, untilEvents, turns } = await open();
    const stall = () => {
      proxy.stall();
      return proxy.heldBack();
    };
    const stalled = stall();
    const first = connection.send(["PING"]);
    await stalled;
    await turns(24, 10);
    proxy.resume();
    await first;
    const stalledAgain = stall();
    const second = assert.rejects(connection.send(["PING"]), RedisOutage);
    await stalledAgain;
    await turns(24, 10);
    assert.deepEqual(events, []);
    await untilEvents(1, 10);
    await second;
  });

  it("counts little of the time in which this process was late", async () => {
    const { connection, clock, events, untilEvents, turns } = await open();
    proxy.stall();
    const stalled = proxy.heldBack();
    const first = assert.rejects(connection.send(["PING"]), RedisOutage);
    await stalled;
    await turns(10, 100);
    assert.deepEqual(events, []);
    assert.equal(connection.deadline() > connection.time.earliest(clock.monotonic()), true);
    // An overloaded process detects a dead Redis too.
    await untilEvents(1, 100);
    await first;
    assert.ok(clock.monotonic() < 10_000, `${clock.monotonic()}`);
  });

  it("replaces a dead connection without an outage", async () => {
    const { connection, events, turns } = await open();
    proxy.filter = (bytes) => (bytes.includes("into the void") ? "drop" : "pass");
    let isRejected = false;
    const lost = assert.rejects(connection.send(["ECHO", "into the void"]), RedisOutage).then(() => {
      isRejected = true;
    });
    // The second connection is opened after half the timeout, and is real.
    await turns(150, 1);
    await eventually("the second connection", () => isRejected);
    await lost;
    proxy.filter = () => "pass";
    assert.equal(connection.hasOutage, false);
    assert.equal(await connection.run("echo", [], ["a"]), "a");
    assert.deepEqual(events, []);
  });

  it("becomes away after the timeout, then rejects commands at once until a probe succeeds", async () => {
    const { connection, clock, events, untilEvents, turns } = await open();
    proxy.stall();
    const stalled = proxy.heldBack();
    const waiting = connection.send(["PING"]);
    const outcome = assert.rejects(waiting, RedisOutage);
    await stalled;
    await untilEvents(1, 10);
    await outcome;
    assert.equal(connection.hasOutage, true);
    assert.equal(connection.outages, 1);
    await assert.rejects(connection.send(["PING"]), RedisOutage);
    await assert.rejects(connection.run("echo", [], []), RedisOutage);
    // Probes get no reply either.
    await turns(20, 100);
    assert.equal(connection.hasOutage, true);
    proxy.resume();
    await eventuallyWith(clock, "the return", () => events.length === 2);
    assert.equal(await connection.run("echo", [], ["a"]), "a");
    assert.match(events[0]!, /^away: Redis sent no reply for 250 ms$/);
    assert.match(events[1]!, /^back after \d+/);
    assert.equal(events.length, 2);
  });

  it("becomes away at once when the connection is lost", async () => {
    const { connection, clock, events, untilEvents } = await open();
    proxy.isClosed = true;
    proxy.cut();
    await untilEvents(1);
    assert.equal(connection.hasOutage, true);
    proxy.isClosed = false;
    await eventuallyWith(clock, "the return", () => events.length === 2);
    assert.equal(connection.hasOutage, false);
    assert.match(events[0]!, /^away: /);
  });

  it("stays away while Redis cannot write", async () => {
    const { connection, clock, events, turns } = await open();
    const other = await open({ url: server.url });
    await other.connection.send(["CONFIG", "SET", "maxmemory", "1"]);
    connection.reportOutage(new Error("OOM"));
    await turns(200, 10);
    assert.equal(connection.hasOutage, true);
    await other.connection.send(["CONFIG", "SET", "maxmemory", "0"]);
    await eventuallyWith(clock, "the return", () => events.length === 2);
    assert.equal(connection.hasOutage, false);
  });

  it("runs scripts after SCRIPT FLUSH", async () => {
    const { connection } = await open();
    await connection.send(["SCRIPT", "FLUSH"]);
    assert.equal(await connection.run("echo", [], ["a"]), "a");
    assert.equal(await connection.run("echo", [], ["b"]), "b");
  });
});
