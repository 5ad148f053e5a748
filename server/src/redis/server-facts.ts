import { OperatorError } from "../log/operator-error.ts";

/** What a Redis says about itself that decides whether it can count. */
export interface ServerFacts {
  /** Such as "7.0.15". Valkey tells the version of Redis that it is compatible with. */
  readonly version: string;
  readonly role: string;
  readonly isCluster: boolean;
  readonly maxmemoryPolicy: string;
  readonly hasAppendOnlyFile: boolean;
}

/** A Redis that must not be used for counting. The message says why and what would do. */
export class RedisUnsuitable extends OperatorError {
  override readonly name = "RedisUnsuitable";
}

/** Reads the reply to INFO. Managed services that forbid CONFIG answer it too. */
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

/** @throws {RedisUnsuitable} when counting there would break a promise. */
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

/** Sentences for the operator about what is allowed and weakens a promise. */
export function warningsAbout(facts: ServerFacts): string[] {
  return facts.hasAppendOnlyFile
    ? []
    : ["Redis has no append-only file and forgets counts when it restarts: set appendonly to yes"];
}
