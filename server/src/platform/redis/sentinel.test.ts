import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { eventually } from "../../../test/process.ts";
import { type SentinelGroup, startSentinels } from "../../../test/services/redis-groups.ts";
import { parseRedisAddress, type RedisAddress } from "./address.ts";
import { RedisConnection } from "./connection.ts";
import { Sentinels } from "./sentinel.ts";

describe("Sentinels", () => {
  let group: SentinelGroup;
  before(async () => {
    group = await startSentinels();
  });
  after(() => group?.stop());

  const opened: { close(): void }[] = [];
  after(() => {
    for (const one of opened) one.close();
  });

  function open(url: string): Sentinels {
    const sentinels = new Sentinels(parseRedisAddress(url) as RedisAddress & { kind: "sentinel" }, systemClock);
    opened.push(sentinels);
    return sentinels;
  }

  it("say where the primary is, also when one of them does not answer", async () => {
    const [primary] = group.members;
    assert.equal(await open(group.url).findPrimary(), primary!.url);
    // No server listens on port 1.
    const sentinels = open(group.url.replace("://", "://127.0.0.1:1,").replace("://", "://"));
    assert.equal(await sentinels.findPrimary(), primary!.url);
    assert.equal(await sentinels.findPrimary(), primary!.url);
  });

  it("reject with a remedy when the name or the servers are wrong", async () => {
    await assert.rejects(open(group.url.replace("/counters", "/other")).findPrimary(), {
      name: "RedisUnsuitable",
      message: /no Sentinel knows a primary with the name other: give the name/,
    });
    const { name } = group.members[0]!;
    await assert.rejects(open(`redis+sentinel://${name}/counters`).findPrimary(), {
      name: "RedisUnsuitable",
      message: new RegExp(`${name} is not a Sentinel: .*write redis://`),
    });
    await assert.rejects(open("redis+sentinel://127.0.0.1:1/counters").findPrimary(), { code: "ECONNREFUSED" });
  });

  it("move a connection to the server that they promote", async () => {
    const sentinels = open(group.url);
    const events: string[] = [];
    const connection = await RedisConnection.open({
      url: () => sentinels.findPrimary(),
      clock: systemClock,
      timeout: 1_000,
      scripts: { write: "return redis.call('SET', KEYS[1], ARGV[1])" },
      onOutage: (_, server) => events.push(`away ${server}`),
      onBack: (_, server) => events.push(`back ${server}`),
    });
    opened.push(connection);
    const [old, next] = group.members;
    assert.deepEqual(connection.servers, [{ name: old!.name, hasOutage: false }]);
    // The old primary goes on, so the connection to it does not break by itself.
    await group.sentinels[0]!.send("SENTINEL", "FAILOVER", "counters");
    await eventually("the new primary", () => connection.servers[0]!.name === next!.name && !connection.hasOutage);
    assert.equal(await connection.run("write", ["key"], ["value"]), "OK");
    assert.equal(await next!.send("GET", "key"), "value");
    assert.deepEqual(events, [`away ${old!.name}`, `back ${next!.name}`]);
    // And back again after a crash, once the demoted server has the data.
    await eventually(
      "a replica",
      async () => ((await old!.send("ROLE").catch(() => [])) as unknown[])[3] === "connected",
    );
    await eventually("an end of the failover", async () => {
      const replies = await Promise.all(
        group.sentinels.map((one) => one.send("SENTINEL", "MASTER", "counters") as Promise<string[]>),
      );
      return replies.every((fields) => fields.includes(String(next!.port)) && fields.includes("master"));
    });
    next!.signal("SIGKILL");
    await eventually("the first primary", () => connection.servers[0]!.name === old!.name && !connection.hasOutage);
    assert.equal(await connection.send(["GET", "key"]), "value");
  });
});
