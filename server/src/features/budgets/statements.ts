import { sql as raw, type Updateable } from "kysely";
import type { Instant } from "../../../../engine/src/clock/clock.ts";
import type { DirectoryBudget } from "../../../../engine/src/directory/stored.ts";
import { type BookedBalance, hasBooks } from "../../../../engine/src/rules/books.ts";
import type { PlanBudget } from "../../../../engine/src/rules/plan-credits.ts";
import type { StoreRules } from "../../platform/store/inspection.ts";
import { demandStep } from "../../platform/store/migrate.ts";
import { type PageOptions, searchPage } from "../../platform/store/page.ts";
import type { LateIndex } from "../../platform/store/retention.ts";
import type { BalanceRow, BudgetRow } from "../../platform/store/schema.ts";
import { fold } from "../../platform/store/search.ts";
import type { Sql } from "../../platform/store/store.ts";
import { WorkspaceRows } from "../../platform/store/workspace-rows.ts";
import { currentBalances } from "../plans/statements/plans.ts";

/** The levels of a tree of budgets. */
export const LEVELS_MAX = 4;

/** A budget with its balance as it is now. */
export interface StoredBudget extends BudgetRow {
  balance: BalanceRow & BookedBalance;
  /** What a plan gives it to, and which one. Absent: it was created. */
  given?: { plan: string; identityId: string; externalId: string };
}

/** A budget that a plan gives, with what its plan says of it. */
interface GivenBudget extends Omit<BudgetRow, "name_folded"> {
  plan: string;
  identityId: string;
  externalId: string;
}

/** What keeps a budget from being deleted. */
export type BudgetUser = "keys" | "identities" | "budgets";

/** The budgets of one workspace. */
export class BudgetReader extends WorkspaceRows {
  /** One that was created. */
  async find(budgetId: string, now: Instant): Promise<StoredBudget | undefined> {
    const row = await this.#select().where("id", "=", budgetId).executeTakeFirst();
    return row && (await this.#withBalances([row], now))[0];
  }

  /** The same, or one that a plan gives to an identity. */
  async findAny(budgetId: string, now: Instant): Promise<StoredBudget | undefined> {
    return (await this.find(budgetId, now)) ?? (await this.findGiven(budgetId, now));
  }

  /** A budget that a plan gives to an identity. */
  async findGiven(budgetId: string, now: Instant): Promise<StoredBudget | undefined> {
    const [given] = await selectGiven(this.sql, [budgetId], this.workspaceId);
    if (!given) return undefined;
    const { plan, identityId, externalId, ...row } = given;
    const [budget] = await this.#withBalances([{ ...row, name_folded: fold(row.name) }], now);
    return budget && { ...budget, given: { plan, identityId, externalId } };
  }

  /** Whether all of these exist. */
  protected async exist(budgetIds: readonly string[]): Promise<boolean> {
    const found = await this.ofIds(budgetIds).execute();
    return found.length === new Set(budgetIds).size;
  }

  /** A page of budgets, searched by name and id. `parentId`: the children of a budget; null: roots. */
  async page(
    { parentId, ...page }: PageOptions & { parentId: string | null | undefined },
    now: Instant,
  ): Promise<StoredBudget[]> {
    let query = this.#select();
    if (parentId === null) query = query.where("parent_id", "is", null);
    else if (parentId !== undefined) query = query.where("parent_id", "=", parentId);
    return this.#withBalances(await searchPage(this.sql, query, page).execute(), now);
  }

  /** The balance of each budget and those of its ancestors, as they are now, with the unit of the budgets. */
  async balancesOfChains(
    budgetIds: readonly string[],
    now: Instant,
  ): Promise<ReadonlyMap<string, (BalanceRow & Pick<BudgetRow, "unit">)[]>> {
    const chains = await findBudgetChains(this.sql, budgetIds);
    const balances = await this.#balances([...new Set([...chains.values()].flat().map(({ id }) => id))], now);
    const withBalances = (chain: readonly DirectoryBudget[]) =>
      chain.flatMap(({ id, unit }) => {
        const balance = balances.get(id);
        return balance ? [{ ...balance, unit }] : [];
      });
    return new Map([...chains].map(([id, chain]) => [id, withBalances(chain)]));
  }

  /** The number of its ancestors and itself. */
  async level({ id }: Pick<BudgetRow, "id">): Promise<number> {
    return (await findBudgetChains(this.sql, [id])).get(id)?.length ?? 1;
  }

  /** What uses a budget; undefined: nothing. */
  async user(budgetId: string): Promise<BudgetUser | undefined> {
    const { db } = this.sql;
    const key = db
      .selectFrom("keys")
      .innerJoin("apis", "apis.id", "keys.api_id")
      .select("keys.id")
      .where("keys.workspace_id", "=", this.workspaceId)
      .where("keys.budget_id", "=", budgetId)
      .where("keys.deleted_at", "is", null)
      .where("apis.deleted_at", "is", null);
    if (await key.limit(1).executeTakeFirst()) return "keys";
    const identity = db
      .selectFrom("identities")
      .select("id")
      .where("workspace_id", "=", this.workspaceId)
      .where("budget_id", "=", budgetId)
      .where("deleted_at", "is", null);
    if (await identity.limit(1).executeTakeFirst()) return "identities";
    const child = this.#select().where("parent_id", "=", budgetId);
    return (await child.limit(1).executeTakeFirst()) && "budgets";
  }

  protected ofIds(budgetIds: readonly string[]) {
    return this.#select().where(this.sql.dialect.values.isOneOf("id", budgetIds));
  }

  async #withBalances(rows: readonly BudgetRow[], now: Instant): Promise<StoredBudget[]> {
    const ids = rows.map(({ id }) => id);
    const balances = await this.#balances(ids, now);
    return rows.map((row) => {
      const balance = balances.get(row.id);
      if (!balance || !hasBooks(balance)) throw new Error(`the budget ${row.id} has no balance`);
      return { ...row, balance };
    });
  }

  async #balances(budgetIds: readonly string[], now: Instant): Promise<ReadonlyMap<string, BalanceRow>> {
    if (budgetIds.length === 0) return new Map();
    const found = await this.sql.db
      .selectFrom("balances")
      .selectAll()
      .where("workspace_id", "=", this.workspaceId)
      .where(this.sql.dialect.values.isOneOf("pool_id", budgetIds))
      .execute();
    const current = await currentBalances(this.sql, found, now);
    return new Map(current.map((balance) => [balance.pool_id, balance]));
  }

  #select() {
    return this.sql.db.selectFrom("budgets").selectAll().where("workspace_id", "=", this.workspaceId);
  }
}

export class BudgetWriter extends BudgetReader {
  static readonly writes = true;

  /**
   * Whether budgets can be stored: programs of earlier releases neither charge them nor keep their books.
   */
  accepts(): Promise<boolean> {
    return demandStep(this.sql, "037-budgets");
  }

  async insert(budget: Omit<BudgetRow, "workspace_id" | "name_folded" | "updated_at">): Promise<void> {
    this.metadataBytes += budget.meta === null ? 0 : Buffer.byteLength(budget.meta);
    await this.sql.db
      .insertInto("budgets")
      .values({ ...budget, workspace_id: this.workspaceId, name_folded: fold(budget.name) })
      .execute();
  }

  /** Locks a budget until the transaction ends, before its balance. */
  async lock(budgetId: string): Promise<void> {
    await this.lockRow("budgets", budgetId);
  }

  /** Keeps budgets that get keys, identities or children from being deleted until the transaction ends. Whether all exist. */
  async keep(budgetIds: readonly string[]): Promise<boolean> {
    // In the order of ids, so that two transactions cannot deadlock.
    await this.sql.dialect.locks.lockRows(this.ofIds(budgetIds).orderBy("id"), "key share");
    return this.exist(budgetIds);
  }

  async update(
    budgetId: string,
    values: Pick<Updateable<BudgetRow>, "name" | "thresholds" | "meta">,
    at: Instant,
  ): Promise<void> {
    if (values.meta != null) {
      const former = await this.metadataLength("budgets", budgetId);
      this.metadataBytes += Math.max(0, Buffer.byteLength(values.meta) - former);
    }
    await this.sql.db
      .updateTable("budgets")
      .set({ ...values, ...(values.name !== undefined && { name_folded: fold(values.name) }), updated_at: at })
      .where("id", "=", budgetId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
  }

  async delete(budgetId: string): Promise<void> {
    const { db } = this.sql;
    await db
      .deleteFrom("balances")
      .where("pool_id", "=", budgetId)
      .where("workspace_id", "=", this.workspaceId)
      .execute();
    await db.deleteFrom("budgets").where("id", "=", budgetId).where("workspace_id", "=", this.workspaceId).execute();
  }
}

/** What events say of a budget. */
export interface NamedBudget extends Pick<BudgetRow, "id" | "name" | "unit"> {
  thresholds: readonly number[];
}

/** Budgets of any workspace, by id: those that were created, and those that plans give. No query without ids. */
export async function findBudgets(sql: Sql, budgetIds: readonly string[]): Promise<ReadonlyMap<string, NamedBudget>> {
  const { db, dialect } = sql;
  if (budgetIds.length === 0) return new Map();
  const created = await db
    .selectFrom("budgets")
    .select(["id", "name", "unit", "thresholds"])
    .where(dialect.values.isOneOf("id", budgetIds))
    .execute();
  const ids = new Set(created.map(({ id }) => id));
  const others = budgetIds.filter((id) => !ids.has(id));
  const given = others.length === 0 ? [] : await selectGiven(sql, others);
  return new Map([...created, ...given].map((row) => [row.id, { ...row, thresholds: thresholdsOf(row) }]));
}

/** Budgets that plans give, by id, with what the plans say now. */
async function selectGiven({ db, dialect }: Sql, ids: readonly string[], workspaceId?: string): Promise<GivenBudget[]> {
  const rows = await db
    .selectFrom("plan_budgets as given")
    .innerJoin("balances", "balances.pool_id", "given.id")
    .innerJoin("plans", "plans.id", "balances.plan_id")
    .innerJoin("identities", "identities.id", "given.identity_id")
    .select(["given.id", "given.workspace_id", "given.unit", "given.created_at", "given.identity_id as identityId"])
    .select(["plans.name as plan", "plans.budget", "identities.external_id as externalId"])
    .where(dialect.values.isOneOf("given.id", ids))
    .$if(workspaceId !== undefined, (query) => query.where("given.workspace_id", "=", workspaceId ?? ""))
    .execute();
  return rows.map(({ budget, ...row }) => {
    const ofPlan: PlanBudget | null = budget === null ? null : JSON.parse(budget);
    const thresholds = ofPlan?.thresholds ?? [];
    const columns = { parent_id: null, meta: null, updated_at: null, thresholds: JSON.stringify(thresholds) };
    return { ...row, ...columns, name: row.plan };
  });
}

/** Each budget with its ancestors, from the budget to the root. No query without ids. */
export async function findBudgetChains(
  { db, dialect }: Sql,
  budgetIds: readonly string[],
): Promise<ReadonlyMap<string, DirectoryBudget[]>> {
  if (budgetIds.length === 0) return new Map();
  const { rows } = await raw<DirectoryBudget & { first_id: string }>`
    with recursive chain (first_id, id, name, unit, parent_id, level) as (
      select id, id, name, unit, parent_id, 1 from budgets where ${dialect.values.isOneOf("id", budgetIds)}
      union all
      select chain.first_id, budgets.id, budgets.name, budgets.unit, budgets.parent_id, chain.level + 1
      from chain join budgets on budgets.id = chain.parent_id
    ) select first_id, id, name, unit from chain order by level`.execute(db);
  const chains = new Map<string, DirectoryBudget[]>();
  for (const { first_id, id, name, unit } of rows) {
    const chain = chains.get(first_id) ?? [];
    chains.set(first_id, chain);
    chain.push({ id, name, unit });
  }
  return chains;
}

/** Whether a balance is that of a budget: ids of pools begin otherwise. */
export function isBudgetId(balanceId: string): boolean {
  return balanceId.startsWith("bud_");
}

/** The percentages at which a budget has an event. */
export function thresholdsOf({ thresholds }: Pick<BudgetRow, "thresholds">): number[] {
  return thresholds === null ? [] : JSON.parse(thresholds);
}

/** By them the keys and identities of a budget are found. */
export const budgetIndexes: readonly LateIndex[] = ["keys", "identities"].map((table) => ({
  name: `${table}_budget`,
  on: `${table} (budget_id) where budget_id is not null`,
}));

/** Rows that are not deleted and whose budget is not one of their workspace. */
const withoutBudget = (table: string, condition: string) =>
  `select count(*) as count from ${table} where budget_id is not null and ${condition} and not exists (
    select 1 from budgets where budgets.id = ${table}.budget_id and budgets.workspace_id = ${table}.workspace_id)`;

/** What holds for all budgets. */
export const budgetRules: StoreRules = {
  "the credits granted to a budget are spent, held, remaining or lapsed": `select count(*) as count from balances
    where granted <> spent + coalesce(held, 0) + remaining + lapsed`,
  "every budget has a balance with books": `select count(*) as count from budgets where not exists (
    select 1 from balances where balances.pool_id = budgets.id and balances.workspace_id = budgets.workspace_id
    and granted is not null and spent is not null and lapsed is not null and period is not null
    and spent_before is not null and watched is not null)`,
  "every budget of a plan is one of an identity, and has a balance with books that names a plan": `
    select count(*) as count from plan_budgets as given where not exists (
    select 1 from identities where identities.id = given.identity_id and identities.workspace_id = given.workspace_id)
    or not exists (select 1 from balances where balances.pool_id = given.id
    and balances.workspace_id = given.workspace_id and plan_id is not null and plan_version is not null
    and granted is not null and spent is not null and lapsed is not null and period is not null
    and spent_before is not null and watched is not null)`,
  "the budget of every key exists": withoutBudget(
    "keys",
    "deleted_at is null and exists (select 1 from apis where apis.id = keys.api_id and apis.deleted_at is null)",
  ),
  "the budget of every identity exists": withoutBudget("identities", "deleted_at is null"),
  "the parent of every budget exists": `select count(*) as count from budgets as child where parent_id is not null
    and not exists (select 1 from budgets where budgets.id = child.parent_id
    and budgets.workspace_id = child.workspace_id)`,
};
