import { type Instant, instantAt } from "../../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../../engine/src/random/random.ts";
import {
  type BookedBalance,
  hasBooks,
  nextThreshold,
  openBooks,
  refillBooks,
} from "../../../../../engine/src/rules/books.ts";
import {
  adoptedColumns,
  grantedUntil,
  type PlanBudget,
  type PlanCredits,
  type PlannedBalance,
  planBudgetId,
  unitPartOf,
  withOnEmpty,
} from "../../../../../engine/src/rules/plan-credits.ts";
import { concurrencyOf, slotsId } from "../../../../../engine/src/rules/slots.ts";
import { recordChange } from "../../../platform/store/audit/audit.ts";
import type { LateIndex } from "../../../platform/store/retention.ts";
import type { BalanceRow, PlanGrantRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { newBalanceColumns } from "../record.ts";
import { BalanceWriter } from "./balances.ts";
import { SlotWriter } from "./slots.ts";

/** What happens to the credits of a key, or to the budget of an identity, that gets another plan. */
export type BalancesMode = "keep" | "reset";

/** By it the balances of a plan are found that lack its last changes. */
export const planBalancesIndex: LateIndex = {
  name: "balances_plan",
  on: "balances (plan_id, plan_version) where plan_id is not null",
};

/** A time after every other one: what ends with it is never reset again. */
export const NEVER = 8_640_000_000_000_000;

/** The credits that a plan has given to a pool or to a budget, for the audit log. */
export interface PlanGrant {
  readonly plan: string;
  readonly version: number;
  /** `granted`: a new period. `reset`: the same, as its caller asked. `kept`: what was left of a period. `moved`: with its balance. */
  readonly cause: "granted" | "reset" | "kept" | "moved";
  /** What was left of what plans gave before; null: they gave nothing. */
  readonly before: number | null;
  readonly remaining: number;
}

/** What became of a balance. */
export type Settled =
  | { readonly kind: "unchanged" | "own" }
  | { readonly kind: "refused"; readonly until: number }
  | { readonly kind: "ended"; readonly before: number }
  | ({ readonly kind: "given" } & PlanGrant);

/** What a plan gives, with its version. */
interface Given<Credits> {
  readonly name: string;
  readonly version: number;
  readonly credits: Credits;
}

/** Why a balance is not reset again. */
export function resetError({ until }: Extract<Settled, { kind: "refused" }>): string {
  const next = until >= NEVER ? "never again" : `again from ${new Date(until).toISOString()}`;
  return `The credits were reset in this period already; they can be reset ${next}. Send \`balances: "keep"\`.`;
}

/** The balances that plans give to pools of keys and to budgets of identities. */
export class PlanBalanceWriter extends WorkspaceRows {
  static readonly writes = true;

  readonly #balances: BalanceWriter;

  constructor(sql: Sql, workspaceId: string) {
    super(sql, workspaceId);
    this.#balances = new BalanceWriter(sql, workspaceId);
  }

  /**
   * Gives a pool the balance that its plan gives, or takes it away. A pool gets the credits of one period once, whatever plans it
   * has had in it: a balance that comes back has what was left. The assignment of the pool must be locked.
   *
   * @param balance that of the pool, locked, with its due refills.
   * @param planId null: it has no plan.
   */
  async settle(
    poolId: string,
    balance: BalanceRow | undefined,
    { planId, mode = "keep", now }: { planId: string | null; mode?: BalancesMode | undefined; now: Instant },
  ): Promise<Settled> {
    if (balance && balance.plan_id === null) return { kind: "own" };
    const plan = planId === null ? undefined : await this.#plan<PlanCredits>(planId, "credits");
    if (!plan) {
      if (!balance) return { kind: "unchanged" };
      await this.#end(poolId, balance, now);
      return { kind: "ended", before: balance.remaining };
    }
    return this.#give(poolId, balance, plan, { planId, mode, now });
  }

  /**
   * The same for the budget that plans give to an identity. It has one for each unit of its plans; those in units that its plan
   * does not have end. The assignment of the identity must be locked.
   *
   * @param planId null: it has no plan, or a budget of its own.
   */
  async settleBudget(
    identityId: string,
    { planId, mode = "keep", now }: { planId: string | null; mode?: BalancesMode | undefined; now: Instant },
    random: Random,
  ): Promise<Settled & { budgetId?: string }> {
    const plan = planId === null ? undefined : await this.#plan<PlanBudget>(planId, "budget");
    const id = plan && planBudgetId(identityId, unitPartOf(plan.credits));
    const existing = await this.sql.db
      .selectFrom("plan_budgets")
      .select("id")
      .where("identity_id", "=", identityId)
      .where("workspace_id", "=", this.workspaceId)
      .orderBy("id")
      .execute();
    let ended: Settled = { kind: "unchanged" };
    for (const budget of existing) {
      if (budget.id === id) continue;
      const balance = await this.#balances.findForUpdate(budget.id, random, now);
      if (!balance) continue;
      await this.#end(budget.id, balance, now);
      await this.sql.db.deleteFrom("plan_budgets").where("id", "=", budget.id).execute();
      ended = { kind: "ended", before: balance.remaining };
    }
    if (!plan || id === undefined) return ended;
    const balance = await this.#balances.findForUpdate(id, random, now);
    if (!balance) {
      await this.sql.db
        .insertInto("plan_budgets")
        .values({
          id,
          workspace_id: this.workspaceId,
          identity_id: identityId,
          unit: plan.credits.unit ?? null,
          created_at: now,
        })
        .execute();
    }
    return { ...(await this.#give(id, balance, plan, { planId, mode, now })), budgetId: id };
  }

  /** Takes away the budgets that plans have given to an identity which is deleted. */
  async endBudgets(identityId: string, now: Instant, random: Random): Promise<void> {
    await this.settleBudget(identityId, { planId: null, now }, random);
  }

  /** Gives a balance what a plan gives. */
  async #give(
    poolId: string,
    balance: BalanceRow | undefined,
    { credits, version, name }: Given<PlanCredits | PlanBudget>,
    { planId, mode, now }: { planId: string | null; mode: BalancesMode; now: Instant },
  ): Promise<Settled> {
    if (balance?.plan_id === planId && mode === "keep") return { kind: "unchanged" };
    const grant = await this.#grant(poolId);
    const left = balance?.remaining ?? leftOf(grant, now);
    const isReset = mode === "reset" && left !== undefined;
    const resetBefore = grant?.reset_until ?? 0;
    if (isReset && resetBefore > now) return { kind: "refused", until: resetBefore };
    const running = balance ? grantedUntil(balance) : (grant?.granted_until ?? null);
    const until = left === undefined || isReset ? null : running;
    const amount = left === undefined || isReset ? credits.amount : left;
    const own = {
      remaining: amount,
      ...newBalanceColumns(now),
      ...balance,
      pool_id: poolId,
      plan_id: planId,
      plan_version: version,
    };
    const schedule = adoptedColumns(credits, now, until);
    let next: { remaining: number; refill_due_at: number | null };
    if ("onEmpty" in credits) {
      const budget = { ...bookedBalance(own, amount, { credits, isReset, now }), ...schedule };
      await this.#balances.put(budget, nextThreshold(credits.thresholds, budget));
      next = budget;
    } else {
      const period = isReset && balance ? (balance.period ?? 0) + 1 : own.period;
      const pool = { ...own, remaining: amount, ...schedule, period };
      await this.#balances.put(pool);
      next = pool;
    }
    // A reset to a short period and back gives the long one no second time.
    const resetUntil = Math.max(next.refill_due_at ?? NEVER, running ?? 0);
    await this.#remember(poolId, { kept: null, ...(isReset && { reset_until: resetUntil }) });
    const cause = isReset ? "reset" : left === undefined ? "granted" : balance ? "moved" : "kept";
    const before = balance?.remaining ?? grant?.kept ?? null;
    return { kind: "given", plan: name, version, cause, before, remaining: next.remaining };
  }

  /** Takes a balance away, and notes what was left of it. */
  async #end(poolId: string, balance: BalanceRow, now: Instant): Promise<void> {
    await this.replace(poolId, balance);
    await this.#balances.remove(poolId, now);
  }

  /** Notes what was left of the balance of a plan that goes, or whose place one of the key takes. */
  async replace(poolId: string, balance: BalanceRow): Promise<void> {
    await this.#remember(poolId, { kept: balance.remaining, granted_until: grantedUntil(balance) });
  }

  async #plan<Credits>(planId: string, column: "credits" | "budget"): Promise<Given<Credits> | undefined> {
    const row = await this.sql.db
      .selectFrom("plans")
      .select(["name", "credits_version", `${column} as given`])
      .where("id", "=", planId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
    if (!row || row.given === null) return undefined;
    return { name: row.name, version: row.credits_version ?? 0, credits: JSON.parse(row.given) };
  }

  #grant(poolId: string): Promise<PlanGrantRow | undefined> {
    return this.sql.db
      .selectFrom("plan_grants")
      .selectAll()
      .where("pool_id", "=", poolId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
  }

  async #remember(poolId: string, values: Partial<Omit<PlanGrantRow, "pool_id" | "workspace_id">>): Promise<void> {
    await this.sql.db
      .insertInto("plan_grants")
      .values({ pool_id: poolId, workspace_id: this.workspaceId, ...values })
      .onConflict((conflict) => conflict.column("pool_id").doUpdateSet(values))
      .execute();
  }
}

/** The balance of a budget with its books: when it is given, given anew, or comes with what was left. */
function bookedBalance<B extends PlannedBalance>(
  balance: B,
  amount: number,
  { credits, isReset, now }: { credits: PlanBudget; isReset: boolean; now: Instant },
): B & BookedBalance {
  // The period of one that was given before is another, so that its holds give nothing back to this one.
  if (!hasBooks(balance)) return withOnEmpty({ ...balance, ...openBooks(amount), period: now }, credits);
  return withOnEmpty(isReset ? refillBooks(balance, amount, amount) : balance, credits);
}

/** What is left of the period that was given; undefined: a new one begins. */
function leftOf(grant: PlanGrantRow | undefined, now: Instant): number | undefined {
  if (!grant || grant.kept === null) return undefined;
  return grant.granted_until === null || now < grant.granted_until ? grant.kept : undefined;
}

/** Makes the balances, budgets and slots that the plans of a key give and that do not exist yet. Returns the ids of those that exist then. */
export async function prepareBalances(
  sql: Sql,
  {
    workspaceId,
    keyId,
    poolId,
    identityId,
    now,
  }: { workspaceId: string; keyId: string; poolId: string; identityId: string | null; now: Instant },
  random: Random,
): Promise<string[]> {
  const owners = identityId === null ? [poolId] : [poolId, identityId];
  const query = sql.db
    .selectFrom("plan_assignments")
    .select(["owner_id", "plan_id"])
    .where("workspace_id", "=", workspaceId)
    .where(sql.dialect.values.isOneOf("owner_id", owners))
    .orderBy("owner_id");
  const assigned = await sql.dialect.locks.locking(query, "update").execute();
  const plans = await sql.db
    .selectFrom("plans")
    .select(["id", "concurrency", "budget"])
    .where(
      sql.dialect.values.isOneOf(
        "id",
        assigned.map(({ plan_id }) => plan_id),
      ),
    )
    .execute();
  const slots = assigned.map(({ owner_id: id, plan_id }) => ({
    id,
    limits: concurrencyOf(plans.find((plan) => plan.id === plan_id)?.concurrency ?? null),
  }));
  await new SlotWriter(sql, workspaceId).insertAll(slots);
  const existing = slots.flatMap(({ id, limits }) => limits.map(({ name }) => slotsId(id, name)));
  const planOf = (ownerId: string | null) => assigned.find(({ owner_id }) => owner_id === ownerId)?.plan_id;
  const log = async (action: string, targets: string[], { kind: _, ...meta }: Extract<Settled, { kind: "given" }>) =>
    recordChange(
      sql,
      { workspaceId, occurredAt: instantAt(now), actor: "system", action, targets, meta, events: [] },
      random,
    );
  const balances = new PlanBalanceWriter(sql, workspaceId);
  const planOfIdentity = plans.find(({ id, budget }) => id === planOf(identityId) && budget !== null)?.id;
  if (identityId !== null && planOfIdentity !== undefined && (await hasNoOwnBudget(sql, identityId))) {
    const { budgetId, ...settled } = await balances.settleBudget(identityId, { planId: planOfIdentity, now }, random);
    if (budgetId !== undefined) existing.push(budgetId);
    if (budgetId !== undefined && settled.kind === "given") {
      await log("budgets.grant", [budgetId, identityId, planOfIdentity], settled);
    }
  }
  const planId = planOf(poolId);
  if (planId === undefined) return existing;
  const balance = await new BalanceWriter(sql, workspaceId).findForUpdate(poolId, random, now);
  if (balance) return [poolId, ...existing];
  const settled = await balances.settle(poolId, undefined, { planId, now });
  if (settled.kind !== "given") return existing;
  await log("credits.grant", [keyId, planId], settled);
  return [poolId, ...existing];
}

/** Whether plans may give an identity a budget: it exists, and has none of its own. */
async function hasNoOwnBudget({ db }: Sql, identityId: string): Promise<boolean> {
  const identity = await db
    .selectFrom("identities")
    .select("budget_id")
    .where("id", "=", identityId)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  return identity !== undefined && identity.budget_id === null;
}
