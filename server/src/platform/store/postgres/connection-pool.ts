import pg from "pg";
import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import { mainPlan, programVersion } from "../migrate.ts";
import type { PoolSettings } from "./pool-settings.ts";
import { type ReplyOrder, SafeClient, Session } from "./session.ts";

const INT8 = 20;

/** The client waits this much longer than the server's statement timeout, which ends the statement reliably. */
export const GRACE: Milliseconds = 500;
/** The timeout for the setup of a new connection and for the check of an idle one. */
const PING_TIMEOUT: Milliseconds = 1_000;
/** A connection that was idle for longer is checked before use. */
const IDLE_UNCHECKED_MAX: Milliseconds = 5_000;
/** How long `close` waits for connections in use. */
const CLOSE_MAX: Milliseconds = 2_000;

export interface ConnectionPoolOptions extends PoolSettings {
  name: string;
  url: string;
  clock: Clock;
  replyOrder: ReplyOrder;
  idleInTransactionTimeout: Milliseconds;
  /** Whether work ends as soon as the server is silent: see `Silence`. */
  endsInSilence: boolean;
  /** Called with each new connection before its first use; one that rejects is closed. */
  onConnect?(session: Session, client: pg.ClientBase): Promise<void>;
}

/** Connections for one kind of work: see `PoolSettings`. */
export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #pool: pg.Pool;
  readonly #sessions = new Map<pg.ClientBase, Session>();

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    const { name, url, connectionsMax, connectTimeout, idleTimeout, statementTimeout } = options;
    this.#pool = new pg.Pool({
      connectionString: url,
      max: connectionsMax,
      connectionTimeoutMillis: connectTimeout,
      idleTimeoutMillis: idleTimeout,
      query_timeout: statementTimeout + GRACE,
      // `hasOlderPrograms` reads the version, and nothing else names connections in this form.
      application_name: `latchkey-${programVersion(mainPlan)}-${name}`,
      keepAlive: true,
      keepAliveInitialDelayMillis: 5_000,
      Client: SafeClient,
      onConnect: (client: pg.ClientBase) => this.#setUp(client),
      // All stored integers are below 2^53, so a number represents them exactly.
      types: {
        getTypeParser: (oid: number, format?: never) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
      } as pg.CustomTypesConfig,
    } as pg.PoolConfig);
    this.#pool.on("error", () => {});
    this.#pool.on("remove", (client) => this.#sessions.delete(client));
  }

  /** Runs `work` with a connection; `onTaken` is called when the connection is available. */
  async use<T>(work: (session: Session) => Promise<T>, onTaken?: () => void): Promise<T> {
    const { client, session } = await this.#acquire();
    onTaken?.();
    try {
      return await work(session);
    } finally {
      this.#release(client, session);
    }
  }

  /** Ends all connections at once: what runs on them fails, except for a COMMIT, whose outcome is determined. */
  destroy(): void {
    for (const session of this.#sessions.values()) session.destroy();
  }

  /** Whether a connection beside those of the pool gets an answer soon. */
  async isAnswered(): Promise<boolean> {
    const client = new SafeClient({ connectionString: this.#options.url, connectionTimeoutMillis: PING_TIMEOUT });
    try {
      await client.connect();
      return true;
    } catch {
      return false;
    } finally {
      void client.end().catch(() => {});
    }
  }

  async close(): Promise<void> {
    const timeout = this.#options.clock.schedule(CLOSE_MAX, () => this.destroy());
    await this.#pool.end();
    timeout.cancel();
  }

  async #acquire(): Promise<{ client: pg.PoolClient; session: Session }> {
    const { endsInSilence, replyOrder } = this.#options;
    for (;;) {
      if (endsInSilence && (await replyOrder.silence.isHopeless())) {
        throw new StoreUnavailable("PostgreSQL does not answer");
      }
      const client = await this.#connect();
      const session = this.#sessions.get(client)!;
      if (session.isReusable && (session.idleFor < IDLE_UNCHECKED_MAX || (await isAlive(session)))) {
        return { client, session };
      }
      this.#release(client, session);
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    const { silence } = this.#options.replyOrder;
    silence.begin();
    try {
      const client = await this.#pool.connect();
      // It may have been idle. The setup of a new one has received answers.
      silence.end(null);
      return client;
    } catch (error) {
      silence.end(error);
      throw error;
    }
  }

  #release(client: pg.PoolClient, session: Session): void {
    const { isReusable } = session;
    // The pool would wait for the server to close the connection, and delay work that waits for a connection.
    if (!isReusable) session.destroy();
    client.release(!isReusable);
  }

  async #setUp(client: pg.ClientBase): Promise<void> {
    const { clock, replyOrder, statementTimeout, lockTimeout, idleInTransactionTimeout, onConnect } = this.#options;
    const session = new Session(client, clock, replyOrder);
    // Set after connecting, because poolers accept few settings in the connection request.
    const settings = {
      statement_timeout: statementTimeout,
      lock_timeout: lockTimeout,
      idle_in_transaction_session_timeout: idleInTransactionTimeout,
      tcp_user_timeout: 10_000,
      tcp_keepalives_idle: 10,
      tcp_keepalives_interval: 5,
      tcp_keepalives_count: 3,
      default_transaction_isolation: "'read committed'",
    };
    const statements = Object.entries(settings).map(([name, value]) => `set ${name} = ${value}`);
    const state = "select current_setting('transaction_read_only') = 'on' as is_read_only";
    const results = (await session.query([...statements, state].join("; "), undefined, PING_TIMEOUT)) as unknown;
    const { is_read_only } = (results as pg.QueryResult[]).at(-1)!.rows[0]!;
    if (is_read_only) throw new StoreUnavailable("The PostgreSQL server is a standby or read-only");
    await onConnect?.(session, client);
    this.#sessions.set(client, session);
  }
}

async function isAlive(session: Session): Promise<boolean> {
  try {
    await session.query("select 1", undefined, PING_TIMEOUT);
    return true;
  } catch {
    return false;
  }
}
