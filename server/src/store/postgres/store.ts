import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { Clock } from "../../clock/clock.ts";
import type { Schema } from "../schema.ts";
import { type Procedures, Rollback, type Sql, type Store, StoreUnavailable } from "../store.ts";
import { CHANGES_CHANNEL } from "./channel.ts";

const ATTEMPTS_MAX = 5;
const INT8 = 20;

/** What `pg` reports when a server cannot be reached or is going away, by SQLSTATE class or system error. */
const UNAVAILABLE =
  /^(08|57P0|53|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|EAI_AGAIN)|^(Connection terminated|timeout)/;
/** Serialization failure and deadlock: nothing was kept, and trying again is the cure. */
const RETRYABLE = new Set(["40001", "40P01"]);

export interface PostgresOptions {
  url: string;
  clock: Clock;
  /** Connections at most. */
  connectionsMax?: number;
}

/** PostgreSQL 14 or newer, reached over a pool; procedures run here and talk to it statement by statement. */
export async function openPostgresStore<P extends Procedures>(
  options: PostgresOptions,
  procedures: P,
): Promise<Store<P>> {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 30_000,
    application_name: "latchkey",
    // Every integer of ours stays below 2^53 (contract A1), so a number carries it exactly.
    types: {
      getTypeParser: (oid: number, format?: never) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
    } as pg.CustomTypesConfig,
  });
  // An idle connection that breaks is replaced at its next use; there is no caller to tell.
  pool.on("error", () => {});
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  const sql: Sql = { db, dialect: "postgres" };

  let listener: Listener | undefined;
  return {
    dialect: "postgres",
    read: (name, argument) => attempt(() => procedures.reading[name]!(sql, argument)) as never,
    transact: (name, argument) =>
      attempt(() => transact(sql, (transaction) => procedures.writing[name]!(transaction, argument))) as never,
    listen(wake) {
      listener = new Listener(options, wake);
    },
    async close() {
      await listener?.close();
      await db.destroy();
    },
  };
}

async function transact(sql: Sql, work: (sql: Sql) => Promise<unknown>): Promise<unknown> {
  let rolledBack: Rollback<unknown> | undefined;
  try {
    return await sql.db.transaction().execute(async (db) => {
      const result = await work({ db, dialect: sql.dialect });
      if (!(result instanceof Rollback)) return result;
      rolledBack = result;
      throw result;
    });
  } catch (error) {
    if (rolledBack) return rolledBack.value;
    throw error;
  }
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await work();
    } catch (error) {
      const { code, message } = error as { code?: string; message?: string };
      if (code && RETRYABLE.has(code) && attempts < ATTEMPTS_MAX) continue;
      if (UNAVAILABLE.test(code ?? message ?? "")) {
        throw new StoreUnavailable("PostgreSQL cannot be reached", { cause: error });
      }
      throw error;
    }
  }
}

/** A connection that waits for notifications, and comes back by itself. Losing one costs nothing but time. */
class Listener {
  readonly #options: PostgresOptions;
  readonly #wake: () => void;
  #client: pg.Client | undefined;
  #closed = false;

  constructor(options: PostgresOptions, wake: () => void) {
    this.#options = options;
    this.#wake = wake;
    void this.#connect();
  }

  async #connect(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#options.url, application_name: "latchkey-listen" });
    this.#client = client;
    const retry = () => {
      if (this.#client !== client || this.#closed) return;
      this.#client = undefined;
      client.end().catch(() => {});
      this.#options.clock.schedule(1_000, () => void this.#connect());
    };
    client.on("error", retry);
    client.on("end", retry);
    client.on("notification", this.#wake);
    try {
      await client.connect();
      await client.query(`listen ${CHANGES_CHANNEL}`);
      if (this.#closed) await client.end();
    } catch {
      retry();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#client?.end().catch(() => {});
  }
}
