import {
  type Clock,
  type Instant,
  instantAt,
  type Milliseconds,
  type Timer,
} from "../../../../engine/src/clock/clock.ts";
import { pause } from "../../../../engine/src/clock/pause.ts";
import { isOperatorError } from "../../log/operator-error.ts";
import { type Endpoint, nameOf, type RedisAddress, urlOf } from "./address.ts";
import { type ClusterView, latestView, readRedirect, readView, readViewOnce } from "./cluster-view.ts";
import { type CountingRedis, RedisConnection, type RedisOptions, RedisOutage } from "./connection.ts";
import { PARTITIONS, prefixOf, SLOTS, slotOfPartition } from "./partitions.ts";
import { RedisTime } from "./redis-time.ts";
import { RedisUnsuitable } from "./server-facts.ts";

/** Interval between questions who has which slots, while all have a primary that answers. */
const REFRESH_INTERVAL: Milliseconds = 1_000;
/** The same while a slot has no primary that answers. */
const REFRESH_INTERVAL_IN_OUTAGE: Milliseconds = 100;
/** Minimum time between two questions. */
const REFRESH_INTERVAL_MIN: Milliseconds = 20;
/** Minimum time for a question on a new connection. */
const QUESTION_TIMEOUT_MIN: Milliseconds = 1_000;
/** How often a command is redirected, besides waits for a slot that is being moved. */
const REDIRECTS_MAX = 8;
/** First wait for a slot that is being moved; each further one is twice as long, up to the maximum. */
const AGAIN_FIRST: Milliseconds = 2;
const AGAIN_MAX: Milliseconds = 50;
/** The clocks of primaries may differ by this much without a warning. */
const CLOCK_DIFFERENCE_MAX: Milliseconds = 1_000;

export interface RedisClusterOptions extends Pick<RedisOptions, "clock" | "timeout" | "scripts" | "admit"> {
  readonly address: RedisAddress & { kind: "cluster" };
  /** Called once per outage of a server. */
  onOutage(cause: unknown, server: string): void;
  onBack(outageLength: Milliseconds, server: string): void;
  /** Called with the primaries when they change after the start. */
  onPrimaries(servers: readonly string[]): void;
  /** Called with a sentence for the operator. */
  onWarning(warning: string): void;
}

/**
 * The connections of the node to the primaries of a cluster, one each, and the map of the partitions of counters to them.
 *
 * The map is read from the primaries each second, ten times a second while a partition has no primary that answers, and at
 * once after a redirection. Of several answers the one of the latest failover counts.
 *
 * No partition is used before `admit` has succeeded once.
 */
export class RedisCluster {
  /** Outages of servers that are no primaries any more. */
  #formerOutages = 0;
  readonly #options: RedisClusterOptions;
  readonly #nodes = new Map<string, ClusterNode>();
  readonly #partitions: ClusterPartition[];
  /** All servers of the last map, which are asked when no primary answers. */
  #known: readonly Endpoint[];
  #isAdmitted = false;
  #isClosed = false;
  #timer: Timer | undefined;
  #refreshing: Promise<void> | undefined;
  #startedAt: Milliseconds;
  #isClockWarned = false;
  /** The clock until a server has answered. */
  readonly #assumedTime = new RedisTime();

  private constructor(options: RedisClusterOptions) {
    this.#options = options;
    this.#known = options.address.seeds;
    const { clock } = options;
    this.#startedAt = clock.monotonic();
    this.#assumedTime.assume(clock.monotonic(), clock.now());
    this.#partitions = Array.from({ length: PARTITIONS }, (_, number) => new ClusterPartition(this, number, options));
  }

  /**
   * Reads the map, connects to all primaries, and checks them. A primary that does not answer has an outage.
   *
   * @throws {RedisUnsuitable} if this cluster must not be used; other errors if no server can be reached, or `admit` rejects.
   */
  static async open(options: RedisClusterOptions): Promise<RedisCluster> {
    const cluster = new RedisCluster(options);
    try {
      await cluster.#refresh();
      const nodes = [...cluster.#nodes.values()];
      await Promise.all(nodes.map(({ opened }) => opened));
      const unsuitable = nodes.find(({ failure }) => isOperatorError(failure));
      if (unsuitable) throw new RedisUnsuitable(`${unsuitable.name}: ${(unsuitable.failure as Error).message}`);
      const failed = nodes.find(({ failure }) => failure !== undefined);
      if (nodes.length === 0 || nodes.every(({ failure }) => failure !== undefined)) {
        throw failed?.failure ?? new Error("No slot of the cluster has a primary");
      }
      await cluster.#admit();
    } catch (error) {
      cluster.close();
      throw error;
    }
    cluster.#schedule();
    return cluster;
  }

  /** Opens a cluster that is unreachable at the start. Connects in the background. */
  static openInOutage(options: RedisClusterOptions, cause: unknown): RedisCluster {
    const cluster = new RedisCluster(options);
    options.onOutage(cause, options.address.seeds.map(nameOf).join(","));
    cluster.#schedule();
    return cluster;
  }

  /** Whether a partition has no primary that answers. */
  get hasOutage(): boolean {
    return this.#partitions.some(({ hasOutage }) => hasOutage);
  }

  get isAdmitted(): boolean {
    return this.#isAdmitted;
  }

  /** Number of outages of its servers. */
  get outages(): number {
    return [...this.#nodes.values()].reduce(
      (sum, { connection }) => sum + (connection?.outages ?? 0),
      this.#formerOutages,
    );
  }

  /** The primaries of the partitions by host and port. */
  get servers(): { name: string; hasOutage: boolean }[] {
    const used = this.#used();
    return [...used].map(({ name, connection }) => ({ name, hasOutage: connection?.hasOutage ?? false }));
  }

  get warnings(): readonly string[] {
    return [...this.#nodes.values()].flatMap(({ name, connection }) =>
      (connection?.warnings ?? []).map((warning) => `${name}: ${warning}`),
    );
  }

  /** Estimate of the clock of one of the primaries: that of the first partition if it answers. */
  get time(): RedisTime {
    const first = this.#partitions[0]!.node?.connection;
    if (first) return first.time;
    for (const { connection } of this.#nodes.values()) if (connection) return connection.time;
    return this.#assumedTime;
  }

  /** The estimated clock of a primary. Local counters use it. */
  now(): Instant {
    return instantAt(this.time.earliest(this.#options.clock.monotonic()));
  }

  /** The primary of a partition by host and port; undefined if it has none. */
  serverOf(partition: number): string | undefined {
    return this.#partitions[partition]!.node?.name;
  }

  /** Where the counters of a partition are. */
  partition(number: number): CountingRedis {
    return this.#partitions[number]!;
  }

  /** Sends a command on a key with the prefix of the first partition. */
  send(args: readonly string[]): Promise<unknown> {
    return this.#partitions[0]!.route((connection, isAsking) =>
      isAsking ? connection.sendAsking(args) : connection.send(args),
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const node of this.#nodes.values()) node.close();
  }

  /** The connection to a server, which is opened if there is none. */
  find(server: Endpoint): ClusterNode {
    const name = nameOf(server);
    let node = this.#nodes.get(name);
    if (!node) {
      node = this.#openNode(server);
      this.#nodes.set(name, node);
    }
    return node;
  }

  /** Reads the map soon. */
  refreshSoon(): void {
    if (this.#isClosed || this.#refreshing) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.schedule(REFRESH_INTERVAL_MIN, () => this.#tick());
  }

  #openNode(server: Endpoint): ClusterNode {
    const { clock, timeout, scripts, address, onOutage, onBack } = this.#options;
    const name = nameOf(server);
    return new ClusterNode(server, {
      clock,
      timeout,
      scripts,
      url: urlOf(server, address.login),
      clusterKey: () => {
        const own = this.#partitions.find(({ node }) => node?.name === name);
        return own && `${prefixOf(own.number)}probe`;
      },
      onOutage: (cause) => {
        onOutage(cause, name);
        this.refreshSoon();
      },
      onBack: (outageLength) => onBack(outageLength, name),
    });
  }

  #schedule(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.schedule(this.hasOutage ? REFRESH_INTERVAL_IN_OUTAGE : REFRESH_INTERVAL, () =>
      this.#tick(),
    );
  }

  #tick(): void {
    const refreshed = this.#refresh().then(async () => {
      if (this.#isAdmitted || this.#nodes.size === 0) return;
      await this.#admit();
      const { clock, onBack, address } = this.#options;
      onBack(clock.monotonic() - this.#startedAt, address.seeds.map(nameOf).join(","));
    });
    this.#refreshing = refreshed
      // The next run retries.
      .catch(() => {})
      .finally(() => {
        this.#refreshing = undefined;
        this.#schedule();
      });
  }

  async #admit(): Promise<void> {
    await this.#options.admit?.((args) => this.send(args));
    this.#isAdmitted = true;
  }

  async #refresh(): Promise<void> {
    const view = latestView(await this.#ask());
    if (!view || this.#isClosed) return;
    this.#known = distinct(view.ranges.flatMap(({ servers }) => servers));
    const before = this.#primaryNames();
    const primaries: (Endpoint | undefined)[] = [];
    for (const { first, last, servers } of view.ranges) {
      for (let slot = first; slot <= Math.min(last, SLOTS - 1); slot++) primaries[slot] = servers[0];
    }
    for (const partition of this.#partitions) {
      const primary = primaries[partition.slot];
      partition.assign(primary && this.find(primary));
    }
    this.#closeUnused();
    const names = this.#primaryNames();
    if (this.#isAdmitted && names.join() !== before.join()) this.#options.onPrimaries(names);
    this.#compareClocks();
  }

  /** The views of all servers that answer. Rejects if none does. */
  async #ask(): Promise<ClusterView[]> {
    const { clock, timeout, address } = this.#options;
    const connected = [...this.#nodes.values()].filter(({ connection }) => connection && !connection.hasOutage);
    const views = await settled(
      connected.map(({ server, connection }) => readView(server, (args) => connection!.send(args))),
    );
    if (views.values.length > 0) return views.values;
    const limit = Math.max(QUESTION_TIMEOUT_MIN, timeout);
    const others = distinct([...this.#known, ...address.seeds]);
    const asked = await settled(others.map((server) => readViewOnce(server, address.login, clock, limit)));
    if (asked.values.length > 0) return asked.values;
    throw asked.reasons.find((reason) => reason instanceof RedisUnsuitable) ?? asked.reasons[0];
  }

  /** Closes connections to servers that have no partition any more. Their last replies are still read. */
  #closeUnused(): void {
    const { clock, timeout } = this.#options;
    const used = this.#used();
    for (const [name, node] of this.#nodes) {
      if (used.has(node)) {
        node.unusedSince = undefined;
        continue;
      }
      node.unusedSince ??= clock.monotonic();
      // It may be the target of a slot that is being moved.
      if (!node.connection?.hasOutage && clock.monotonic() - node.unusedSince < 10 * timeout) continue;
      this.#formerOutages += node.connection?.outages ?? 0;
      this.#nodes.delete(name);
      node.close();
    }
  }

  #primaryNames(): string[] {
    return [...this.#used()].map(({ name }) => name).sort();
  }

  /** The servers that have a partition. */
  #used(): Set<ClusterNode> {
    return new Set(this.#partitions.flatMap(({ node }) => node ?? []));
  }

  #compareClocks(): void {
    const at = this.#options.clock.monotonic();
    const times = [...this.#nodes.values()].flatMap(({ connection }) => (connection ? [connection.time] : []));
    const difference =
      Math.max(...times.map((time) => time.earliest(at))) - Math.min(...times.map((time) => time.latest(at)));
    const isApart = difference > CLOCK_DIFFERENCE_MAX;
    if (isApart && !this.#isClockWarned) {
      this.#options.onWarning(
        `the clocks of the primaries of Redis differ by ${Math.round(difference / 1_000)} s: windows follow the clock of the primary that has the counter, so synchronize the clocks`,
      );
    }
    this.#isClockWarned = isApart;
  }
}

/** A server of a cluster, and the connection to it. */
class ClusterNode {
  readonly server: Endpoint;
  readonly name: string;
  /** Undefined until the first attempt to connect has succeeded or failed. */
  connection: RedisConnection | undefined;
  /** Why the first attempt failed. */
  failure: unknown;
  readonly opened: Promise<RedisConnection>;
  unusedSince: Milliseconds | undefined;
  #isClosed = false;

  constructor(server: Endpoint, options: RedisOptions) {
    this.server = server;
    this.name = nameOf(server);
    this.opened = RedisConnection.open(options)
      .catch((error: unknown) => {
        this.failure = error;
        if (this.#isClosed) throw new RedisOutage(error);
        return RedisConnection.openInOutage(options, error);
      })
      .then((connection) => {
        this.connection = connection;
        if (this.#isClosed) connection.close();
        return connection;
      });
    // Who waits for it gets the rejection.
    this.opened.catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
    this.connection?.close();
  }
}

/** A partition of the counters: one slot, at the primary that has it at present. */
class ClusterPartition implements CountingRedis {
  readonly number: number;
  readonly slot: number;
  node: ClusterNode | undefined;
  readonly #cluster: RedisCluster;
  readonly #clock: Clock;
  readonly #timeout: Milliseconds;
  #formerOutages = 0;
  /** The time of Redis at the last assignment after an outage. */
  #assignedAt = 0;

  constructor(cluster: RedisCluster, number: number, { clock, timeout }: Pick<RedisOptions, "clock" | "timeout">) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#timeout = timeout;
    this.number = number;
    this.slot = slotOfPartition(number);
  }

  get hasOutage(): boolean {
    return !this.#cluster.isAdmitted || this.node === undefined || this.node.connection?.hasOutage === true;
  }

  get outages(): number {
    return this.#formerOutages + (this.node?.connection?.outages ?? 0);
  }

  get time(): RedisTime {
    return this.node?.connection?.time ?? this.#cluster.time;
  }

  get reconnectedAt(): number {
    return Math.max(this.#assignedAt, this.node?.connection?.reconnectedAt ?? Number.POSITIVE_INFINITY);
  }

  assign(node: ClusterNode | undefined): void {
    if (node === this.node) return;
    const hadOutage = this.hasOutage;
    this.#formerOutages = this.outages + 1;
    this.node = node;
    if (hadOutage) this.#assignedAt = this.time.latest(this.#clock.monotonic());
  }

  decide(script: string, keys: readonly string[], args: readonly string[], deadline?: number): Promise<unknown> {
    return this.route((connection, isAsking) => connection.decide(script, keys, args, deadline, isAsking));
  }

  reportOutage(cause: unknown): void {
    this.node?.connection?.reportOutage(cause);
  }

  /** Sends something to the server that has the slot, and follows redirections for at most the timeout. */
  async route(send: (connection: RedisConnection, isAsking: boolean) => Promise<unknown>): Promise<unknown> {
    const begin = this.#clock.monotonic();
    let asked: ClusterNode | undefined;
    let wait = AGAIN_FIRST;
    for (let redirects = 0; ; ) {
      const node = asked ?? this.node;
      if (!node) throw new RedisOutage(new Error(`Slot ${this.slot} has no primary`));
      try {
        return await send(node.connection ?? (await node.opened), asked !== undefined);
      } catch (error) {
        const redirect = readRedirect(error, node.server);
        if (!redirect) throw error;
        const isOver =
          redirect.kind === "again" ? this.#clock.monotonic() - begin >= this.#timeout : ++redirects > REDIRECTS_MAX;
        if (isOver) throw new RedisOutage(error);
        if (redirect.kind === "again") {
          // Some keys of the slot have moved and others not. The next attempt starts at the owner of the slot.
          asked = undefined;
          await pause(this.#clock, wait);
          wait = Math.min(2 * wait, AGAIN_MAX);
        } else if (redirect.kind === "ask") asked = this.#cluster.find(redirect.server);
        else {
          asked = undefined;
          this.#cluster.refreshSoon();
          this.assign(this.#cluster.find(redirect.server));
        }
      }
    }
  }
}

/** Servers without repetitions. */
function distinct(servers: readonly Endpoint[]): Endpoint[] {
  return [...new Map(servers.map((server) => [nameOf(server), server])).values()];
}

async function settled<T>(promises: readonly Promise<T>[]): Promise<{ values: T[]; reasons: unknown[] }> {
  const results = await Promise.allSettled(promises);
  return {
    values: results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : [])),
    reasons: results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : [])),
  };
}
