import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { endpointOf, InvalidRedisAddress, parseRedisAddress, urlOf } from "./address.ts";

describe("parseRedisAddress", () => {
  it("reads one server", () => {
    const url = "rediss://user:password@host:6380/2";
    assert.deepEqual(parseRedisAddress(url), { kind: "single", url });
  });

  it("reads the seeds of a cluster", () => {
    assert.deepEqual(parseRedisAddress("rediss+cluster://me:p%40ss@a:7000,[::1]:7001,c"), {
      kind: "cluster",
      seeds: [
        { host: "a", port: 7000 },
        { host: "[::1]", port: 7001 },
        { host: "c", port: 6379 },
      ],
      login: { protocol: "rediss", userinfo: "me:p%40ss" },
    });
  });

  it("reads the Sentinels, the name of their primary, and both passwords", () => {
    assert.deepEqual(parseRedisAddress("redis+sentinel://:secret@a:1,b/my%20primary?sentinelPassword=other@"), {
      kind: "sentinel",
      sentinels: [
        { host: "a", port: 1 },
        { host: "b", port: 26379 },
      ],
      primaryName: "my primary",
      login: { protocol: "redis", userinfo: ":secret" },
      sentinelLogin: { protocol: "redis", userinfo: ":other%40" },
    });
  });

  it("rejects other addresses with an example, and without the address", () => {
    const hosts = (count: number) => Array.from({ length: count }, (_, i) => `h${i}`).join(",");
    for (const [given, message] of [
      ["http://secret", /redis:\/\//],
      ["redis", /redis:\/\//],
      ["redis+cluster://", /redis\+cluster:\/\//],
      ["redis+cluster://secret:x", /redis\+cluster:\/\//],
      ["redis+cluster://secret/1", /without anything after the last port/],
      [`redis+cluster://${hosts(33)}`, /at most 32/],
      ["redis+sentinel://secret", /name-of-the-primary/],
      ["redis+sentinel://secret/%", /name-of-the-primary/],
      ["redis+sentinel://secret/name?db=1", /sentinelPassword/],
    ] as const) {
      assert.throws(
        () => parseRedisAddress(given),
        (error: unknown) =>
          error instanceof InvalidRedisAddress && message.test(error.message) && !error.message.includes("secret"),
        given,
      );
    }
  });
});

describe("addresses of servers", () => {
  it("become URLs with the login", () => {
    const login = { protocol: "rediss", userinfo: "u:p" } as const;
    assert.equal(urlOf({ host: "a", port: 1 }, login), "rediss://u:p@a:1");
    assert.equal(urlOf(endpointOf("::1", 2, { host: "a", port: 1 }), { ...login, userinfo: "" }), "rediss://[::1]:2");
  });

  it("are completed by the server that sent them", () => {
    assert.deepEqual(endpointOf("", 2, { host: "a", port: 1 }), { host: "a", port: 2 });
  });
});
