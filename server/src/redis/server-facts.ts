import { OperatorError } from "../log/operator-error.ts";

/** The facts about a Redis that decide whether it is suitable for counters. */
export interface ServerFacts {
  /** Such as "7.0.15". Valkey reports the version of Redis that it is compatible with. */
  readonly version: string;
  readonly role: string;
  readonly isCluster: boolean;
  readonly maxmemoryPolicy: string;
  readonly hasAppendOnlyFile: boolean;
}

/** This Redis is not suitable for counters. The message gives the reason and the remedy. */
export class RedisUnsuitable extends OperatorError {
  override readonly name = "RedisUnsuitable";
}

/** Parses the reply to INFO, which is available on managed services without CONFIG too. */
export function readFacts(info: string): ServerFacts {
  const fields = new Map(
    info.split("\r\n").map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1)];
    }),
  );
  return {
    version: fields.get("redis_version") ?? "",
    role: fields.get("role") ?? "",
    isCluster: fields.get("cluster_enabled") === "1",
    maxmemoryPolicy: fields.get("maxmemory_policy") ?? "",
    hasAppendOnlyFile: fields.get("aof_enabled") === "1",
  };
}

/** @throws {RedisUnsuitable} if counters could be lost or wrong there. */
export function assertSuitable(facts: ServerFacts): void {
  if (!(Number.parseInt(facts.version, 10) >= 7)) {
    throw new RedisUnsuitable(
      `Redis ${facts.version || "of an unknown version"} is too old: use Redis 7 or Valkey 8, or newer`,
    );
  }
  if (facts.isCluster) {
    throw new RedisUnsuitable(
      "Redis runs as a cluster; Latchkey counts on one primary: give the address of a Redis without cluster mode",
    );
  }
  if (facts.role !== "master") {
    throw new RedisUnsuitable(
      `Redis is a ${facts.role === "slave" ? "replica" : facts.role}: give the address of the primary`,
    );
  }
  if (facts.maxmemoryPolicy !== "noeviction") {
    throw new RedisUnsuitable(
      `Redis may evict counters that still count (maxmemory-policy is ${facts.maxmemoryPolicy}): set maxmemory-policy to noeviction`,
    );
  }
}

/** Warnings for the operator about settings that weaken a guarantee. */
export function warningsAbout(facts: ServerFacts): string[] {
  return facts.hasAppendOnlyFile
    ? []
    : ["Redis has no append-only file and loses counts when it restarts: set appendonly to yes"];
}
