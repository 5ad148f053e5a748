import type { Clock, Milliseconds } from "../../clock/clock.ts";
import { alphanumeric } from "../../random/random.ts";
import { systemRandom } from "../../random/system.ts";
import { Rollback, type Sql, StoreUnavailable } from "../store.ts";
import { isLost, isRejection, isRetryable, isUnavailable } from "./failures.ts";
import type { Lane } from "./lane.ts";
import type { Session } from "./session.ts";

/** How long after a failed attempt it is asked again what became of a COMMIT. */
const RESOLVE_INTERVAL: Milliseconds = 250;

/** How long the message that begins a transaction may take. Shorter than a statement's: nothing has to be done for it. */
const BEGIN_TIMEOUT: Milliseconds = 2_000;

/** The connection was lost before the transaction had begun: another one may run it. */
export class NotBegun extends StoreUnavailable {
  constructor(cause: unknown) {
    super("The connection was lost before the transaction had begun", { cause });
    this.name = "NotBegun";
  }
}

/**
 * Transactions that one row marks. Each is a new version of that row, and while an old snapshot is held anywhere in the
 * cluster, all of them are in the way of the next.
 */
const TRANSACTIONS_PER_MARKER = 1_000;

interface Marker {
  /** The row in `transaction_markers`. */
  readonly id: string;
  /** The number of the transaction among those that this row marks. */
  readonly transaction: number;
}

/**
 * Transactions whose outcome is always known in the end: everything kept, or nothing.
 *
 * Each writes its number into a row of its connection (`transaction_markers`), in the message that begins it. When the
 * answer to a COMMIT is lost, that row says what became of it, on whichever server is the primary by then.
 */
export class Transactions {
  readonly #clock: Clock;
  /** Undefined: the schema has no markers, and a COMMIT in doubt is a failure. */
  readonly #resolving: Lane | undefined;
  #closed = false;

  constructor(clock: Clock, resolving: Lane | undefined) {
    this.#clock = clock;
    this.#resolving = resolving;
  }

  /** Runs `work` in one transaction. Resolves after its commit, rejects when nothing was kept. */
  async run(session: Session, isMarked: boolean, work: (sql: Sql) => Promise<unknown>): Promise<unknown> {
    const marker = isMarked && this.#resolving ? nextMarker(session) : undefined;
    await begin(session, marker);
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

  /** Gives up on outcomes that cannot be found out. */
  close(): void {
    this.#closed = true;
  }

  async #commit(session: Session, marker: Marker | undefined): Promise<void> {
    session.takeWarning();
    let failure: unknown;
    try {
      const { command } = await session.query("commit");
      // What the server answers when a statement had failed and its failure was swallowed.
      if (command !== "COMMIT") throw new Error("A transaction went on after one of its statements had failed");
      if (!session.takeWarning()) return;
      failure = new StoreUnavailable("The commit did not wait for its synchronous standby");
    } catch (error) {
      if (isRejection(error) || !isUnavailable(error)) throw error;
      failure = error;
    }
    if (!marker || !(await this.#wasKept(marker))) throw failure;
  }

  /**
   * Finds out what became of a COMMIT, and does not return before there is an answer.
   *
   * The statement waits for the row while the original is under way on the same server, so afterwards the original
   * either was kept or never will be. It writes in any case: its own commit proves that a synchronous standby has
   * everything before it, the original included. A server that never had the original, such as a new primary, has an
   * older version of the row or none.
   */
  async #wasKept({ id, transaction }: Marker): Promise<boolean> {
    for (;;) {
      if (this.#closed) throw new StoreUnavailable("The database closed before the outcome of a commit was known");
      try {
        const kept = await this.#resolving!.use(async (session) => {
          session.takeWarning();
          const { rows } = await session.query<{ transaction: number }>(
            `insert into transaction_markers (id, transaction) values ($1, 0)
             on conflict (id) do update set used_at = excluded.used_at returning transaction`,
            [id],
          );
          return session.takeWarning() ? undefined : rows[0]!.transaction === transaction;
        });
        if (kept !== undefined) return kept;
      } catch (error) {
        if (!isUnavailable(error) && !isRetryable(error) && !(error instanceof StoreUnavailable)) throw error;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#clock.schedule(RESOLVE_INTERVAL, resolve);
      await promise;
    }
  }
}

/** @throws {NotBegun} when the connection broke, which may have happened long before. */
async function begin(session: Session, marker: Marker | undefined): Promise<void> {
  try {
    await session.query(marker ? `begin; ${writing(marker)}` : "begin", undefined, BEGIN_TIMEOUT);
  } catch (error) {
    if (isLost(error)) throw new NotBegun(error);
    await rollBack(session);
    throw error;
  }
}

/** Over a connection that is broken, the server does it by itself. */
async function rollBack(session: Session): Promise<void> {
  if (session.isWhole) await session.query("rollback").catch(() => {});
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
