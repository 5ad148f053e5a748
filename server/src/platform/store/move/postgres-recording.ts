import type { Milliseconds } from "../../../../../engine/src/clock/clock.ts";
import { OperatorError } from "../../../log/operator-error.ts";
import { POSTGRES_NOW } from "../postgres/clock.ts";
import { type CopiedTable, type CopyDatabase, literal, quoted, type Recording } from "./database.ts";
import { WRITES_STOPPED, WRITES_STOPPED_CODE } from "./marks.ts";

/** An arbitrary number that nothing else on the server uses as a lock. Writers share it; what stops writes takes it. */
const GATE_LOCK = "7262837123021";
/** How long the source waits for open transactions, while new writes wait behind it. */
const LOCK_TIMEOUT: Milliseconds = 2_000;

/** Records what is written to PostgreSQL, by any number of nodes. */
export class PostgresRecording implements Recording {
  readonly #database: CopyDatabase;

  constructor(database: CopyDatabase) {
    this.#database = database;
  }

  async start(tables: readonly CopiedTable[]): Promise<void> {
    await this.#database.run(gateFunction);
    for (const table of tables) await this.#changeTables(triggersOf(table));
  }

  async stop(): Promise<void> {
    const functions = await this.#database.rows(
      "select proname from pg_proc where pronamespace = current_schema()::regnamespace and proname like 'move\\_record\\_%'",
    );
    const names = ["move_gate", ...functions.map(([name]) => name!)];
    await this.#changeTables(
      `${names.map((name) => `drop function if exists ${quoted(name)} cascade;`).join("\n")}
       drop table if exists move_changes; delete from moves where role = 'source';`,
    );
  }

  /** Numbers become visible out of order, so only the transaction that saw the touched rows can delete them. */
  async snapshot(work: () => Promise<void>): Promise<void> {
    await this.#database.transaction("snapshot", async () => {
      await work();
      await this.#database.rows("delete from move_changes");
    });
  }

  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return withLockRetries(() =>
      this.#database.transaction("write", async () => {
        await this.#database.run(
          `set local lock_timeout = ${LOCK_TIMEOUT}; select pg_advisory_xact_lock(${GATE_LOCK})`,
        );
        return work();
      }),
    );
  }

  /** Runs statements that lock tables, in a transaction. */
  async #changeTables(statements: string): Promise<void> {
    await withLockRetries(() =>
      this.#database.transaction("write", () =>
        this.#database.run(`set local lock_timeout = ${LOCK_TIMEOUT}; ${statements}`),
      ),
    );
  }
}

/** Retries a step that waited too long for a lock: writes go on in between. */
async function withLockRetries<T>(step: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await step();
    } catch (error) {
      const { code } = ((error as Error).cause ?? {}) as { code?: string };
      if (code !== "55P03" && code !== "40P01") throw error;
      if (attempt === LOCK_ATTEMPTS) {
        throw new OperatorError(
          "PostgreSQL has transactions that write for longer than two seconds (see pg_stat_activity): end them, and run " +
            "this command again.",
          { cause: error },
        );
      }
    }
  }
}

const LOCK_ATTEMPTS = 10;

/** Each statement that writes shares the lock first, and then reads the gate, in a state that is newer than the lock. */
const gateFunction = `
  create or replace function move_gate() returns trigger language plpgsql as $$
  declare
    until bigint;
  begin
    perform pg_advisory_xact_lock_shared(${GATE_LOCK});
    execute format('select closed_until from %I.moves where id = 1', tg_table_schema) into until;
    if until > ${POSTGRES_NOW} then
      raise exception using errcode = ${literal(WRITES_STOPPED_CODE)}, message = ${literal(WRITES_STOPPED)};
    end if;
    return null;
  end $$`;

function triggersOf({ name, key }: CopiedTable): string {
  const keyOf = (row: string) =>
    `json_build_array(${key.map((column) => `${row}.${quoted(column)}::text`).join(", ")})::text`;
  const insert = (row: string) =>
    `execute format('insert into %I.move_changes (table_name, row_key) values ($1, $2)', tg_table_schema)
       using ${literal(name)}, ${keyOf(row)};`;
  return `
    create or replace function ${quoted(`move_record_${name}`)}() returns trigger language plpgsql as $$
    begin
      if tg_op <> 'INSERT' then ${insert("old")} end if;
      if tg_op = 'INSERT' then ${insert("new")} end if;
      if tg_op = 'UPDATE' then
        if ${keyOf("old")} <> ${keyOf("new")} then ${insert("new")} end if;
      end if;
      return null;
    end $$;
    create or replace trigger ${quoted(`move_gate`)} before insert or update or delete on ${quoted(name)}
      for each statement execute function move_gate();
    create or replace trigger ${quoted(`move_record`)} after insert or update or delete on ${quoted(name)}
      for each row execute function ${quoted(`move_record_${name}`)}();`;
}
