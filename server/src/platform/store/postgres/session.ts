import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { every } from "../../../../../engine/src/clock/every.ts";
import { systemClock } from "../../../../../engine/src/clock/system.ts";
import type { Schema } from "../schema.ts";
import type { Sql } from "../store.ts";
import { postgresDialect } from "./dialect.ts";
import { isAnswer, isReadOnly, isRejection, isSilence } from "./failures.ts";

/** SQLSTATE of the warning that a COMMIT did not wait for its synchronous standby. */
const WARNING = "01000";

/**
 * Orders queries and replies over all connections. When a query gets no reply, all connections whose last reply is older
 * than that query are suspect, because a firewall that drops packets drops those of every old connection.
 */
export class ReplyOrder {
  readonly silence = new Silence();
  #events = 0;
  #suspectBefore = 0;

  next(): number {
    return ++this.#events;
  }

  /** A query sent at `sent` got no reply. */
  suspect(sent: number): void {
    if (sent > this.#suspectBefore) this.#suspectBefore = sent;
  }

  /** Marks all current connections: their server is no longer the primary. */
  suspectAll(): void {
    this.suspect(this.next());
  }

  isSuspect(lastReply: number): boolean {
    return lastReply < this.#suspectBefore;
  }
}

/** How often it is checked whether the server has sent something. */
const SILENCE_INTERVAL: Milliseconds = 500;
/** Checks in a row without an answer after which the server counts as silent: 2 seconds. */
const SILENT_CHECKS = 4;

/**
 * Notices that the server answers on no connection while something waits for it. A blocked event loop does not count as
 * silence, because it delays the checks too. Something must ask the server often, as the feed of changes does: a single
 * statement that takes long is silent by itself.
 */
export class Silence {
  #waiting = 0;
  #checks = 0;
  #tryAgain: (() => Promise<boolean>) | undefined;
  /** Whether a new connection gets an answer, in this silence. */
  #isAnswered: Promise<boolean> | undefined;
  #timer: { cancel(): void } | undefined;

  /**
   * Starts the checks, in real time, as the timeouts of `pg` are. `tryAgain` is called once in each silence, and says whether
   * a new connection gets an answer.
   */
  watch(tryAgain: () => Promise<boolean>): void {
    this.#tryAgain = tryAgain;
    this.#timer ??= every(systemClock, SILENCE_INTERVAL, async () => this.#check());
  }

  /** Whether work need not try: the server is silent, also to a new connection, and something else waits for its answer. */
  async isHopeless(): Promise<boolean> {
    return this.#isAnswered !== undefined && !(await this.#isAnswered) && this.#waiting > 0;
  }

  /** Something waits for the server from here on, until `end`. */
  begin(): void {
    this.#waiting++;
  }

  /** The wait is over. `error`: why; undefined: with an answer; null: without one, as a connection was there. */
  end(error: unknown): void {
    this.#waiting--;
    if (error !== null && (error === undefined || isAnswer(error))) this.#hear();
  }

  close(): void {
    this.#timer?.cancel();
  }

  #hear(): void {
    this.#checks = 0;
    this.#isAnswered = undefined;
  }

  #check(): void {
    if (this.#waiting === 0 || ++this.#checks !== SILENT_CHECKS) return;
    this.#isAnswered = this.#tryAgain!();
    void this.#isAnswered.then((isAnswered) => isAnswered && this.#hear());
  }
}

/** A `pg.Client` whose error events never end the process. */
export class SafeClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // A query in progress rejects. A connection that breaks while unused is replaced at its next use.
    this.on("error", () => {});
  }
}

/** A connection and its observed state. */
export class Session {
  readonly sql: Sql;
  readonly #client: pg.ClientBase;
  readonly #clock: Clock;
  readonly #replyOrder: ReplyOrder;
  #lastReply: number;
  #lastReplyAt: Milliseconds;
  #pending = 0;
  #failure: Error | undefined;
  #warned = false;
  /** How long a query waits for its answer; undefined: for as long as the pool says. */
  queryTimeout: Milliseconds | undefined;
  /** The current marker of transactions: see `Transactions`. */
  marker: { id: string; transactions: number } | undefined;

  constructor(client: pg.ClientBase, clock: Clock, replyOrder: ReplyOrder) {
    this.#client = client;
    this.#clock = clock;
    this.#replyOrder = replyOrder;
    this.#lastReply = replyOrder.next();
    this.#lastReplyAt = clock.monotonic();
    client.on("error", (error) => {
      this.#failure ??= error;
    });
    client.on("notice", (notice) => {
      if (notice.code === WARNING) this.#warned = true;
    });
    const borrowed = { query: (text: string, values?: unknown[]) => this.query(text, values), release: () => {} };
    const pool = { connect: async () => borrowed, end: async () => {}, options: {} } as never;
    this.sql = { db: new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) }), dialect: postgresDialect };
  }

  // biome-ignore lint/suspicious/noExplicitAny: the statement determines the type of rows.
  async query<R extends pg.QueryResultRow = any>(text: string, values?: unknown[], timeout = this.queryTimeout) {
    const sent = this.#replyOrder.next();
    const { silence } = this.#replyOrder;
    this.#pending++;
    silence.begin();
    try {
      const config = { text, ...(values && { values }), ...(timeout !== undefined && { query_timeout: timeout }) };
      const result = await this.#client.query<R>(config);
      this.#receive();
      silence.end(undefined);
      return result;
    } catch (error) {
      silence.end(error);
      if (isRejection(error)) this.#receive();
      if (!isRejection(error) || isReadOnly(error)) this.#failure ??= error as Error;
      if (isSilence(error)) this.#replyOrder.suspect(sent);
      throw error;
    } finally {
      this.#pending--;
    }
  }

  get isSuspect(): boolean {
    return this.#replyOrder.isSuspect(this.#lastReply);
  }

  /** Milliseconds since the last reply. */
  get idleFor(): Milliseconds {
    return this.#clock.monotonic() - this.#lastReplyAt;
  }

  /** Whether the connection has failed. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Whether other work may use the connection: no transaction and no query is open. False when in doubt. */
  get isReusable(): boolean {
    // After an error, a later packet contains the transaction state.
    const client = this.#client as pg.Client & { readyForQuery: boolean };
    const isIdle = this.#pending === 0 && client.readyForQuery && client.getTransactionStatus() === "I";
    return !this.hasFailed && isIdle && !this.isSuspect;
  }

  /** Whether the server has sent a warning since the last call. */
  takeWarning(): boolean {
    const warned = this.#warned;
    this.#warned = false;
    return warned;
  }

  /** Closes the socket without waiting for the server, which may be unreachable. */
  destroy(): void {
    this.#failure ??= new Error("Connection terminated");
    (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  #receive(): void {
    this.#lastReply = this.#replyOrder.next();
    this.#lastReplyAt = this.#clock.monotonic();
  }
}
