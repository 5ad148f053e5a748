import type { Clock, Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { pause } from "../../../../../engine/src/clock/pause.ts";
import { StoreUnavailable } from "../../../../../engine/src/errors/store-unavailable.ts";
import { alphanumeric } from "../../../../../engine/src/random/random.ts";
import { systemRandom } from "../../../../../engine/src/random/system.ts";
import { onlyRow } from "../only-row.ts";
import { Rollback, type Sql } from "../store.ts";
import { type ConnectionPool, GRACE } from "./connection-pool.ts";
import { isLost, isRejection, isRetryable, isUnavailable } from "./failures.ts";
import { LONG_WORK } from "./pool-settings.ts";
import type { Session } from "./session.ts";

/** The interval between attempts to determine the outcome of a COMMIT. */
const RESOLVE_INTERVAL: Milliseconds = 250;

/** The timeout for the message that begins a transaction, which needs no work in the server. */
const BEGIN_TIMEOUT: Milliseconds = 2_000;

/** The timeouts of a transaction that may take long. */
const LONG_WORK_SETTINGS = [
  `set local statement_timeout = ${LONG_WORK.statementTimeout}`,
  `set local lock_timeout = ${LONG_WORK.lockTimeout}`,
];

/** The connection was lost before the transaction began, so it can run on another connection. */
export class NotBegun extends StoreUnavailable {
  constructor(cause: unknown) {
    super("The connection was lost before the transaction had begun", { cause });
    this.name = "NotBegun";
  }
}

/**
 * Transactions per marker row. Each one adds a version of the row, and while any transaction in the cluster holds an old
 * snapshot, every update must skip all of these versions.
 */
const TRANSACTIONS_PER_MARKER = 1_000;

interface Marker {
  /** The row in `transaction_markers`. */
  readonly id: string;
  /** The number of the transaction within this row. */
  readonly transaction: number;
}

/**
 * Runs transactions whose outcome can always be determined: committed or rolled back.
 *
 * Each transaction writes its number into a row of its connection (`transaction_markers`), in the message that begins it.
 * When the reply to a COMMIT is lost, that row determines the outcome, even after a failover to another primary.
 */
export class Transactions {
  readonly #clock: Clock;
  /** Undefined: the schema has no markers, and a COMMIT without a reply counts as failed. */
  readonly #resolving: ConnectionPool | undefined;
  #closed = false;

  constructor(clock: Clock, resolving: ConnectionPool | undefined) {
    this.#clock = clock;
    this.#resolving = resolving;
  }

  /** Runs `work` in one transaction. Resolves after the commit; rejects after a rollback. */
  async run(
    session: Session,
    { isMarked, isLong }: { isMarked: boolean; isLong: boolean },
    work: (sql: Sql) => Promise<unknown>,
  ): Promise<unknown> {
    const marker = isMarked && this.#resolving ? nextMarker(session) : undefined;
    if (!isLong) return this.#run(session, marker, [], work);
    session.queryTimeout = LONG_WORK.statementTimeout + GRACE;
    try {
      return await this.#run(session, marker, LONG_WORK_SETTINGS, work);
    } finally {
      session.queryTimeout = undefined;
    }
  }

  async #run(
    session: Session,
    marker: Marker | undefined,
    settings: readonly string[],
    work: (sql: Sql) => Promise<unknown>,
  ): Promise<unknown> {
    await begin(session, marker, settings);
    let result: unknown;
    try {
      result = await work(session.sql);
      if (result instanceof Rollback) {
        await session.query("rollback");
        return result.value;
      }
    } catch (error) {
      await rollBack(session);
      throw error;
    }
    await this.#commit(session, marker);
    return result;
  }

  /** Stops waiting for outcomes that cannot be determined. */
  close(): void {
    this.#closed = true;
  }

  async #commit(session: Session, marker: Marker | undefined): Promise<void> {
    session.takeWarning();
    let failure: unknown;
    try {
      const { command } = await session.query("commit");
      // The server replies with ROLLBACK if a statement failed and the error was ignored.
      if (command !== "COMMIT") throw new Error("A transaction went on after one of its statements had failed");
      if (!session.takeWarning()) return;
      failure = new StoreUnavailable("The commit did not wait for its synchronous standby");
    } catch (error) {
      if (isRejection(error) || !isUnavailable(error)) throw error;
      failure = error;
    }
    if (!marker || !(await this.#wasCommitted(marker))) throw failure;
  }

  /**
   * Determines the outcome of a COMMIT, and retries until it succeeds.
   *
   * The statement waits for the row's lock while the original transaction is open on the same server, so after it the
   * outcome is final. The statement always writes: its commit proves that a synchronous standby has everything before it,
   * including the original. A server that never had the original, such as a new primary, has an older version of the row
   * or none.
   */
  async #wasCommitted({ id, transaction }: Marker): Promise<boolean> {
    for (;;) {
      if (this.#closed) throw new StoreUnavailable("The database closed before the outcome of a commit was known");
      try {
        const isCommitted = await this.#resolving!.use(async (session) => {
          session.takeWarning();
          const written = await session.query<{ transaction: number }>(
            `insert into transaction_markers (id, transaction) values ($1, 0)
             on conflict (id) do update set used_at = excluded.used_at returning transaction`,
            [id],
          );
          return session.takeWarning() ? undefined : onlyRow(written).transaction === transaction;
        });
        if (isCommitted !== undefined) return isCommitted;
      } catch (error) {
        if (!isUnavailable(error) && !isRetryable(error) && !(error instanceof StoreUnavailable)) throw error;
      }
      await pause(this.#clock, RESOLVE_INTERVAL);
    }
  }
}

/** @throws {NotBegun} when the connection was broken, possibly long before. */
async function begin(session: Session, marker: Marker | undefined, settings: readonly string[]): Promise<void> {
  try {
    const statements = ["begin", ...settings, ...(marker ? [writing(marker)] : [])];
    await session.query(statements.join("; "), undefined, BEGIN_TIMEOUT);
  } catch (error) {
    if (isLost(error)) throw new NotBegun(error);
    await rollBack(session);
    throw error;
  }
}

/** The server rolls back by itself when a connection breaks. */
async function rollBack(session: Session): Promise<void> {
  if (!session.hasFailed) await session.query("rollback").catch(() => {});
}

function nextMarker(session: Session): Marker {
  if (session.marker === undefined || session.marker.transactions >= TRANSACTIONS_PER_MARKER) {
    session.marker = { id: alphanumeric(systemRandom, 22), transactions: 0 };
  }
  return { id: session.marker.id, transaction: ++session.marker.transactions };
}

function writing({ id, transaction }: Marker): string {
  return (
    `insert into transaction_markers (id, transaction) values ('${id}', ${transaction}) ` +
    "on conflict (id) do update set transaction = excluded.transaction, used_at = excluded.used_at"
  );
}
