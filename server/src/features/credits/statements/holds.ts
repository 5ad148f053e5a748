import { sql as raw } from "kysely";
import { type Instant, instantAt } from "../../../../../engine/src/clock/clock.ts";
import type { EarlierHolds, ExpiredHold, HoldWrites, StoredHoldRow } from "../../../../../engine/src/credits/batch.ts";
import type { Uncovered } from "../../../../../engine/src/credits/hold.ts";
import type { Random } from "../../../../../engine/src/random/random.ts";
import { type BookedBalance, boundedBooks, hasBooks } from "../../../../../engine/src/rules/books.ts";
import { type EventContent, eventsOf, insertEvents } from "../../../platform/store/events/events.ts";
import type { BalanceRow, HoldRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { change, insertion, writeRows } from "../../../platform/store/write-rows.ts";
import { isBudgetId } from "../../budgets/statements.ts";
import { type Fall, heldBalanceIds, reachesThreshold, recordFalls, setColumns } from "./balances.ts";
import { commonTime } from "./common-time.ts";

/** The most rows of holds that a search for open ones reads, whatever their state. */
const SEARCHED_MAX = 10_000;
/** The most open holds that a batch of the ledger looks at. */
const FOUND_MAX = 1_000;

/** How much of its charge the balances of a hold did not have. */
function lacksOfHold({ lacks }: Pick<HoldRow, "lacks">): Uncovered[] {
  return lacks === null ? [] : JSON.parse(lacks);
}

/** What the budgets among the balances of a hold did not have. */
export function uncoveredBudgets(lacks: readonly Uncovered[]): { budgetId: string; uncovered: number }[] {
  return lacks.flatMap(({ balanceId, lack }) =>
    isBudgetId(balanceId) ? { budgetId: balanceId, uncovered: lack } : [],
  );
}

/** Columns of a hold that a batch may change. */
const storedColumns = [
  "id",
  "workspace_id",
  "cost",
  "balances",
  "on_expiry",
  "state",
  "charged",
  "lacks",
  "settlement",
  "created_at",
  "expires_at",
] as const;

function storedRow(hold: Pick<HoldRow, (typeof storedColumns)[number]>): StoredHoldRow {
  const { id, workspace_id, cost, balances, on_expiry, state, charged, lacks, settlement, created_at, expires_at } =
    hold;
  return [id, workspace_id, cost, balances, on_expiry, state, charged ?? 0, lacks, settlement, created_at, expires_at];
}

/** Reads holds that a batch changes. */
export async function readEarlierHolds(sql: Sql, holdIds: readonly string[], now: Instant): Promise<EarlierHolds> {
  const { db, dialect } = sql;
  const rows =
    holdIds.length === 0
      ? []
      : await db
          .selectFrom("holds")
          .select([...storedColumns, dialect.time.common(now).as("at")])
          .where(dialect.values.isOneOf("id", holdIds))
          .execute();
  const [first] = rows;
  return {
    at: first ? instantAt(Number(first.at)) : await commonTime(sql, now),
    stored: rows.map(storedRow),
  };
}

/** Columns of a hold whose end is an event. */
const endColumns = [
  "id",
  "workspace_id",
  "key_id",
  "api_id",
  "subject",
  "balances",
  "cost",
  "state",
  "charged",
  "uncovered",
  "lacks",
  "expires_at",
] as const;

/** A hold whose end is an event: it has expired, or its settlement was not covered. */
export type EndedHold = Pick<HoldRow, (typeof endColumns)[number]>;

/**
 * Writes the new and changed holds of a batch and their locked balances, which are given as they were before. Records the
 * events of holds that have expired or were not covered, and returns these.
 */
export async function writeHolds(
  sql: Sql,
  { balances: changes, opened, extended, closed, at }: HoldWrites,
  { balances, random, now }: { balances: readonly BalanceRow[]; random: Random; now: Instant },
): Promise<readonly EndedHold[]> {
  const { rows, falls } = changedBalances(changes, balances);
  const newHolds = opened.map((row) => [...row, "open"]);
  const closedHolds = closed.map((row) => [...row, at]);
  const writes = [
    change("balances", changedColumns, rows),
    insertion("holds", openedTypes, newHolds),
    change("holds", { by: { id: "text" }, set: { expires_at: "bigint" } }, extended),
    change("holds", closedColumns, closedHolds),
  ];
  const [, , , found = 0] = await writeRows(sql, writes);
  // The locks of balances protect it. A balance that was removed and came back meanwhile protects it for one node only.
  if (found < closed.length) throw new Error("A hold of the batch was changed by another transaction");
  await recordFalls(sql, falls, { random, now });
  const ended = await endedHolds(sql, closed);
  const events = ended.flatMap((hold) =>
    eventsOf(endEvents(hold), { workspaceId: hold.workspace_id, at: now, actor: "system" }, random),
  );
  await insertEvents(sql, events);
  return ended;
}

/** Balances after changes of their holds, as rows, and those that fell to a threshold. */
function changedBalances(changes: HoldWrites["balances"], balances: readonly BalanceRow[]) {
  const before = new Map(balances.map((row) => [row.pool_id, row]));
  const falls: Fall[] = [];
  const rows = changes.map(({ balanceId, remaining, held, nextExpiryAt, spent, lapsed }) => {
    const row = before.get(balanceId);
    if (!row) throw new Error(`The balance ${balanceId} is not locked`);
    const books = hasBooks(row) ? booksAfter(row, { remaining, held, spent, lapsed }) : NO_BOOKS;
    // Copies of rows with many columns are a large part of the CPU of a hold, and few reach a threshold.
    if (reachesThreshold(row, remaining + held)) {
      falls.push({ before: row, after: { ...row, remaining, held, next_expiry_at: nextExpiryAt, ...books } });
    }
    return [balanceId, remaining, held, nextExpiryAt, books.granted, books.spent, books.lapsed, books.spent_before];
  });
  return { rows, falls };
}

const changedColumns = {
  by: { pool_id: "text" },
  set: {
    remaining: "bigint",
    held: "bigint",
    next_expiry_at: "bigint",
    granted: "bigint",
    spent: "bigint",
    lapsed: "bigint",
    spent_before: "bigint",
  },
} as const;

const NO_BOOKS = { granted: null, spent: null, lapsed: null, spent_before: null };

function booksAfter(
  { granted, spent, lapsed, period, spent_before }: BookedBalance,
  change: Pick<HoldWrites["balances"][number], "remaining" | "held" | "spent" | "lapsed">,
): BookedBalance {
  const spentAfter = spent + change.spent;
  return boundedBooks({
    ...{ granted, period, remaining: change.remaining, held: change.held },
    spent: spentAfter,
    lapsed: lapsed + change.lapsed,
    // A late settlement can give back what an ended period has spent.
    spent_before: Math.min(spent_before, spentAfter),
  });
}

/** The event of a hold that has expired, or whose settlement its balances did not cover. */
function endEvents(hold: EndedHold): EventContent[] {
  const { id: holdId, key_id: keyId, api_id: apiId, cost: credits, state, expires_at: expiresAt } = hold;
  const about = { holdId, keyId, apiId, credits, charged: hold.charged ?? 0 };
  if (state === "expired") return [{ type: "hold.expired", objectId: holdId, data: { ...about, expiresAt } }];
  const { uncovered } = hold;
  if (!uncovered) return [];
  const budgets = uncoveredBudgets(lacksOfHold(hold));
  return [{ type: "hold.uncovered", objectId: holdId, data: { ...about, uncovered, budgets } }];
}

/** The columns of `OpenedHoldRow`, and the state. */
const openedTypes = {
  id: "text",
  workspace_id: "text",
  key_id: "text",
  api_id: "text",
  cost: "bigint",
  balances: "text",
  on_expiry: "text",
  limits: "text",
  subject: "text",
  created_at: "bigint",
  expires_at: "bigint",
  state: "text",
} as const;

/** The columns of `ClosedHoldRow`, and the time. */
const closedColumns = {
  by: { id: "text", state: "text" },
  set: {
    state: "text",
    charged: "bigint",
    uncovered: "bigint",
    lacks: "text",
    settlement: "text",
    closed_at: "bigint",
  },
} as const;

/** Those whose end is an event. No query if there is none. */
async function endedHolds(sql: Sql, closed: HoldWrites["closed"]): Promise<EndedHold[]> {
  const noted = closed.filter(([, , state, , uncovered]) => state === "expired" || uncovered > 0);
  if (noted.length === 0) return [];
  const ids = noted.map(([id]) => id);
  return sql.db.selectFrom("holds").select(endColumns).where(sql.dialect.values.isOneOf("id", ids)).execute();
}

/** A place in the order in which holds expire. */
export interface ExpiryPlace {
  readonly expiresAt: number;
  readonly id: string;
}

/** An open hold with what its expiry needs. */
export type OpenHold = Pick<HoldRow, "id" | "workspace_id" | "balances" | "expires_at">;

/** Which open holds to find. */
interface OpenSearch {
  after: ExpiryPlace;
  until: number;
  limit: number;
  /** Undefined: those of all balances. */
  of?: { workspaceId: string; balanceIds: readonly string[] };
}

/**
 * Open holds after a place, up to a time, in the order in which they expire: at most `limit`, among a bounded number of
 * rows. `end`: where the search continues; null if there is no other.
 */
export async function findOpenHolds(
  { db, dialect: { json, values } }: Sql,
  { after, until, limit, of }: OpenSearch,
): Promise<{ holds: OpenHold[]; end: ExpiryPlace | null }> {
  let searched = db
    .selectFrom("holds")
    .where(raw<boolean>`(expires_at, id) > (${after.expiresAt}, ${after.id})`)
    .where("expires_at", "<=", until)
    .orderBy("expires_at")
    .orderBy("id");
  // By an index, so that holds of other workspaces are not read.
  if (of) searched = searched.where("workspace_id", "=", of.workspaceId);
  const last = await searched
    .select(["expires_at", "id"])
    .offset(SEARCHED_MAX - 1)
    .limit(1)
    .executeTakeFirst();
  let query = searched
    .select(["id", "workspace_id", "balances", "expires_at"])
    .where("state", "=", "open")
    .limit(limit);
  if (of) {
    const balanceId = json.member(raw.ref("balance.value"), "id");
    const balances = json.elements(raw.ref("holds.balances"), "balance");
    query = query.where(
      raw<boolean>`exists (select 1 from ${balances} where ${balanceId} in ${values.list(of.balanceIds)})`,
    );
  }
  if (last) query = query.where(raw<boolean>`(expires_at, id) <= (${last.expires_at}, ${last.id})`);
  const holds = await query.execute();
  const end = holds.length === limit ? holds.at(-1) : last;
  return { holds, end: end ? { expiresAt: end.expires_at, id: end.id } : null };
}

function expiredHold(row: OpenHold): ExpiredHold {
  return { id: row.id, workspaceId: row.workspace_id, balances: heldBalanceIds(row.balances) };
}

/**
 * The expired holds of balances that this transaction has locked, of which some may have expired. Corrects when the next one
 * of each expires.
 */
export async function findExpiredHoldsOf(
  sql: Sql,
  balanceIds: readonly string[],
  now: Instant,
): Promise<ExpiredHold[]> {
  const at = await commonTime(sql, now);
  const due = await sql.db
    .selectFrom("balances")
    .select(["pool_id", "workspace_id", "next_expiry_at"])
    .where(sql.dialect.values.isOneOf("pool_id", balanceIds))
    // The clock of a node can be ahead of the one that decides.
    .where("next_expiry_at", "<=", at)
    .execute();
  const expired: ExpiredHold[] = [];
  for (const [workspaceId, balances] of Map.groupBy(due, ({ workspace_id }) => workspace_id)) {
    const { holds, end } = await findOpenHolds(sql, {
      after: { expiresAt: Math.min(...balances.map(({ next_expiry_at }) => next_expiry_at ?? 0)), id: "" },
      until: Number.MAX_SAFE_INTEGER,
      limit: FOUND_MAX,
      of: { workspaceId, balanceIds: balances.map(({ pool_id }) => pool_id) },
    });
    const next = new Map<string, number>();
    for (const row of holds) {
      const hold = expiredHold(row);
      if (row.expires_at <= at) expired.push(hold);
      for (const id of hold.balances) if (!next.has(id)) next.set(id, row.expires_at);
    }
    const corrected = balances.map(({ pool_id }) => ({
      pool_id,
      next_expiry_at: next.get(pool_id) ?? end?.expiresAt ?? null,
    }));
    await setColumns(sql, ["next_expiry_at"], corrected);
  }
  return expired;
}
