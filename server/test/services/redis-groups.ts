/** Several servers of Redis or Valkey that belong together: a cluster, or a primary and a replica with Sentinels. */
import { execFile } from "node:child_process";
import { chownSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "@redis/client";
import { eventually } from "../process.ts";
import { freePort } from "./free-port.ts";
import { findRedis, startRedis } from "./redis.ts";
import { findFolder, makeDirectory, type Service, startService, unprivilegedAccount } from "./service.ts";

/** A server of a group. */
export interface Member {
  /** redis://host:port */
  readonly url: string;
  /** host:port */
  readonly name: string;
  readonly port: number;
  /** Sends a command and returns its reply. */
  send(...command: (string | number)[]): Promise<unknown>;
  /** Sends a signal to its process, such as SIGKILL or SIGSTOP. */
  signal(signal: NodeJS.Signals): void;
}

/** A cluster of six servers: three primaries, then a replica of each. */
export interface RedisCluster {
  /** redis+cluster:// with three of its servers. */
  readonly url: string;
  readonly members: readonly Member[];
  /** The primaries at present, by their slots. */
  primaries(): Promise<Member[]>;
  /** Runs `redis-cli --cluster`, and returns its output. */
  manage(...args: string[]): Promise<string>;
  /** Resolves when all servers agree that all slots are served. */
  untilServed(): Promise<void>;
  /** Sets how long a primary must be silent until its replica takes over, in milliseconds. It is a second at first. */
  failOverAfter(ms: number): Promise<void>;
  stop(): Promise<void>;
}

export interface SentinelGroup {
  /** redis+sentinel:// with three Sentinels. */
  readonly url: string;
  /** The server that is the primary at first, then its replica. */
  readonly members: readonly Member[];
  readonly sentinels: readonly Member[];
  /** The primary by its Sentinels. */
  primary(): Promise<Member>;
  stop(): Promise<void>;
}

const NODE_TIMEOUT_MS = 1_000;

export async function startRedisCluster(): Promise<RedisCluster> {
  const started: Started[] = [];
  for (let i = 0; i < 6; i++) {
    // The default, the port and 10,000, can be too large.
    const settings = {
      "cluster-enabled": "yes",
      "cluster-port": String(await freePort()),
      "cluster-node-timeout": String(NODE_TIMEOUT_MS),
      // The others go on without a primary that is lost.
      "cluster-require-full-coverage": "no",
      // A replica takes over however late its last news of the primary is on a busy machine.
      "cluster-replica-validity-factor": "0",
      "repl-diskless-sync-delay": "0",
    };
    started.push(await openMember(await startRedis(settings)));
  }
  const members = started.map(({ member }) => member);
  const manage = async (...args: string[]) => (await promisify(execFile)(commandLine(), ["--cluster", ...args])).stdout;
  await manage("create", ...members.map(({ name }) => name), "--cluster-replicas", "1", "--cluster-yes");
  const cluster: RedisCluster = {
    url: `redis+cluster://${members
      .slice(0, 3)
      .map(({ name }) => name)
      .join(",")}`,
    members,
    manage,
    async primaries() {
      for (const member of members) {
        const slots = await member.send("CLUSTER", "SLOTS").catch(() => undefined);
        if (slots === undefined) continue;
        const ports = (slots as [number, number, [string, number]][]).map(([, , [, port]]) => port);
        return [...new Set(ports)].map((port) => members.find((one) => one.port === port)!);
      }
      throw new Error("No server of the cluster answers.");
    },
    async untilServed() {
      await eventually("a cluster that serves all slots", async () => {
        const infos = await Promise.all(members.map((member) => member.send("CLUSTER", "INFO").catch(() => "")));
        return infos.every((info) => info === "" || String(info).includes("cluster_state:ok"));
      });
    },
    async failOverAfter(ms) {
      await Promise.all(members.map((member) => member.send("CONFIG", "SET", "cluster-node-timeout", ms)));
    },
    stop: () => stopAll(started),
  };
  await cluster.untilServed();
  // Until it has loaded the data of its primary, a replica cannot take over.
  await eventually("replicas", async () => {
    const roles = await Promise.all(members.map(async (member) => (await member.send("ROLE")) as unknown[]));
    const replicas = roles.filter(([role]) => role === "slave");
    return replicas.length === 3 && replicas.every((role) => role[3] === "connected");
  });
  return cluster;
}

/** `replicaEnvironment`: additional variables of the replica. */
export async function startSentinels(replicaEnvironment: Record<string, string> = {}): Promise<SentinelGroup> {
  const primaryName = "counters";
  const primary = await openMember(await startRedis({ "repl-diskless-sync-delay": "0" }));
  const { port } = primary.member;
  const replica = await openMember(
    await startRedis({ replicaof: `127.0.0.1 ${port}`, "repl-diskless-sync-delay": "0" }, replicaEnvironment),
  );
  const servers = [primary, replica];
  await eventually("a replica", async () => ((await replica.member.send("ROLE")) as unknown[])[3] === "connected");
  const sentinels: Started[] = [];
  for (let i = 0; i < 3; i++) sentinels.push(await openMember(await startSentinel(primaryName, port)));
  const members = servers.map(({ member }) => member);
  const watching = sentinels.map(({ member }) => member);
  await eventually("Sentinels that know each other", async () => {
    const replies = await Promise.all(watching.map((one) => one.send("SENTINEL", "MASTER", primaryName)));
    return (replies as string[][]).every((fields) => {
      const field = (name: string) => fields[fields.indexOf(name) + 1];
      return field("num-other-sentinels") === "2" && field("num-slaves") === "1";
    });
  });
  return {
    url: `redis+sentinel://${watching.map(({ name }) => name).join(",")}/${primaryName}`,
    members,
    sentinels: watching,
    async primary() {
      const [, found] = (await watching[0]!.send("SENTINEL", "GET-MASTER-ADDR-BY-NAME", primaryName)) as string[];
      return members.find((member) => member.port === Number(found))!;
    },
    stop: () => stopAll([...sentinels, ...servers]),
  };
}

interface Started {
  readonly member: Member;
  stop(): Promise<void>;
}

function startSentinel(primaryName: string, primaryPort: number): Promise<Service> {
  const account = unprivilegedAccount("redis");
  return startService(
    (port) => {
      const directory = makeDirectory("sentinel", account);
      // A Sentinel writes what it learns to its configuration.
      const file = join(directory, "sentinel.conf");
      const lines = [
        `port ${port}`,
        "bind 127.0.0.1",
        `dir ${directory}`,
        `sentinel monitor ${primaryName} 127.0.0.1 ${primaryPort} 2`,
        `sentinel down-after-milliseconds ${primaryName} ${NODE_TIMEOUT_MS}`,
        `sentinel failover-timeout ${primaryName} 5000`,
      ];
      writeFileSync(file, lines.join("\n"));
      if (account) chownSync(file, account.uid, account.gid);
      return { program: findRedis()!, args: [file, "--sentinel"], directory, account, stopSignal: "SIGTERM" };
    },
    /\+monitor master/,
    (port) => `redis://127.0.0.1:${port}`,
  );
}

async function openMember(service: Service): Promise<Started> {
  const { host, port } = new URL(service.url);
  const client = createClient({ url: service.url, RESP: 2, disableOfflineQueue: true });
  client.on("error", () => {});
  await client.connect();
  const [, pid] = /process_id:(\d+)/.exec(await client.info("server"))!;
  const signal = (which: NodeJS.Signals) => void process.kill(Number(pid), which);
  return {
    member: {
      url: service.url,
      name: host,
      port: Number(port),
      send: (...command) => client.sendCommand(command.map(String)),
      signal,
    },
    stop() {
      client.destroy();
      try {
        // A stopped process does not handle the signal that ends it.
        signal("SIGCONT");
      } catch {
        // It has ended.
      }
      return service.stop();
    },
  };
}

async function stopAll(started: readonly Started[]): Promise<void> {
  await Promise.all(started.map((one) => one.stop()));
}

/** `redis-cli` or `valkey-cli`; both manage servers of the other kind. */
function commandLine(): string {
  const beside = dirname(findRedis()!);
  for (const name of ["redis-cli", "valkey-cli"]) {
    const folder = findFolder([name], [beside]);
    if (folder) return join(folder, name);
  }
  throw new Error("The tests need redis-cli or valkey-cli (Debian and Ubuntu: `apt-get install redis-tools`).");
}
