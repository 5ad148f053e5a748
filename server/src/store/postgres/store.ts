import type pg from "pg";
import type { Clock, Milliseconds } from "../../clock/clock.ts";
import { OperatorError } from "../../log/operator-error.ts";
import type { Changes } from "../changes.ts";
import {
  type Ask,
  type LaneName,
  type Procedures,
  type Store,
  type StoreObserver,
  StoreUnavailable,
} from "../store.ts";
import { CHANGES_CHANNEL } from "./channel.ts";
import { PostgresClaim } from "./claim.ts";
import { isLost, isRetryable, isUnavailable } from "./failures.ts";
import { Lane } from "./lane.ts";
import { IDLE_IN_TRANSACTION_TIMEOUT, type InternalLaneName, laneSettings } from "./lanes.ts";
import { Hearing, type Session } from "./session.ts";
import { NotBegun, Transactions } from "./transactions.ts";

const ATTEMPTS_MAX = 5;

export interface PostgresOptions {
  url: string;
  clock: Clock;
  observe?: StoreObserver | undefined;
  /** Work with a server all the same that may forget in a crash what it has committed. */
  allowUnsafe?: boolean | undefined;
  /** Connections of the lane `control` at most. */
  connectionsMax?: number;
  /** Bound on every lane's statement timeout. */
  statementTimeout?: Milliseconds;
  /** How long the server lets a transaction stay open while its client sends nothing. */
  idleInTransactionTimeout?: Milliseconds;
}

/** The server would acknowledge what it may forget. */
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

/**
 * PostgreSQL 14 or newer, reached over small pools, one for each lane; procedures run here and talk to it statement by
 * statement.
 *
 * @throws {UnsafeDatabase} unless that is allowed.
 * @throws {StoreUnavailable}
 */
export async function openPostgresStore<P extends Procedures>(
  options: PostgresOptions,
  procedures: P,
): Promise<Store<P>> {
  const { url, clock, observe = () => {} } = options;
  const hearing = new Hearing();
  let wake: (() => void) | undefined;
  const listenForChanges = async (session: Session, client: pg.ClientBase) => {
    client.on("notification", () => wake?.());
    await session.query(`listen ${CHANGES_CHANNEL}`);
  };
  const openLane = (name: InternalLaneName): Lane => {
    const settings = laneSettings[name];
    return new Lane({
      ...settings,
      ...{ name, url, clock, hearing },
      connectionsMax:
        name === "control" ? (options.connectionsMax ?? settings.connectionsMax) : settings.connectionsMax,
      statementTimeout: Math.min(settings.statementTimeout, options.statementTimeout ?? Infinity),
      idleInTransactionTimeout: options.idleInTransactionTimeout ?? IDLE_IN_TRANSACTION_TIMEOUT,
      ...(name === "feed" && { onConnect: listenForChanges }),
    });
  };
  const lanes = new Map<InternalLaneName, Lane>();
  const lane = (name: InternalLaneName): Lane => {
    const opened = lanes.get(name) ?? openLane(name);
    lanes.set(name, opened);
    return opened;
  };
  const laneOf = (procedure: string): LaneName => procedures.lanes?.[procedure] ?? "control";
  const transactions = new Transactions(clock, procedures.hasMarkers ? lane("resolve") : undefined);
  const close = async () => {
    transactions.close();
    await Promise.all([...lanes.values()].map((opened) => opened.close()));
  };

  if (!options.allowUnsafe) {
    try {
      await attempt(() => lane("control").use(requireDurability));
    } catch (error) {
      await close();
      throw error;
    }
  }

  return {
    dialect: "postgres",
    read: (name, argument) => {
      const startedAt = clock.monotonic();
      const laneName = laneOf(name);
      const work = async (session: Session) => {
        try {
          const result = await procedures.reading[name]!(session.sql, argument, nobody);
          // Other connections may still lead to the server that is no longer the one.
          if (laneName === "feed" && (result as Changes).isLost) hearing.suspectAll();
          return result;
        } catch (error) {
          throw isLost(error) ? new NotBegun(error) : error;
        }
      };
      // The wait for a connection is part of a read's time.
      return attempt(() => lane(laneName).use(work)).finally(() =>
        observe(name, 0, clock.monotonic() - startedAt),
      ) as never;
    },
    transact: (name, argument, answer) => {
      const ask: Ask<unknown, unknown> = async (question) => (answer as (question: unknown) => unknown)(question);
      const laneName = laneOf(name);
      // The table of the markers may be missing before migrations have run.
      const isMarked = laneName !== "maintenance";
      return attempt(() => {
        const askedAt = clock.monotonic();
        let startedAt = askedAt;
        return lane(laneName)
          .use(
            (session) => transactions.run(session, isMarked, (sql) => procedures.writing[name]!(sql, argument, ask)),
            () => {
              startedAt = clock.monotonic();
            },
          )
          .finally(() => observe(name, startedAt - askedAt, clock.monotonic() - startedAt));
      }) as never;
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

/** What a commit means depends on these, for our own role on our own database. */
async function requireDurability(session: Session): Promise<void> {
  const { rows } = await session.query<{ name: string }>(
    "select name from pg_settings where name in ('fsync', 'synchronous_commit') and setting = 'off' order by name",
  );
  if (rows.length > 0) throw new UnsafeDatabase(rows.map(({ name }) => name));
}

const nobody = () => Promise.reject(new Error("A reading procedure cannot ask its caller"));

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await work();
    } catch (error) {
      if ((isRetryable(error) || error instanceof NotBegun) && attempts < ATTEMPTS_MAX) continue;
      if (!isUnavailable(error)) throw error;
      throw new StoreUnavailable(`PostgreSQL cannot be reached: ${(error as Error).message}`, { cause: error });
    }
  }
}
