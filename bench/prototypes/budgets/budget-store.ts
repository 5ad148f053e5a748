/** The tables and the transaction of the prototype of budgets and holds. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { sql as raw } from "kysely";
import { systemClock } from "../../../engine/src/clock/system.ts";
import { newId } from "../../../engine/src/random/random.ts";
import { systemRandom } from "../../../engine/src/random/system.ts";
import {
  findBalancesForUpdate,
  lockAvailableBalances,
} from "../../../server/src/features/credits/statements/balances.ts";
import { openPostgresStore } from "../../../server/src/platform/store/postgres/store.ts";
import { openSqliteStore } from "../../../server/src/platform/store/sqlite/store.ts";
import type { Ask, Sql, Store } from "../../../server/src/platform/store/store.ts";
import type { ProcedureOptions } from "../../../server/src/service/procedures.ts";
import openBenchProcedures, { type BenchProcedures } from "../../lib/bench-store.ts";

export interface RowState {
  id: string;
  remaining: number;
}

type Question =
  | { step: "choose" }
  | { step: "locked"; missing: string[] }
  | { step: "decide"; balances: RowState[]; holds: { id: string; state: number; cost: number }[] };

interface Changes {
  rows: { id: string; remaining: number; held: number; spent: number }[];
  opened: { id: string; cost: number; rows: string }[];
  closed: { id: string; charged: number }[];
}

type Reply = { rows: string[] } | { holds: string[] } | Changes;

export type BudgetProcedures = {
  reading: BenchProcedures["reading"];
  writing: BenchProcedures["writing"] & {
    prepareBudgets: typeof prepareBudgets;
    createBudgets: typeof createBudgets;
    chargeRows: typeof chargeRows;
    checkBooks: typeof checkBooks;
  };
};

export default function openBudgetProcedures(options: ProcedureOptions) {
  const bench = openBenchProcedures(options) as BenchProcedures & { pools?: object };
  const pools = { ...bench.pools, chargeRows: "ledger" as const };
  return { ...bench, writing: { ...bench.writing, prepareBudgets, createBudgets, chargeRows, checkBooks }, pools };
}

export async function openBudgetStore(folder: string, url?: string): Promise<Store<BudgetProcedures>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (url !== undefined) {
    return openPostgresStore(
      { url, clock: systemClock, connectionsMax: 16 },
      openBudgetProcedures({ vault: { kind: "none" } }) as never,
    );
  }
  const module = { module: import.meta.url, options: { vault: { kind: "folder", folder } } };
  return openSqliteStore(join(folder, "latchkey.db"), module as never, { clock: systemClock }) as never;
}

async function prepareBudgets(sql: Sql): Promise<void> {
  const { text, integer } = sql.dialect.schema.types;
  const run = (statement: string) => raw.raw(statement).execute(sql.db);
  for (const column of ["granted", "spent", "held", "lapsed", "period", "next_expiry_at"])
    await run(`alter table balances add column ${column} ${integer} not null default 0`);
  await run(`create table holds (id ${text} not null primary key, state ${integer} not null, cost ${integer} not null,
    charged ${integer}, rows ${text} not null, expires_at ${integer} not null)${sql.dialect.isEmbedded ? "" : " with (fillfactor = 60)"}`);
  await run("create index holds_due on holds (expires_at)");
}

async function createBudgets(sql: Sql, { workspaceId, count }: { workspaceId: string; count: number }) {
  const rows = Array.from({ length: count }, () => ({ pool_id: newId(systemRandom, "pool").replace("pool", "bud") }));
  await sql.db
    .insertInto("balances")
    .columns(["pool_id", "workspace_id", "remaining"])
    .expression((query) =>
      query
        .selectFrom(sql.dialect.values.rows({ pool_id: "text" }, rows))
        .select(["pool_id" as never])
        .select([raw.val(workspaceId).as("workspace_id"), raw.val(1e12).as("remaining")] as never)
        .where(raw<boolean>`1 = 1`),
    )
    .execute();
  await raw`update balances set granted = remaining`.execute(sql.db);
  await raw`analyze`.execute(sql.db);
  return rows.map(({ pool_id }) => pool_id);
}

interface HoldRow {
  id: string;
  state: number | string;
  cost: number | string;
}

// biome-ignore lint/suspicious/noExplicitAny: the schema of the service does not have the tables of a prototype.
const untyped = (sql: Sql): any => sql.db;

/** Charges rows that it locks. With `first` it waits for this row while it has no other one. */
async function chargeRows(
  sql: Sql,
  {
    first,
    rows,
    lockTimeout,
    now,
  }: { first: string | undefined; rows: string[]; lockTimeout: number | undefined; now: number },
  ask: Ask<Question, Reply>,
): Promise<void> {
  const options = { random: systemRandom, now: now as never };
  const held = [];
  let ids = rows;
  if (first !== undefined) {
    await sql.dialect.locks.limitWait(sql, lockTimeout as never);
    held.push(...(await findBalancesForUpdate(sql, [first], options.random, options.now)));
    ids = ((await ask({ step: "choose" })) as { rows: string[] }).rows.filter((id) => id !== first);
  }
  const { balances, contended } = await lockAvailableBalances(sql, ids, options);
  held.push(...balances);
  const { holds } = (await ask({ step: "locked", missing: contended })) as { holds: string[] };
  const known =
    holds.length === 0
      ? []
      : await untyped(sql)
          .selectFrom("holds")
          .select(["id", "state", "cost"])
          .where(sql.dialect.values.isOneOf("id", holds))
          .execute();
  const changes = (await ask({
    step: "decide",
    balances: held.map((row) => ({ id: row.pool_id, remaining: row.remaining })),
    holds: known.map(({ id, state, cost }: HoldRow) => ({ id, state: Number(state), cost: Number(cost) })),
  })) as Changes;
  if (changes.rows.length > 0) {
    const input = sql.dialect.values.rows(
      { id: "text", remaining: "bigint", held: "bigint", spent: "bigint" },
      changes.rows,
    );
    await untyped(sql)
      .updateTable("balances")
      .from(input)
      .set({
        remaining: raw`balances.remaining + input.remaining`,
        held: raw`balances.held + input.held`,
        spent: raw`balances.spent + input.spent`,
      })
      .whereRef("balances.pool_id", "=", "input.id")
      .execute();
  }
  if (changes.opened.length > 0) {
    await untyped(sql)
      .insertInto("holds")
      .columns(["id", "cost", "rows", "state", "expires_at"])
      .expression((query: ReturnType<typeof untyped>) =>
        query
          .selectFrom(sql.dialect.values.rows({ id: "text", cost: "bigint", rows: "text" }, changes.opened))
          .select(["id", "cost", "rows"])
          .select([raw.val(0).as("state"), raw.val(now + 120_000).as("expires_at")])
          .where(raw`1 = 1`),
      )
      .execute();
  }
  if (changes.closed.length > 0) {
    const input = sql.dialect.values.rows({ id: "text", charged: "bigint" }, changes.closed);
    await untyped(sql)
      .updateTable("holds")
      .from(input)
      .set({ state: 1, charged: raw`input.charged` })
      .whereRef("holds.id", "=", "input.id")
      .execute();
  }
}

/** granted = spent + held + remaining + lapsed, and held is the sum of the open holds. */
async function checkBooks(sql: Sql, _: object): Promise<{ balances: number; holds: number }> {
  const one = async (statement: string) => {
    const { rows } = await raw.raw(statement).execute(sql.db);
    return Number((rows[0] as { count: number }).count);
  };
  const elements = sql.dialect.isEmbedded
    ? "json_each(holds.rows)"
    : "json_array_elements_text(holds.rows::json) as e(value)";
  return {
    balances: await one(
      "select count(*) as count from balances where pool_id like 'bud%' and granted <> spent + held + remaining + lapsed",
    ),
    holds: await one(`select count(*) as count from (
      select value as id, sum(cost) as held from holds, ${elements} where state = 0 group by value) open
      full join balances on balances.pool_id = open.id where coalesce(open.held, 0) <> coalesce(balances.held, 0)`),
  };
}
