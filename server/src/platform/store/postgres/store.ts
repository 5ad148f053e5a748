import type pg from "pg";
import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import type { Changes } from "../../../../../engine/src/directory/changes.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import { OperatorError } from "../../../log/operator-error.ts";
import { monthlyTableNames } from "../monthly-tables.ts";
import { WRITES_STOPPED, WRITES_STOPPED_CODE } from "../move/marks.ts";
import type { Ask, PoolName, Procedures, Store, StoreObserver } from "../store.ts";
import { CHANGES_CHANNEL } from "./channel.ts";
import { PostgresClaim } from "./claim.ts";
import { ConnectionPool } from "./connection-pool.ts";
import { isLockTimeout, isLost, isRetryable, isUnavailable, remedyOf } from "./failures.ts";
import { IDLE_IN_TRANSACTION_TIMEOUT, type InternalPoolName, LOCK_TURNS, poolSettings } from "./pool-settings.ts";
import { ReplyOrder, type Session } from "./session.ts";
import { NotBegun, Transactions } from "./transactions.ts";

const ATTEMPTS_MAX = 5;

export interface PostgresOptions {
  url: string;
  clock: Clock;
  observe?: StoreObserver | undefined;
  /** Accept a server that may lose commits in a crash. */
  allowUnsafe?: boolean | undefined;
  /** The most connections of the pool `control`. */
  connectionsMax?: number;
  /** An upper bound on every pool's statement timeout. */
  statementTimeout?: Milliseconds;
  /** After this time without a message from the client, the server ends an open transaction. */
  idleInTransactionTimeout?: Milliseconds;
}

/** The server may lose commits that it has acknowledged. */
export class UnsafeDatabase extends OperatorError {
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

/** The role or the contents of the database keep the service from working. */
export class UnsuitableDatabase extends OperatorError {
  constructor(cause: Error, remedy: string) {
    super(`PostgreSQL reports: ${cause.message}. ${remedy}`, { cause });
    this.name = "UnsuitableDatabase";
  }
}

/**
 * PostgreSQL 14 or newer, with one small connection pool per kind of work. Procedures run in this thread and send one
 * statement at a time.
 *
 * @throws {UnsafeDatabase} when the server may lose commits, unless `allowUnsafe` is set.
 * @throws {UnsuitableDatabase} here and by procedures, when the role may not do what the service needs.
 * @throws {StoreUnavailable}
 */
export async function openPostgresStore<P extends Procedures>(
  options: PostgresOptions,
  procedures: P,
): Promise<Store<P>> {
  const { url, clock, observe = () => {} } = options;
  const replyOrder = new ReplyOrder();
  let wake: (() => void) | undefined;
  const listenForChanges = async (session: Session, client: pg.ClientBase) => {
    client.on("notification", () => wake?.());
    await session.query(`listen ${CHANGES_CHANNEL}`);
  };
  const openPool = (name: InternalPoolName): ConnectionPool => {
    const settings = poolSettings[name];
    return new ConnectionPool({
      ...settings,
      name,
      url,
      clock,
      replyOrder,
      connectionsMax:
        name === "control" ? (options.connectionsMax ?? settings.connectionsMax) : settings.connectionsMax,
      statementTimeout: Math.min(settings.statementTimeout, options.statementTimeout ?? Infinity),
      idleInTransactionTimeout: options.idleInTransactionTimeout ?? IDLE_IN_TRANSACTION_TIMEOUT,
      endsInSilence: name === "control",
      ...(name === "feed" && { onConnect: listenForChanges }),
    });
  };
  const pools = new Map<InternalPoolName, ConnectionPool>();
  const pool = (name: InternalPoolName): ConnectionPool => {
    const opened = pools.get(name) ?? openPool(name);
    pools.set(name, opened);
    // Only the feed asks often enough to tell a silent server from a statement that takes long.
    if (name === "feed") {
      replyOrder.silence.watch(() => {
        pool("control").destroy();
        return pool("control").isAnswered();
      });
    }
    return opened;
  };
  const poolOf = (procedure: string): PoolName => procedures.pools?.[procedure] ?? "control";
  const transactions = new Transactions(clock, procedures.hasMarkers ? pool("resolve") : undefined);
  const close = async () => {
    transactions.close();
    replyOrder.silence.close();
    await Promise.all([...pools.values()].map((opened) => opened.close()));
  };

  if (!options.allowUnsafe) {
    try {
      await attempt(() => pool("control").use(requireDurability));
    } catch (error) {
      await close();
      throw error;
    }
  }

  let writesInFlight = 0;
  return {
    isEmbedded: false,
    monthlyTables: monthlyTableNames,
    read: (name, argument) => {
      const startedAt = clock.monotonic();
      const poolName = poolOf(name);
      const work = async (session: Session) => {
        try {
          const result = await procedures.reading[name]!(session.sql, argument, rejectQuestion);
          // Other connections may still go to the former server.
          if (poolName === "feed" && (result as Changes).isLost) replyOrder.suspectAll();
          return result;
        } catch (error) {
          throw isLost(error) ? new NotBegun(error) : error;
        }
      };
      // The time of a read includes its wait for a connection.
      return attempt(() => pool(poolName).use(work)).finally(() =>
        observe(name, 0, clock.monotonic() - startedAt),
      ) as never;
    },
    transact: (name, argument, answer) => {
      const ask: Ask<unknown, unknown> = async (question) => (answer as (question: unknown) => unknown)(question);
      const poolName = poolOf(name);
      // Before migrations have run, the table of markers may be missing.
      const isMarked = poolName !== "maintenance";
      writesInFlight++;
      const askedFirstAt = clock.monotonic();
      const isOver = () => clock.monotonic() - askedFirstAt >= (LOCK_TURNS[poolName] ?? 0);
      const done = attempt(() => {
        const askedAt = clock.monotonic();
        let startedAt = askedAt;
        return pool(poolName)
          .use(
            (session) => {
              const isLong = procedures.mayTakeLong?.(name, argument as never) ?? false;
              return transactions.run(session, { isMarked, isLong }, (sql) =>
                procedures.writing[name]!(sql, argument, ask),
              );
            },
            () => {
              startedAt = clock.monotonic();
            },
          )
          .finally(() => observe(name, startedAt - askedAt, clock.monotonic() - startedAt));
      }, isOver);
      return done.finally(() => writesInFlight--) as never;
    },
    get writesInFlight() {
      return writesInFlight;
    },
    claim: (request) => attempt(() => PostgresClaim.take(options.url, clock, request)),
    listen(callback) {
      wake = callback;
    },
    async close() {
      await close();
    },
  };
}

/** Checks the settings that make commits durable, as they apply to this role and database. */
async function requireDurability(session: Session): Promise<void> {
  const { rows } = await session.query<{ name: string }>(
    "select name from pg_settings where name in ('fsync', 'synchronous_commit') and setting = 'off' order by name",
  );
  if (rows.length > 0) throw new UnsafeDatabase(rows.map(({ name }) => name));
}

const rejectQuestion = () => Promise.reject(new Error("A reading procedure cannot ask its caller"));

/** Runs work again where that can help. `isOver`: whether it has waited long enough for locks. */
async function attempt<T>(work: () => Promise<T>, isOver = () => true): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await work();
    } catch (error) {
      const isTransient = isRetryable(error) || error instanceof NotBegun || (isLockTimeout(error) && !isOver());
      if (isTransient && attempts < ATTEMPTS_MAX) continue;
      if ((error as pg.DatabaseError).code === WRITES_STOPPED_CODE) throw new StoreUnavailable(WRITES_STOPPED);
      const remedy = remedyOf(error);
      if (remedy !== undefined) throw new UnsuitableDatabase(error as Error, remedy);
      if (!isUnavailable(error)) throw error;
      throw new StoreUnavailable(`PostgreSQL cannot be reached: ${(error as Error).message}`, { cause: error });
    }
  }
}
