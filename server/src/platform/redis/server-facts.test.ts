import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertSuitable, readFacts, type ServerFacts, warningsAbout } from "./server-facts.ts";

const info =
  "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.0.1\r\n\r\n# Replication\r\nrole:master\r\n# Memory\r\n" +
  "maxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n# Cluster\r\ncluster_enabled:0\r\n";

describe("server facts", () => {
  it("are read from INFO", () => {
    const facts = readFacts(info);
    assert.deepEqual(facts, {
      version: "7.2.4",
      role: "master",
      mode: "standalone",
      maxmemoryPolicy: "noeviction",
      hasAppendOnlyFile: true,
    });
    assertSuitable(facts);
    assert.deepEqual(warningsAbout(facts), []);
  });

  it("reject an unsuitable Redis with a remedy", () => {
    const rejected: [Partial<ServerFacts>, RegExp][] = [
      [{ maxmemoryPolicy: "allkeys-lru" }, /allkeys-lru.*set maxmemory-policy to noeviction/],
      [{ role: "slave" }, /replica.*primary/],
      [{ mode: "cluster" }, /write redis\+cluster:\/\//],
      [{ mode: "sentinel" }, /write redis\+sentinel:\/\//],
      [{ version: "6.2.14" }, /too old/],
      [{ version: "" }, /too old/],
    ];
    for (const [difference, message] of rejected) {
      assert.throws(() => assertSuitable({ ...readFacts(info), ...difference }), { name: "RedisUnsuitable", message });
    }
  });

  it("reject a single Redis as a node of a cluster", () => {
    assert.throws(() => assertSuitable(readFacts(info), true), {
      name: "RedisUnsuitable",
      message: /write redis:\/\//,
    });
    assertSuitable(readFacts(info.replace("cluster_enabled:0", "cluster_enabled:1")), true);
  });

  it("are of a Sentinel", () => {
    assert.equal(readFacts("redis_version:7.0.15\r\nredis_mode:sentinel\r\n").mode, "sentinel");
  });

  it("warn about a Redis without an append-only file", () => {
    assert.match(warningsAbout({ ...readFacts(info), hasAppendOnlyFile: false })[0]!, /set appendonly to yes/);
  });
});
