import { execFileSync, spawn, spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { createClient } from "@redis/client";
import { Client as PostgresClient } from "pg";
import { launch, programFile, ROOT_KEY, Server } from "../process.ts";
import { fakeClock } from "../services/faketime.ts";
import { freePort } from "../services/free-port.ts";
import { startHaproxy } from "../services/haproxy.ts";
import { startPostgres } from "../services/postgres.ts";
import { startRedis } from "../services/redis.ts";
import { makeDirectory, type Service, unprivilegedAccount } from "../services/service.ts";
import { TcpProxy } from "../tcp-proxy.ts";
import { threadFaults } from "../workers/thread-faults.ts";
import type { Plant } from "./plants.ts";

export interface FleetOptions {
  nodes: number;
  /** `latchkey edge` processes. */
  edges: number;
  policy: "closed" | "local";
  /** `LATCHKEY_WORKERS` of the nodes. */
  workers: number;
  /** `LATCHKEY_STALE_MAX` in ms. */
  staleMaxMs: number;
  /** Disk for the database in MiB. */
  databaseMebibytes: number;
  /** Whether missing Debian packages that only some faults need are installed. */
  installs: boolean;
  plant?: Plant | undefined;
}

/** A process of the program. */
export interface FleetProgram {
  readonly index: number;
  readonly port: number;
  readonly directory: string;
  /** Undefined while it is down on purpose. */
  server: Server | undefined;
}

/** One node with its own way to each server. */
export interface FleetNode extends FleetProgram {
  readonly postgres: TcpProxy;
  readonly redis: TcpProxy;
}

/** An edge with its own way home: to one node, or to the load balancer if its number is odd. */
export interface FleetEdge extends FleetProgram {
  readonly home: TcpProxy;
  readonly rootKey: string;
}

const NODE_DISK_MEBIBYTES = 32;

/**
 * Nodes behind a load balancer, with one PostgreSQL and one Redis, and edges beside them. Each node and each edge reaches what it
 * needs through proxies of its own. Where this is possible, the nodes' data folders and the database are on small disks, and
 * the clocks of nodes and edges can be moved.
 */
export class Fleet {
  readonly nodes: FleetNode[] = [];
  readonly edges: FleetEdge[] = [];
  /** What is not possible on this machine, and why. */
  readonly missing: string[] = [];
  postgres!: Service;
  redis!: Service;
  balancer!: Service;
  /** Address of the service's database, without a proxy. */
  databaseUrl!: string;
  readonly #processes: { name: string; server: Server }[] = [];
  hasSmallDisks = false;
  hasMovableClocks = false;
  readonly #options: FleetOptions;
  readonly #folder = makeDirectory("chaos", undefined);
  readonly #undo: (() => unknown)[] = [];

  private constructor(options: FleetOptions) {
    this.#options = options;
  }

  static async open(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options);
    try {
      await fleet.#open();
      return fleet;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  /** Whether nodes have threads beside the main one. */
  get hasWorkers(): boolean {
    return this.#options.workers > 1;
  }

  get balancerPort(): number {
    return Number(new URL(this.balancer.url).port);
  }

  /** Starts a node that is down, and waits until it listens. */
  async startNode(index: number): Promise<void> {
    const node = this.nodes[index]!;
    const server = launch({
      directory: node.directory,
      // The last occurrence of a flag applies.
      args: ["--port", String(node.port)],
      settings: {
        ROOT_KEY,
        DATABASE_URL: node.postgres.url,
        REDIS_URL: node.redis.url,
        REDIS_POLICY: this.#options.policy,
        WORKERS: String(this.#options.workers),
        STALE_MAX: `${this.#options.staleMaxMs}ms`,
        COUNTER_BYTES: "8m",
        DRAIN: "1s",
        IDEMPOTENCY_RECORDS_PER_WORKSPACE: "10000000",
        // The books compare all of them.
        RETENTION_HOLDS: "7d",
        RETENTION_EXPIRED_HOLDS: "7d",
      },
      environment: this.#environment(node),
    });
    this.#processes.push({ name: `node ${index}`, server });
    server.address = (await server.logged("latchkey is listening")).address as string;
    node.server = server;
  }

  /** Starts an edge that is down, and waits until it listens: not before home has answered. */
  async startEdge(index: number): Promise<void> {
    const edge = this.edges[index]!;
    const { directory, port, home, rootKey } = edge;
    const args = [programFile(), "edge", "--port", String(port), "--upstream", home.url, "--name", `edge ${index}`];
    const server = new Server(args, {
      directory,
      settings: { ROOT_KEY: rootKey, DATA_DIR: join(directory, "data"), DRAIN: "0" },
      environment: this.#environment(edge),
    });
    this.#processes.push({ name: `edge ${index}`, server });
    server.address = (await server.logged("the edge is listening")).address as string;
    edge.server = server;
  }

  /** The output of each process of a node or an edge, in the order of their starts. */
  get logs(): string[] {
    return this.#processes.map(({ name, server }) => `${name}\n${server.output}`);
  }

  /** Moves the wall clock of a node or an edge by this many seconds from the true time. */
  setClock(program: FleetProgram, seconds: number): void {
    writeFileSync(clockFile(program), `${seconds < 0 ? "" : "+"}${seconds}`);
  }

  /** Fills the disk of a node, or of the database; the result frees it. */
  fillDisk(node: FleetNode | undefined): () => void {
    const file = join(node ? node.directory : this.#databaseFolder, "ballast");
    const descriptor = openSync(file, "w");
    try {
      const chunk = Buffer.alloc(65_536);
      for (;;) writeSync(descriptor, chunk);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(descriptor);
    }
    return () => rmSync(file, { force: true });
  }

  /** Runs a statement on the database, without a proxy, as soon as PostgreSQL answers. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the columns.
  async query(statement: string): Promise<any[]> {
    for (let attempts = 1; ; attempts++) {
      try {
        return await this.#queryOnce(statement);
      } catch (error) {
        // The statement itself is wrong, or its data.
        if (/^(42|22|23)/.test((error as { code?: string }).code ?? "") || attempts === QUERY_ATTEMPTS) throw error;
        await setTimeout(100);
      }
    }
  }

  /** Runs a statement on the database, without a proxy. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the columns.
  async #queryOnce(statement: string): Promise<any[]> {
    const client = new PostgresClient({ connectionString: this.databaseUrl });
    client.on("error", () => {});
    try {
      await client.connect();
      return (await client.query(statement)).rows;
    } finally {
      await client.end().catch(() => {});
    }
  }

  async flushRedis(): Promise<void> {
    const client = createClient({ url: this.redis.url });
    client.on("error", () => {});
    await client.connect();
    await client.flushAll();
    client.destroy();
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#processes.map(({ server }) => {
        server.signal("SIGCONT");
        return server.kill("SIGKILL");
      }),
    );
    for (const undo of this.#undo.reverse()) await undo();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #environment(program: FleetProgram): Record<string, string> {
    const clock = fakeClock({ FAKETIME_TIMESTAMP_FILE: clockFile(program), FAKETIME_CACHE_DURATION: "1" }, false);
    return { ...clock, ...this.#preloads };
  }

  /** What nodes and edges load before the program. */
  get #preloads(): Record<string, string> {
    const planted = this.#options.plant?.preload;
    const options = [
      ...(this.hasWorkers ? [threadFaults.NODE_OPTIONS] : []),
      ...(planted === undefined ? [] : [`--import ${planted}`]),
    ];
    return options.length === 0 ? {} : { NODE_OPTIONS: options.join(" ") };
  }

  get #databaseFolder(): string {
    return join(this.#folder, "database");
  }

  async #open(): Promise<void> {
    const { nodes, edges, installs, databaseMebibytes } = this.#options;
    execFileSync("chmod", ["755", this.#folder]);
    this.hasSmallDisks = this.#mount(this.#databaseFolder, databaseMebibytes);
    if (!this.hasSmallDisks) this.missing.push("disk full: this account may not mount a small disk");
    this.hasMovableClocks = fakeClock({}, installs) !== undefined;
    if (!this.hasMovableClocks) this.missing.push("clock skew: libfaketime is not installed");

    this.postgres = await startPostgres();
    this.#undo.push(() => this.postgres.stop());
    this.databaseUrl = this.postgres.url;
    await this.#createDatabase();
    const account = unprivilegedAccount("redis");
    const redisFolder = makeDirectory("chaos-redis", account);
    this.#undo.push(() => rmSync(redisFolder, { recursive: true, force: true }));
    this.redis = await startRedis({ dir: redisFolder, appendonly: "yes" });
    this.#undo.push(() => this.redis.stop());

    for (let index = 0; index < nodes; index++) {
      const directory = join(this.#folder, `node${index}`);
      if (this.hasSmallDisks) this.#mount(directory, NODE_DISK_MEBIBYTES);
      else mkdirSync(directory);
      const [postgres, redis] = [await TcpProxy.open(this.databaseUrl), await TcpProxy.open(this.redis.url)];
      this.#undo.push(() => Promise.all([postgres.close(), redis.close()]));
      const node = { index, port: await freePort(), directory, postgres, redis, server: undefined };
      this.nodes.push(node);
      this.setClock(node, 0);
      // One after the other, because the first one creates the tables.
      await this.startNode(index);
    }
    const { statements = [] } = this.#options.plant ?? {};
    for (const statement of statements) await this.query(statement);
    this.balancer = await startHaproxy(this.nodes.map(({ port }) => port));
    this.#undo.push(() => this.balancer.stop());
    for (let index = 0; index < edges; index++) await this.#addEdge(index);
  }

  /** Edges are programs on other machines: their data folders are on no small disk. */
  async #addEdge(index: number): Promise<void> {
    const directory = join(this.#folder, `edge${index}`);
    mkdirSync(directory);
    const { server } = this.nodes[0]!;
    const permissions = ["replicas.*.open", "ratelimits.*.limit"];
    const { key: rootKey } = await server!.ok("rootKeys.createRootKey", { name: `edge ${index}`, permissions });
    const own = this.nodes[index % this.nodes.length]!.server!;
    const home = await TcpProxy.open(index % 2 === 0 ? own.address : this.balancer.url);
    this.#undo.push(() => home.close());
    const edge = { index, port: await freePort(), directory, home, rootKey, server: undefined };
    this.edges.push(edge);
    this.setClock(edge, 0);
    await this.startEdge(index);
  }

  /** The database is in a tablespace on the small disk; the log of PostgreSQL is not, so it survives a full disk. */
  async #createDatabase(): Promise<void> {
    if (this.hasSmallDisks) {
      const account = unprivilegedAccount("postgres");
      const folder = join(this.#databaseFolder, "tablespace");
      mkdirSync(folder);
      if (account) execFileSync("chown", [`${account.uid}:${account.gid}`, folder]);
      await this.query(`create tablespace small location '${folder}'`);
    }
    const place = this.hasSmallDisks ? "tablespace small" : "";
    await this.query(`create database chaos template template0 encoding 'UTF8' ${place}`);
    const url = new URL(this.postgres.url);
    url.pathname = "chaos";
    this.databaseUrl = url.href;
  }

  /** Mounts a disk in memory. It is unmounted when this process ends, however it ends. */
  #mount(folder: string, mebibytes: number): boolean {
    mkdirSync(folder);
    const options = `size=${mebibytes}m,mode=0755`;
    if (spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", folder], { stdio: "ignore" }).status !== 0) {
      rmSync(folder, { recursive: true });
      return false;
    }
    const guard = spawn("sh", ["-c", `cat > /dev/null; umount -l '${folder}'; rmdir '${folder}'`], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    const ended = new Promise((resolve) => guard.once("close", resolve));
    this.#undo.push(() => {
      guard.stdin.end();
      return ended;
    });
    return true;
  }
}

/** Outside of its folder, which can be a full disk. */
function clockFile({ directory }: FleetProgram): string {
  return `${directory}.clock`;
}

/** For at least two minutes: the recovery of a server takes as long as the machine is busy. */
const QUERY_ATTEMPTS = 1_200;
