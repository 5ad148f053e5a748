import { createClient, ErrorReply } from "redis";
import { type Clock, type Instant, instantAt, type Milliseconds, type Timer } from "../clock/clock.ts";
import { RedisTime } from "./redis-time.ts";
import { assertSuitable, readFacts, warningsAbout } from "./server-facts.ts";

/** From one attempt to reach Redis again to the next. */
const PROBE_INTERVAL: Milliseconds = 100;
/** What connecting and the checks may take at least, however short the timeout is. */
const CONNECT_TIMEOUT_MIN: Milliseconds = 1_000;

/** In how many parts the timeout is measured, so that lateness of our own event loop shows. */
const SLICES = 10;
/** A part that ends later than this many times its length was measured by a process that had no CPU. */
const LATE_SLICE = 1.5;
/** What such a part counts, in parts: little, and not nothing, so that an overloaded node leaves a dead Redis too. */
const LATE_SLICE_COUNTS = 0.25;

/** Full memory, a disk that fails, a primary that was demoted, and missing permissions show when something is written. */
const probeScript = "redis.call('SET', KEYS[1], '1', 'PX', 1000) return redis.call('TIME')";

/** No answer will come, and what was asked may or may not have happened before its deadline. */
export class RedisAway extends Error {
  override readonly name = "RedisAway";

  constructor(cause: unknown) {
    super("Redis is away", { cause });
  }
}

/** Whether Redis answered, and will go on refusing: wrong credentials, for one. Not while it loads its data. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ErrorReply && !/^(LOADING|MASTERDOWN|TRYAGAIN)/.test(error.message);
}

export interface RedisOptions {
  /** redis:// or rediss://, with credentials. */
  readonly url: string;
  readonly clock: Clock;
  /**
   * How long Redis may say nothing at all while something is asked, until it counts as away. Only time counts in which
   * this process could have read an answer.
   */
  readonly timeout: Milliseconds;
  /** Lua scripts that will be run, by name. */
  readonly scripts: Readonly<Record<string, string>>;
  /**
   * Asked on every new connection before it is used: rejects when this Redis is not the one in which the other nodes
   * count, or when that is not known yet.
   */
  admit?(send: (args: readonly string[]) => Promise<unknown>): Promise<void>;
  /** Told once when the node begins to stand apart. */
  onAway(cause: unknown): void;
  /** Told once when a probe has passed. */
  onBack(awayFor: Milliseconds): void;
}

/**
 * The node's one connection to Redis, and its one notion of "away".
 *
 * *Connected*: what is asked is sent at once, and answers are waited for as long as Redis says anything: it counts as
 * away when the connection is lost, when nothing at all came for the timeout while something was asked, or when whoever
 * reads the answers says so (`markAway`). Then the node stands *apart*: everything that waits is rejected, nobody waits
 * again, and a fresh connection is tried every 100 ms. One that passes the checks of the start and a write leads back.
 *
 * *In doubt*: after half the timeout a second connection asks too. If it passes the checks while the first stays silent,
 * only the first connection is dead: the second replaces it, what waits is rejected, and the node does not stand apart.
 *
 * The timeout is measured in parts. A part at whose end this process came late counts for a quarter of its length: a
 * node without CPU reads late, and Redis on the same machine answers late, without being away.
 */
export class RedisConnection {
  /** What Redis' clock shows. */
  readonly time = new RedisTime();
  /** How often the node began to stand apart. */
  outages = 0;
  /**
   * The latest time in Redis at which the node came, for the first time or back from an absence. What it admitted before
   * then, in this process or a former one, Redis may not know.
   */
  reconnectedAt = 0;
  /** What an operator should know about this Redis, in sentences. */
  warnings: readonly string[] = [];
  readonly #options: RedisOptions;
  #link: Link | undefined;
  #awaySince: Milliseconds = 0;
  #probe: Timer | undefined;
  /** Links that connect. */
  readonly #probing = new Set<Link>();
  #isInDoubt = false;
  #isClosed = false;

  private constructor(options: RedisOptions) {
    this.#options = options;
  }

  /**
   * Connects and checks.
   *
   * @throws {RedisUnsuitable} when this Redis must not be used; anything else when it cannot be reached.
   */
  static async open(options: RedisOptions): Promise<RedisConnection> {
    const connection = new RedisConnection(options);
    connection.#link = await connection.#connect();
    connection.reconnectedAt = connection.time.latest(options.clock.monotonic());
    return connection;
  }

  /** Begins apart, for a Redis that was not reached at the start, and goes on trying. */
  static openAway(options: RedisOptions, cause: unknown): RedisConnection {
    const connection = new RedisConnection(options);
    const { clock } = options;
    connection.#awaySince = clock.monotonic();
    connection.time.assume(clock.monotonic(), clock.now());
    connection.#scheduleProbe();
    options.onAway(cause);
    return connection;
  }

  get isAway(): boolean {
    return this.#link === undefined;
  }

  /**
   * What Redis' clock shows, as far as is known; it goes on while Redis is away. Counters of this node that go by it have
   * the same windows as those in Redis.
   */
  now(): Instant {
    return instantAt(this.time.earliest(this.#options.clock.monotonic()));
  }

  /**
   * The last moment in Redis' time at which something sent now may still take effect: the node does not give it up
   * before, unless the connection is lost.
   */
  deadline(): number {
    return this.time.earliest(this.#link?.answerDeadline() ?? 0);
  }

  /** Sends a command. Rejects with `RedisAway`, or with the `ErrorReply` that Redis gave. */
  send(args: readonly string[]): Promise<unknown> {
    return this.#link?.send(args) ?? Promise.reject(new RedisAway(new Error("The node stands apart")));
  }

  /** Runs one of the scripts. Rejects as `send` does. */
  run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const link = this.#link;
    if (!link) return this.send([]);
    const rest = [String(keys.length), ...keys, ...args];
    return link.send(["EVALSHA", link.shaOf.get(script)!, ...rest]).catch((error: unknown) => {
      // Somebody emptied the cache of scripts. Nothing was run.
      if (!(error instanceof ErrorReply && error.message.startsWith("NOSCRIPT"))) throw error;
      return link.send(["EVAL", this.#options.scripts[script]!, ...rest]);
    });
  }

  /** Whoever reads the answers found that Redis cannot do what is asked, such as to write. */
  markAway(cause: unknown): void {
    const link = this.#link;
    if (!link) return;
    this.#link = undefined;
    this.outages++;
    this.#awaySince = this.#options.clock.monotonic();
    link.close();
    this.#scheduleProbe();
    this.#options.onAway(cause);
  }

  /** Closes the connection without waiting for what was asked. */
  close(): void {
    this.#isClosed = true;
    this.#probe?.cancel();
    for (const link of this.#probing) link.close();
    this.#link?.close();
    this.#link = undefined;
  }

  #scheduleProbe(): void {
    if (this.#isClosed) return;
    this.#probe = this.#options.clock.schedule(PROBE_INTERVAL, () => {
      void this.#connect().then(
        (link) => this.#return(link),
        () => this.#scheduleProbe(),
      );
    });
  }

  #return(link: Link): void {
    const now = this.#options.clock.monotonic();
    this.reconnectedAt = this.time.latest(now);
    this.#link = link;
    this.#options.onBack(now - this.#awaySince);
  }

  /** Tries another connection beside a silent one. */
  async #ask(silent: Link): Promise<void> {
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
      // The silent connection decides by itself.
    } finally {
      this.#isInDoubt = false;
    }
  }

  /** A connection that has shown that it can count. */
  async #connect(): Promise<Link> {
    const { clock, timeout, url, scripts } = this.#options;
    const link: Link = new Link(url, clock, timeout, {
      onLoss: (cause) => {
        if (link === this.#link) this.markAway(cause);
      },
      onDoubt: () => {
        if (link === this.#link) void this.#ask(link);
      },
    });
    this.#probing.add(link);
    const limit = clock.schedule(Math.max(CONNECT_TIMEOUT_MIN, 2 * timeout), () => link.close());
    try {
      await link.connect();
      const facts = readFacts(String(await link.send(["INFO"])));
      assertSuitable(facts);
      for (const [name, text] of Object.entries(scripts)) {
        link.shaOf.set(name, String(await link.send(["SCRIPT", "LOAD", text])));
      }
      const sentAt = clock.monotonic();
      const reply = await link.send(["EVAL", probeScript, "1", "latchkey:probe"]);
      const [seconds, microseconds] = reply as [string, string];
      const time = Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
      this.time.learn(sentAt, clock.monotonic(), time);
      await this.#options.admit?.((args) => link.send(args));
      if (this.#isClosed || link.isClosed) throw new Error("The connection was closed");
      this.warnings = warningsAbout(facts);
      return link;
    } catch (error) {
      link.close();
      throw error instanceof RedisAway ? error.cause : error;
    } finally {
      limit.cancel();
      this.#probing.delete(link);
    }
  }
}

/** One socket to Redis, from connecting to its loss. */
class Link {
  /** The digests of the scripts on this server, by name. */
  readonly shaOf = new Map<string, string>();
  isClosed = false;
  /** How many answers have come. */
  replies = 0;
  readonly #client: ReturnType<typeof openClient>;
  readonly #clock: Clock;
  readonly #timeout: Milliseconds;
  readonly #slice: Milliseconds;
  readonly #on: LinkEvents;
  #waiting = 0;
  /** For how long nothing has come while something was asked, as far as it counts: until `#measuredAt`. */
  #quiet: Milliseconds = 0;
  #measuredAt: Milliseconds = 0;
  #watch: Timer | undefined;

  constructor(url: string, clock: Clock, timeout: Milliseconds, on: LinkEvents) {
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

  send(args: readonly string[]): Promise<unknown> {
    if (this.#waiting++ === 0) this.#beginQuiet();
    this.#watch ??= this.#watchOn();
    return this.#client.sendCommand(args as string[]).then(
      (reply: unknown) => {
        this.#receive();
        return reply;
      },
      (error: unknown) => {
        this.#receive();
        if (error instanceof ErrorReply) throw error;
        this.#lose(error);
        throw new RedisAway(error);
      },
    );
  }

  /** The monotonic time until which what is sent now will be waited for at least if nothing comes. */
  answerDeadline(): Milliseconds {
    const now = this.#clock.monotonic();
    if (this.#waiting === 0) return now + this.#timeout;
    const passed = now - this.#measuredAt;
    const counted = passed > LATE_SLICE * this.#slice ? LATE_SLICE_COUNTS * this.#slice : passed;
    return now + this.#timeout - this.#quiet - counted;
  }

  /** Rejects what waits. */
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
      // If it was this process that stood still, replies have arrived and only wait to be read.
      setImmediate(() => {
        this.#watch = undefined;
        if (this.isClosed || this.#waiting === 0) return;
        const now = this.#clock.monotonic();
        const isLate = now - startedAt > LATE_SLICE * length;
        this.#quiet += Math.min(now - this.#measuredAt, isLate ? LATE_SLICE_COUNTS * length : Number.POSITIVE_INFINITY);
        this.#measuredAt = now;
        if (this.#quiet >= this.#timeout) {
          this.#lose(new Error(`Redis said nothing for ${this.#timeout} ms`));
          return;
        }
        if (this.#quiet >= this.#timeout / 2) this.#on.onDoubt();
        this.#watch = this.#watchOn();
      });
    });
  }
}

interface LinkEvents {
  /** The connection is lost, or counts as lost. */
  onLoss(cause: unknown): void;
  /** Nothing has come for half the timeout; may be called again. */
  onDoubt(): void;
}

function openClient(url: string, connectTimeout: Milliseconds) {
  return createClient({
    url,
    RESP: 2,
    name: "latchkey",
    disableOfflineQueue: true,
    maintNotifications: "disabled",
    // The client's own timeouts and reconnections would be further notions of "away".
    commandOptions: { timeout: 0 },
    socket: { connectTimeout, reconnectStrategy: false },
  });
}
