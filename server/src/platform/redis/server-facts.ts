import { OperatorError } from "../../log/operator-error.ts";

/** The facts about a Redis that decide whether it is suitable for counters. */
export interface ServerFacts {
  /** Such as "7.0.15". Valkey reports the version of Redis that it is compatible with. */
  readonly version: string;
  readonly role: string;
  readonly mode: "standalone" | "cluster" | "sentinel";
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
    mode: modeOf(fields),
    maxmemoryPolicy: fields.get("maxmemory_policy") ?? "",
    hasAppendOnlyFile: fields.get("aof_enabled") === "1",
  };
}

/** Managed services can leave out `redis_mode`, and Valkey has its own name for it. */
function modeOf(fields: ReadonlyMap<string, string>): ServerFacts["mode"] {
  if (fields.get("cluster_enabled") === "1") return "cluster";
  const mode = fields.get("redis_mode") ?? fields.get("server_mode");
  return mode === "sentinel" ? "sentinel" : "standalone";
}

/**
 * Checks a single Redis, or a node of a cluster.
 *
 * @throws {RedisUnsuitable} if counters could be lost or wrong there.
 */
export function assertSuitable(facts: ServerFacts, isClusterNode = false): void {
  if (facts.mode === "sentinel") {
    throw new RedisUnsuitable(
      "this server is a Sentinel: write redis+sentinel://host:port/name-of-the-primary instead of redis://",
    );
  }
  if (!(Number.parseInt(facts.version, 10) >= 7)) {
    throw new RedisUnsuitable(
      `Redis ${facts.version || "of an unknown version"} is too old: use Redis 7 or Valkey 8, or newer`,
    );
  }
  if (facts.mode === "cluster" && !isClusterNode) {
    throw new RedisUnsuitable(
      "this server is a node of a cluster: write redis+cluster://host:port,host:port with several of its nodes instead of redis://",
    );
  }
  if (facts.mode !== "cluster" && isClusterNode) {
    throw new RedisUnsuitable("this server is not a node of a cluster: write redis:// instead of redis+cluster://");
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
