import { Kysely, PostgresDialect } from "kysely";
import pg from "pg";
import type { Clock, Milliseconds } from "../../clock/clock.ts";
import type { Schema } from "../schema.ts";
import {
  type Ask,
  type Procedures,
  Rollback,
  type Sql,
  type Store,
  type StoreObserver,
  StoreUnavailable,
} from "../store.ts";
import { CHANGES_CHANNEL } from "./channel.ts";

const ATTEMPTS_MAX = 5;
const INT8 = 20;

/** What `pg` reports when a server cannot be reached or is going away, by SQLSTATE class or system error. */
const UNAVAILABLE =
  /^(08|57P0|53|ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH|EAI_AGAIN)|^(Connection terminated|timeout|Query read timeout)/;
/** Serialization failure and deadlock: nothing was kept, and trying again is the cure. */
const RETRYABLE = new Set(["40001", "40P01"]);

/** How long after a lost COMMIT the server is asked again what became of it. */
const RESOLVE_INTERVAL: Milliseconds = 250;

export interface PostgresOptions {
  url: string;
  clock: Clock;
  observe?: StoreObserver | undefined;
  /** Work with a server all the same that may forget in a crash what it has committed. */
  allowUnsafe?: boolean | undefined;
  /** Connections at most. */
  connectionsMax?: number;
  /** Milliseconds after which a statement without an answer counts as lost. */
  statementTimeout?: Milliseconds;
}

/** The server would acknowledge what it may forget. */
export class UnsafeDatabase extends Error {
  constructor(settings: readonly string[]) {
    const [them, their] = settings.length > 1 ? ["them", "they are"] : ["it", "it is"];
    super(
      `PostgreSQL runs with ${settings.map((name) => `${name} = off`).join(" and ")}: after a crash, credits that were ` +
        `spent would come back and keys that were handed out would be gone. Turn ${them} on where ${their} set (by \`alter ` +
        `system set ${settings[0]} = on\` and a reload, or on the database or its role), or set ` +
        "LATCHKEY_ALLOW_UNSAFE_DATABASE=yes if what is lost does not matter.",
    );
    this.name = "UnsafeDatabase";
  }
}

/**
 * PostgreSQL 14 or newer, reached over a pool; procedures run here and talk to it statement by statement.
 *
 * @throws {UnsafeDatabase} unless that is allowed.
 * @throws {StoreUnavailable}
 */
export async function openPostgresStore<P extends Procedures>(
  options: PostgresOptions,
  procedures: P,
): Promise<Store<P>> {
  const timeout = options.statementTimeout ?? 30_000;
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.connectionsMax ?? 10,
    connectionTimeoutMillis: 5_000,
    statement_timeout: timeout,
    // Longer than the server's own, which ends the statement for certain.
    query_timeout: timeout + 1_000,
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
  const transactions = new Transactions(pool, options);
  if (!options.allowUnsafe) {
    try {
      await attempt(() => requireDurability(pool));
    } catch (error) {
      await pool.end();
      throw error;
    }
  }

  let listener: Listener | undefined;
  let claim: pg.Client | undefined;
  return {
    dialect: "postgres",
    read: (name, argument) => {
      const startedAt = options.clock.monotonic();
      // Its wait for a connection is part of its time: it may take several, one after the other.
      return attempt(() => procedures.reading[name]!(sql, argument, nobody)).finally(() =>
        options.observe?.(name, 0, options.clock.monotonic() - startedAt),
      ) as never;
    },
    transact: (name, argument, answer) => {
      const ask: Ask<unknown, unknown> = async (question) => (answer as (question: unknown) => unknown)(question);
      return attempt(() =>
        transactions.run(name, (transaction) => procedures.writing[name]!(transaction, argument, ask)),
      ) as never;
    },
    async claim() {
      claim ??= await claimDatabase(options);
      return claim !== undefined;
    },
    listen(wake) {
      listener = new Listener(options, wake);
    },
    async close() {
      await listener?.close();
      await claim?.end();
      // Kysely would end it only if it had used it itself.
      await pool.end();
    },
  };
}

/** What a commit means depends on these, for our own role on our own database. */
async function requireDurability(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ name: string }>(
    "select name from pg_settings where name in ('fsync', 'synchronous_commit') and setting = 'off' order by name",
  );
  if (rows.length > 0) throw new UnsafeDatabase(rows.map(({ name }) => name));
}

const nobody = () => Promise.reject(new Error("A reading procedure cannot ask its caller"));

/** Transactions whose outcome is always known in the end: kept, or nothing of it kept. */
class Transactions {
  readonly #pool: pg.Pool;
  readonly #clock: Clock;
  readonly #observe: StoreObserver;
  /** The query builder of each connection, made once. */
  readonly #builders = new WeakMap<pg.PoolClient, Kysely<Schema>>();

  constructor(pool: pg.Pool, { clock, observe = () => {} }: PostgresOptions) {
    this.#pool = pool;
    this.#clock = clock;
    this.#observe = observe;
  }

  async run(name: string, work: (sql: Sql) => Promise<unknown>): Promise<unknown> {
    const askedAt = this.#clock.monotonic();
    const client = await this.#pool.connect();
    const startedAt = this.#clock.monotonic();
    let broken: Error | undefined;
    const lose = (error: Error) => {
      broken = error;
    };
    // A connection that breaks between two statements says so to nobody else.
    client.on("error", lose);
    try {
      const result = await this.#runOn(client, work, lose);
      return result instanceof Rollback ? result.value : result;
    } finally {
      client.off("error", lose);
      this.#observe(name, startedAt - askedAt, this.#clock.monotonic() - startedAt);
      client.release(broken);
    }
  }

  async #runOn(
    client: pg.PoolClient,
    work: (sql: Sql) => Promise<unknown>,
    lose: (error: Error) => void,
  ): Promise<unknown> {
    // Two statements in one message; the transaction's number is what its outcome can be asked by.
    const begun = (await client.query(
      "begin; select pg_current_xact_id()::text as xid, pg_backend_pid() as pid",
    )) as unknown as pg.QueryResult<{ xid: string; pid: number }>[];
    const { xid, pid } = begun[1]!.rows[0]!;
    let result: unknown;
    try {
      result = await work({ db: this.#builderOf(client), dialect: "postgres" });
      if (result instanceof Rollback) {
        await client.query("rollback");
        return result;
      }
    } catch (error) {
      await client.query("rollback").catch(lose);
      throw error;
    }
    try {
      await client.query("commit");
    } catch (error) {
      lose(error as Error);
      if (!isUnavailable(error) || !(await this.#wasKept(xid, pid))) throw error;
    }
    return result;
  }

  /**
   * Asks what became of a COMMIT, on another connection, until there is an answer: whoever waits for it must be told
   * the truth, and there is none to tell before.
   */
  async #wasKept(transactionId: string, backendPid: number): Promise<boolean> {
    for (;;) {
      try {
        const { rows } = await this.#pool.query<{ status: string | null }>(
          "select pg_xact_status($1::text::xid8) as status",
          [transactionId],
        );
        const status = rows[0]!.status;
        if (status !== "in progress") return status === "committed";
        // The server still waits for a client that is gone; without it the transaction ends, one way or the other.
        await this.#pool.query("select pg_terminate_backend($1)", [backendPid]);
      } catch (error) {
        // 22023: this server never gave that number, so it is not the one that lost it, and it kept nothing.
        if ((error as { code?: string }).code === "22023") return false;
        if (!isUnavailable(error)) throw error;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#clock.schedule(RESOLVE_INTERVAL, resolve);
      await promise;
    }
  }

  #builderOf(client: pg.PoolClient): Kysely<Schema> {
    let builder = this.#builders.get(client);
    if (!builder) {
      // The connection is ours already, and given back by us.
      const borrowed = { query: client.query.bind(client), release: () => {} };
      const pool = { connect: async () => borrowed, end: async () => {}, options: {} } as never;
      builder = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
      this.#builders.set(client, builder);
    }
    return builder;
  }
}

function isUnavailable(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string };
  return UNAVAILABLE.test(code ?? message ?? "");
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await work();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code && RETRYABLE.has(code) && attempts < ATTEMPTS_MAX) continue;
      if (isUnavailable(error)) throw new StoreUnavailable("PostgreSQL cannot be reached", { cause: error });
      throw error;
    }
  }
}

// Any fixed number will do, as long as nothing else on the server takes the same one.
const CLAIM_LOCK = 7_262_837_123_003;

/** A connection that holds the database for this process as long as it lives; undefined when another one has it. */
async function claimDatabase({ url }: PostgresOptions): Promise<pg.Client | undefined> {
  const client = new pg.Client({ connectionString: url, application_name: "latchkey-claim", keepAlive: true });
  // A server that restarts takes everybody's claim along; the processes that were there go on.
  client.on("error", () => {});
  await client.connect();
  const { rows } = await client.query<{ mine: boolean }>("select pg_try_advisory_lock($1) as mine", [CLAIM_LOCK]);
  if (rows[0]!.mine) return client;
  await client.end();
  return undefined;
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
