import { ErrorReply } from "@redis/client";
import {
  type Clock,
  type Instant,
  instantAt,
  type Milliseconds,
  type Timer,
} from "../../../../engine/src/clock/clock.ts";
import { every } from "../../../../engine/src/clock/every.ts";
import { openClient } from "./client.ts";
import { RedisTime } from "./redis-time.ts";
import { assertSuitable, readFacts, warningsAbout } from "./server-facts.ts";

/** Interval between questions where the primary is. */
const LOCATE_INTERVAL: Milliseconds = 1_000;
/** Interval between attempts to reconnect. */
const PROBE_INTERVAL: Milliseconds = 100;
/** Minimum time for connecting and the checks, also with a shorter timeout. */
const CONNECT_TIMEOUT_MIN: Milliseconds = 1_000;

/** Slices of the timeout, so that a blocked event loop is detected. */
const SLICES = 10;
/** A slice that takes more than this multiple of its length was delayed by this process. */
const LATE_SLICE = 1.5;
/** How much of a late slice counts: a little, so that an overloaded node detects a dead Redis too. */
const LATE_SLICE_COUNTS = 0.25;

/** Writes, because full memory, a failing disk, a demoted primary and missing permissions only affect writes. */
const PROBE_KEY = "latchkey:probe";
const probeScript = "redis.call('SET', KEYS[1], '1', 'PX', 1000) return redis.call('TIME')";

/** Redis has an outage. The command may or may not have been executed before its deadline. */
export class RedisOutage extends Error {
  override readonly name = "RedisOutage";

  constructor(cause: unknown) {
    super("Redis is unreachable", { cause });
  }
}

/**
 * Whether Redis rejects the connection permanently, e.g. for wrong credentials. False while it loads its data, or while
 * its cluster has no majority or moves slots.
 */
export function isPermanentFailure(error: unknown): boolean {
  return error instanceof ErrorReply && !/^(LOADING|MASTERDOWN|TRYAGAIN|CLUSTERDOWN|MOVED|ASK)/.test(error.message);
}

export interface RedisOptions {
  /**
   * redis:// or rediss://, with credentials; or a function that finds the primary. It is asked before each connection and
   * each second: a connection to a server that is not the primary any more counts as lost.
   */
  readonly url: string | (() => Promise<string>);
  /** If this is a node of a cluster: a key of its slots, which the probe writes; undefined if it has none. */
  readonly clusterKey?: () => string | undefined;
  readonly clock: Clock;
  /**
   * How long Redis may send no reply while a command waits, until this counts as an outage. Time in which this process
   * could not read replies counts little.
   */
  readonly timeout: Milliseconds;
  /** The Lua scripts, by name. */
  readonly scripts: Readonly<Record<string, string>>;
  /**
   * Checks every new connection before its use. Rejects if the other nodes do not count in this Redis, or if this is
   * unknown yet.
   */
  admit?(send: (args: readonly string[]) => Promise<unknown>): Promise<void>;
  /** Called at the start of each outage, with the host and port of the server. */
  onOutage(cause: unknown, server: string): void;
  /** Called once per outage, when a probe has succeeded. */
  onBack(outageLength: Milliseconds, server: string): void;
}

/** A Redis that runs the scripts of counters: one server, or the node of a cluster that has their slot. */
export interface CountingRedis {
  readonly hasOutage: boolean;
  /** Changes with every outage and every change of the server. */
  readonly outages: number;
  /** Estimate of the clock of Redis. */
  readonly time: RedisTime;
  /** The time of Redis before which it may lack admissions of this node. */
  readonly reconnectedAt: number;
  /**
   * Runs a script whose first argument is its deadline in the time of Redis, and whose reply has this time at index 1.
   * Without `deadline` it is the time for which this node waits for a reply. Rejects with `RedisOutage` or an `ErrorReply`.
   */
  decide(script: string, keys: readonly string[], args: readonly string[], deadline?: number): Promise<unknown>;
  /** Starts an outage, for a caller to which Redis has replied that it cannot work, e.g. cannot write. */
  reportOutage(cause: unknown): void;
}

/**
 * A connection of the node to one Redis. It decides whether this Redis has an outage.
 *
 * *Connected*: commands are sent at once. An outage begins when the connection is lost, when no reply arrives for the
 * timeout while a command waits, or when the caller reports it (`reportOutage`).
 *
 * *Outage*: all waiting commands are rejected, further commands are rejected at once, and the node tries to reconnect every
 * 100 ms. A connection that passes the checks of the start and a write ends the outage.
 *
 * *In doubt*: after half the timeout without a reply, a second connection is opened. If it passes the checks while the
 * first is still silent, it replaces the first: waiting commands are rejected, and there is no outage.
 *
 * The timeout is measured in slices. A slice whose timer fires late counts for a quarter of its length, because a node
 * without CPU reads late, and a Redis on the same machine answers late, without an outage.
 */
export class RedisConnection implements CountingRedis {
  /** Estimate of the clock of Redis. */
  readonly time = new RedisTime();
  /** Number of outages, for the metrics. */
  outages = 0;
  /**
   * The time of Redis at the last connection or reconnection, at the latest. Redis may lack admissions of this node, or of
   * an earlier process of it, from before this time.
   */
  reconnectedAt = 0;
  /** Warnings for the operator about this Redis. */
  warnings: readonly string[] = [];
  readonly #options: RedisOptions;
  #link: Link | undefined;
  #outageSince: Milliseconds = 0;
  #probe: Timer | undefined;
  /** Links that are not connected yet. */
  readonly #connecting = new Set<Link>();
  #isInDoubt = false;
  #isClosed = false;
  #server: string;
  readonly #locating: Timer | undefined;

  private constructor(options: RedisOptions) {
    this.#options = options;
    const { url, clock } = options;
    this.#server = typeof url === "string" ? new URL(url).host : "the primary";
    if (typeof url === "string") return;
    this.#locating = every(clock, LOCATE_INTERVAL, async () => {
      const link = this.#link;
      if (!link) return;
      const primary = await url();
      if (link === this.#link && primary !== link.url) this.reportOutage(new Error("Another server is the primary"));
    });
  }

  /**
   * Connects and checks.
   *
   * @throws {RedisUnsuitable} if this Redis must not be used; other errors if it cannot be reached.
   */
  static async open(options: RedisOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(options);
    try {
      connection.#link = await connection.#connect();
    } catch (error) {
      connection.close();
      throw error;
    }
    connection.reconnectedAt = connection.time.latest(options.clock.monotonic());
    return connection;
  }

  /** Opens the connection in an outage, for a Redis that is unreachable at the start. Reconnects in the background. */
  static openInOutage(options: RedisOptions, cause: unknown): RedisConnection {
    const connection = new RedisConnection(options);
    const { clock } = options;
    connection.#outageSince = clock.monotonic();
    connection.time.assume(clock.monotonic(), clock.now());
    connection.#scheduleProbe();
    options.onOutage(cause, connection.#server);
    return connection;
  }

  get hasOutage(): boolean {
    return this.#link === undefined;
  }

  /** The server by host and port; the last one during an outage. */
  get servers(): { name: string; hasOutage: boolean }[] {
    return [{ name: this.#server, hasOutage: this.hasOutage }];
  }

  /**
   * The estimated clock of Redis, which continues during an outage. Local counters use it, so that their windows equal
   * those in Redis.
   */
  now(): Instant {
    return instantAt(this.time.earliest(this.#options.clock.monotonic()));
  }

  /**
   * The deadline of a command sent now, in the time of Redis. The node does not give up on the command earlier, unless the
   * connection is lost.
   */
  deadline(): number {
    return this.time.earliest(this.#link?.answerDeadline() ?? 0);
  }

  /** Sends a command. Rejects with `RedisOutage`, or with the `ErrorReply` of Redis. */
  send(args: readonly string[]): Promise<unknown> {
    return this.#link?.send(args) ?? Promise.reject(new RedisOutage(new Error("Redis is marked as unreachable")));
  }

  /** Sends a command on a key of a slot that a cluster is moving to this server. */
  sendAsking(args: readonly string[]): Promise<unknown> {
    return this.#link?.send(args, true) ?? this.send(args);
  }

  /** Runs one of the scripts. Rejects as `send` does. */
  run(script: string, keys: readonly string[], args: readonly string[], isAsking = false): Promise<unknown> {
    const link = this.#link;
    if (!link) return this.send([]);
    const rest = [String(keys.length), ...keys, ...args];
    return link.send(["EVALSHA", link.shaOf.get(script)!, ...rest], isAsking).catch((error: unknown) => {
      // The script cache of the server was flushed. Nothing was executed.
      if (!(error instanceof ErrorReply && error.message.startsWith("NOSCRIPT"))) throw error;
      return link.send(["EVAL", this.#options.scripts[script]!, ...rest], isAsking);
    });
  }

  async decide(
    script: string,
    keys: readonly string[],
    args: readonly string[],
    deadline?: number,
    isAsking = false,
  ): Promise<unknown> {
    const { clock } = this.#options;
    const sentAt = clock.monotonic();
    const reply = await this.run(script, keys, [String(deadline ?? this.deadline()), ...args], isAsking);
    if (deadline === undefined) this.time.learn(sentAt, clock.monotonic(), (reply as [number, number])[1]);
    return reply;
  }

  reportOutage(cause: unknown): void {
    const link = this.#link;
    if (!link) return;
    this.#link = undefined;
    this.outages++;
    this.#outageSince = this.#options.clock.monotonic();
    link.close();
    this.#scheduleProbe();
    this.#options.onOutage(cause, this.#server);
  }

  /** Closes the connection and rejects waiting commands. */
  close(): void {
    this.#isClosed = true;
    this.#probe?.cancel();
    this.#locating?.cancel();
    for (const link of this.#connecting) link.close();
    this.#link?.close();
    this.#link = undefined;
  }

  #scheduleProbe(): void {
    if (this.#isClosed) return;
    this.#probe = this.#options.clock.schedule(PROBE_INTERVAL, () => {
      void this.#connect().then(
        (link) => this.#resume(link),
        () => this.#scheduleProbe(),
      );
    });
  }

  #resume(link: Link): void {
    const now = this.#options.clock.monotonic();
    this.reconnectedAt = this.time.latest(now);
    this.#link = link;
    this.#options.onBack(now - this.#outageSince, this.#server);
  }

  /** Opens a second connection while the first is silent. */
  async #replaceSilent(silent: Link): Promise<void> {
    if (this.#isInDoubt || this.#isClosed) return;
    this.#isInDoubt = true;
    const { replies } = silent;
    try {
      const link = await this.#connect();
      if (silent !== this.#link || silent.replies !== replies) link.close();
      else {
        this.#link = link;
        silent.close();
      }
    } catch {
      // The timeout of the silent connection decides.
    } finally {
      this.#isInDoubt = false;
    }
  }

  /** Opens a connection and runs all checks. */
  async #connect(): Promise<Link> {
    const { clock, timeout, url: address, scripts, clusterKey } = this.#options;
    const url = typeof address === "string" ? address : await address();
    const link: Link = new Link(url, clock, timeout, {
      onLoss: (cause) => {
        if (link === this.#link) this.reportOutage(cause);
      },
      onDoubt: () => {
        if (link === this.#link) void this.#replaceSilent(link);
      },
    });
    this.#connecting.add(link);
    const limit = clock.schedule(Math.max(CONNECT_TIMEOUT_MIN, 2 * timeout), () => link.close());
    try {
      await link.connect();
      const facts = readFacts(String(await link.send(["INFO"])));
      const elected = clusterKey !== undefined || typeof address !== "string";
      // A server that was named as the primary can be one that was demoted, or is not promoted yet.
      if (elected && facts.role === "slave") throw new Error(`Redis at ${new URL(url).host} is a replica`);
      assertSuitable(facts, clusterKey !== undefined);
      for (const [name, text] of Object.entries(scripts)) {
        link.shaOf.set(name, String(await link.send(["SCRIPT", "LOAD", text])));
      }
      const sentAt = clock.monotonic();
      const key = clusterKey ? clusterKey() : PROBE_KEY;
      const reply = await link.send(key === undefined ? ["TIME"] : ["EVAL", probeScript, "1", key]);
      const [seconds, microseconds] = reply as [string, string];
      const time = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
      this.time.learn(sentAt, clock.monotonic(), time);
      await this.#options.admit?.((args) => link.send(args));
      if (this.#isClosed || link.isClosed) throw new Error("The connection was closed");
      this.warnings = warningsAbout(facts);
      this.#server = new URL(url).host;
      return link;
    } catch (error) {
      link.close();
      throw error instanceof RedisOutage ? error.cause : error;
    } finally {
      limit.cancel();
      this.#connecting.delete(link);
    }
  }
}

/** One socket to Redis, from its connection to its loss. */
class Link {
  readonly url: string;
  /** The digests of the scripts on this server, by name. */
  readonly shaOf = new Map<string, string>();
  isClosed = false;
  /** Number of replies. */
  replies = 0;
  readonly #client: ReturnType<typeof openClient>;
  readonly #clock: Clock;
  readonly #timeout: Milliseconds;
  readonly #slice: Milliseconds;
  readonly #on: LinkEvents;
  #waiting = 0;
  /** How long no reply has arrived while a command waits, up to `#measuredAt`. */
  #quiet: Milliseconds = 0;
  #measuredAt: Milliseconds = 0;
  #watch: Timer | undefined;

  constructor(url: string, clock: Clock, timeout: Milliseconds, on: LinkEvents) {
    this.url = url;
    this.#clock = clock;
    this.#timeout = timeout;
    this.#slice = Math.max(1, timeout / SLICES);
    this.#on = on;
    this.#client = openClient(url, Math.max(CONNECT_TIMEOUT_MIN, timeout));
    this.#client.on("error", (error: unknown) => this.#lose(error));
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  /** `isAsking`: for the next command, this server has the slot that it is importing. */
  send(args: readonly string[], isAsking = false): Promise<unknown> {
    if (this.#waiting++ === 0) this.#beginQuiet();
    this.#watch ??= this.#watchOn();
    // Sent in the same turn, so no other command is in between. A failure affects both.
    if (isAsking) this.#client.sendCommand(["ASKING"]).catch(() => {});
    return this.#client.sendCommand(args as string[]).then(
      (reply: unknown) => {
        this.#receive();
        return reply;
      },
      (error: unknown) => {
        this.#receive();
        if (error instanceof ErrorReply) throw error;
        this.#lose(error);
        throw new RedisOutage(error);
      },
    );
  }

  /** The monotonic time until which a command sent now waits at least for a reply. */
  answerDeadline(): Milliseconds {
    const now = this.#clock.monotonic();
    if (this.#waiting === 0) return now + this.#timeout;
    const passed = now - this.#measuredAt;
    const counted = passed > LATE_SLICE * this.#slice ? LATE_SLICE_COUNTS * this.#slice : passed;
    return now + this.#timeout - this.#quiet - counted;
  }

  /** Closes the socket and rejects waiting commands. */
  close(): void {
    this.isClosed = true;
    this.#watch?.cancel();
    this.#client.destroy();
  }

  #receive(): void {
    this.#waiting--;
    this.replies++;
    this.#beginQuiet();
  }

  #beginQuiet(): void {
    this.#quiet = 0;
    this.#measuredAt = this.#clock.monotonic();
  }

  #lose(cause: unknown): void {
    if (this.isClosed) return;
    this.close();
    this.#on.onLoss(cause);
  }

  #watchOn(): Timer {
    const length = this.#slice;
    const startedAt = this.#clock.monotonic();
    return this.#clock.schedule(length, () => {
      // If this process was blocked, replies may have arrived and are read first.
      setImmediate(() => {
        this.#watch = undefined;
        if (this.isClosed || this.#waiting === 0) return;
        const now = this.#clock.monotonic();
        const isLate = now - startedAt > LATE_SLICE * length;
        this.#quiet += Math.min(now - this.#measuredAt, isLate ? LATE_SLICE_COUNTS * length : Number.POSITIVE_INFINITY);
        this.#measuredAt = now;
        if (this.#quiet >= this.#timeout) {
          this.#lose(new Error(`Redis sent no reply for ${this.#timeout} ms`));
          return;
        }
        if (this.#quiet >= this.#timeout / 2) this.#on.onDoubt();
        this.#watch = this.#watchOn();
      });
    });
  }
}

interface LinkEvents {
  /** The connection is lost or timed out. */
  onLoss(cause: unknown): void;
  /** No reply has arrived for half the timeout. Can be called repeatedly. */
  onDoubt(): void;
}
