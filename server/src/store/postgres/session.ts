import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { Clock, Milliseconds } from "../../clock/clock.ts";
import type { Schema } from "../schema.ts";
import type { Sql } from "../store.ts";
import { isReadOnly, isRejection, isSilence } from "./failures.ts";

/** SQLSTATE of the warning that a COMMIT did not wait for its synchronous standby. */
const WARNING = "01000";

/**
 * Orders what is heard from the server over all connections. When one stays silent, those that were last heard before
 * it was asked are suspect too: a firewall that drops packets drops those of every old connection.
 */
export class Hearing {
  #events = 0;
  #suspectBefore = 0;

  next(): number {
    return ++this.#events;
  }

  /** A query sent at `asked` was never answered. */
  suspect(asked: number): void {
    if (asked > this.#suspectBefore) this.#suspectBefore = asked;
  }

  /** Every connection there is belongs to a server that is no longer the one. */
  suspectAll(): void {
    this.suspect(this.next());
  }

  isSuspect(heard: number): boolean {
    return heard < this.#suspectBefore;
  }
}

/** A `pg.Client` on which no error can end the process, in whichever state it comes. */
export class SafeClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // Callers are told by their query, which rejects; one that breaks unused is replaced at its next use.
    this.on("error", () => {});
  }
}

/** A connection as one piece of work has it, and what is known of its state. */
export class Session {
  readonly sql: Sql;
  readonly #client: pg.ClientBase;
  readonly #clock: Clock;
  readonly #hearing: Hearing;
  #heard: number;
  #heardAt: Milliseconds;
  #pending = 0;
  #failure: Error | undefined;
  #warned = false;
  /** Marks transactions: see `Transactions`. */
  marker: { id: string; transactions: number } | undefined;

  constructor(client: pg.ClientBase, clock: Clock, hearing: Hearing) {
    this.#client = client;
    this.#clock = clock;
    this.#hearing = hearing;
    this.#heard = hearing.next();
    this.#heardAt = clock.monotonic();
    client.on("error", (error) => {
      this.#failure ??= error;
    });
    client.on("notice", (notice) => {
      if (notice.code === WARNING) this.#warned = true;
    });
    const borrowed = { query: (text: string, values?: unknown[]) => this.query(text, values), release: () => {} };
    const pool = { connect: async () => borrowed, end: async () => {}, options: {} } as never;
    this.sql = { db: new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) }), dialect: "postgres" };
  }

  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement says.
  async query<R extends pg.QueryResultRow = any>(text: string, values?: unknown[], timeout?: Milliseconds) {
    const asked = this.#hearing.next();
    this.#pending++;
    try {
      const config = { text, ...(values && { values }), ...(timeout !== undefined && { query_timeout: timeout }) };
      const result = await this.#client.query<R>(config);
      this.#receive();
      return result;
    } catch (error) {
      if (isRejection(error)) this.#receive();
      if (!isRejection(error) || isReadOnly(error)) this.#failure ??= error as Error;
      if (isSilence(error)) this.#hearing.suspect(asked);
      throw error;
    } finally {
      this.#pending--;
    }
  }

  get isSuspect(): boolean {
    return this.#hearing.isSuspect(this.#heard);
  }

  /** Milliseconds since the server last answered. */
  get idleFor(): Milliseconds {
    return this.#clock.monotonic() - this.#heardAt;
  }

  /** Whether nothing is wrong with it so far. */
  get isWhole(): boolean {
    return this.#failure === undefined;
  }

  /** Whether the next work may have it: in no transaction, with nothing under way. When in doubt, no. */
  get isReusable(): boolean {
    // After an error the server says in a later packet which state it is in.
    const client = this.#client as pg.Client & { readyForQuery: boolean };
    const isIdle = this.#pending === 0 && client.readyForQuery && client.getTransactionStatus() === "I";
    return this.isWhole && isIdle && !this.isSuspect;
  }

  /** Whether the server has warned since the last time this was asked. */
  takeWarning(): boolean {
    const warned = this.#warned;
    this.#warned = false;
    return warned;
  }

  /** Closes the socket without waiting for the other side, which may be gone. */
  destroy(): void {
    this.#failure ??= new Error("Connection terminated");
    (this.#client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  }

  #receive(): void {
    this.#heard = this.#hearing.next();
    this.#heardAt = this.#clock.monotonic();
  }
}
