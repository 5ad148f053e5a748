import { sql as raw } from "kysely";
import { type Instant, instantAt } from "../../../../../engine/src/clock/clock.ts";
import type { EarlierHolds, ExpiredHold, HoldWrites, StoredHold } from "../../../../../engine/src/credits/batch.ts";
import type { Uncovered } from "../../../../../engine/src/credits/hold.ts";
import type { Random } from "../../../../../engine/src/random/random.ts";
import { boundedBooks, hasBooks } from "../../../../../engine/src/rules/books.ts";
import { type EventContent, eventsOf, insertEvents } from "../../../platform/store/events/events.ts";
import { insertRows } from "../../../platform/store/insert-rows.ts";
import type { BalanceRow, HoldRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { isBudgetId } from "../../budgets/statements.ts";
import { heldBalanceIds, heldBalances, recordFalls, setColumns } from "./balances.ts";
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

function storedHold(row: Pick<HoldRow, (typeof storedColumns)[number]>): StoredHold {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    cost: row.cost,
    balances: heldBalances(row.balances),
    onExpiry: row.on_expiry,
    state: row.state,
    charged: row.charged ?? 0,
    lacks: lacksOfHold(row),
    settlement: row.settlement,
    createdAt: instantAt(row.created_at),
    expiresAt: instantAt(row.expires_at),
  };
}

/** Reads the holds that a batch changes, and the books of its locked balances. */
export async function readEarlierHolds(
  sql: Sql,
  holdIds: readonly string[],
  balances: readonly BalanceRow[],
  now: Instant,
): Promise<EarlierHolds> {
  const { db, dialect } = sql;
  const rows =
    holdIds.length === 0
      ? []
      : await db.selectFrom("holds").select(storedColumns).where(dialect.values.isOneOf("id", holdIds)).execute();
  return {
    at: await commonTime(sql, now),
    stored: new Map(rows.map((row) => [row.id, storedHold(row)])),
    books: balances.map(({ pool_id: id, held, period, refill_amount, refill_rollover }) => ({
      id,
      held: held ?? 0,
      period: period ?? 0,
      keepsUpTo: refill_rollover === null ? null : refill_rollover + (refill_amount ?? 0),
    })),
  };
}

/** Columns of a hold that has ended. */
const endColumns = [
  "holds.id",
  "holds.workspace_id",
  "holds.key_id",
  "holds.api_id",
  "holds.subject",
  "holds.balances",
  "holds.cost",
  "holds.state",
  "holds.charged",
  "holds.uncovered",
  "holds.lacks",
  "holds.expires_at",
] as const;

/** A hold that a batch has ended. */
export type EndedHold = Pick<
  HoldRow,
  (typeof endColumns)[number] extends `holds.${infer Column extends keyof HoldRow}` ? Column : never
>;

/**
 * Writes the new and changed holds of a batch and their locked balances. Both are given as they were before. Returns the
 * holds that have ended, whose events it records.
 */
export async function writeHolds(
  sql: Sql,
  { balances: changes, opened, changed, at }: HoldWrites,
  {
    balances,
    stored,
    random,
    now,
  }: { balances: readonly BalanceRow[]; stored: EarlierHolds["stored"]; random: Random; now: Instant },
): Promise<readonly EndedHold[]> {
  const before = new Map(balances.map((row) => [row.pool_id, row]));
  const falls = changes.map(({ balanceId, remaining, held, nextExpiryAt, spent, lapsed }) => {
    const row = before.get(balanceId);
    if (!row) throw new Error(`The balance ${balanceId} is not locked`);
    const spentAfter = row.spent === null ? null : row.spent + spent;
    const changed: BalanceRow = {
      ...row,
      remaining,
      held,
      next_expiry_at: nextExpiryAt,
      spent: spentAfter,
      lapsed: row.lapsed === null ? null : row.lapsed + lapsed,
      // A late settlement can give back what an ended period has spent.
      spent_before: spentAfter === null ? null : Math.min(row.spent_before ?? 0, spentAfter),
    };
    return { before: row, after: hasBooks(changed) ? boundedBooks(changed) : changed };
  });
  if (falls.length > 0) {
    await setColumns(
      sql,
      ["remaining", "held", "next_expiry_at", "granted", "spent", "lapsed", "spent_before"],
      falls.map(({ after }) => after),
    );
  }
  await insertHolds(sql, opened);
  const ended = await updateHolds(sql, changed, { stored, at });
  await recordFalls(sql, falls, { random, now });
  const events = ended.flatMap((hold) =>
    eventsOf(endEvents(hold), { workspaceId: hold.workspace_id, at: now, actor: "system" }, random),
  );
  await insertEvents(sql, events);
  return ended;
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

async function insertHolds(sql: Sql, opened: HoldWrites["opened"]): Promise<void> {
  if (opened.length === 0) return;
  const types = {
    id: "text",
    workspace_id: "text",
    key_id: "text",
    api_id: "text",
    cost: "bigint",
    balances: "text",
    on_expiry: "text",
    state: "text",
    limits: "text",
    subject: "text",
    created_at: "bigint",
    expires_at: "bigint",
  } as const;
  const rows = opened.map((hold) => ({
    id: hold.id,
    workspace_id: hold.workspaceId,
    key_id: hold.keyId,
    api_id: hold.apiId,
    cost: hold.cost,
    balances: JSON.stringify(hold.balances),
    on_expiry: hold.onExpiry,
    state: "open",
    limits: hold.limits,
    subject: hold.subject,
    created_at: hold.createdAt,
    expires_at: hold.expiresAt,
  }));
  await insertRows(sql, "holds", types, rows).execute();
}

/** Joins the rows of `input`. */
const isInput = raw<boolean>`holds.id = input.id`;

/** Returns those that have ended. Throws if one is not any more as the batch has read it. */
async function updateHolds(
  sql: Sql,
  changed: HoldWrites["changed"],
  { stored, at }: { stored: EarlierHolds["stored"]; at: Instant },
): Promise<EndedHold[]> {
  const open = changed.filter(({ state }) => state === "open");
  const closed = changed.filter(({ state }) => state !== "open");
  if (open.length > 0) {
    const input = sql.dialect.values.rows(
      { id: "text", expires_at: "bigint" },
      open.map(({ id, expiresAt }) => ({ id, expires_at: expiresAt })),
    );
    await sql.db
      .updateTable("holds")
      .from(input)
      .set({ expires_at: raw<number>`input.expires_at` })
      .where(isInput)
      .execute();
  }
  if (closed.length === 0) return [];
  const input = sql.dialect.values.rows(
    {
      id: "text",
      former: "text",
      state: "text",
      charged: "bigint",
      uncovered: "bigint",
      lacks: "text",
      settlement: "text",
    },
    closed.map(({ id, state, charged, lacks, settlement }) => ({
      ...{ id, state, charged, settlement },
      former: stored.get(id)?.state ?? null,
      uncovered: Math.max(0, ...lacks.map(({ lack }) => lack)),
      lacks: lacks.length === 0 ? null : JSON.stringify(lacks),
    })),
  );
  const ended = await sql.db
    .updateTable("holds")
    .from(input)
    .set({
      state: raw<HoldRow["state"]>`input.state`,
      charged: raw<number>`input.charged`,
      uncovered: raw<number>`input.uncovered`,
      lacks: raw<string>`input.lacks`,
      settlement: raw<string>`input.settlement`,
      closed_at: at,
    })
    .where(isInput)
    // The locks of balances protect it. A balance that was removed and came back meanwhile protects it for one node only.
    .where(raw<boolean>`holds.state = input.former`)
    .returning(endColumns)
    .execute();
  if (ended.length < closed.length) throw new Error("A hold of the batch was changed by another transaction");
  return ended;
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
