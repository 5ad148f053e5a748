import { type Instant, instantAt } from "../../../../../engine/src/clock/clock.ts";
import type { Random } from "../../../../../engine/src/random/random.ts";
import { adoptedColumns, grantedUntil, type PlanCredits } from "../../../../../engine/src/rules/plan-credits.ts";
import { concurrencyOf, slotsId } from "../../../../../engine/src/rules/slots.ts";
import { recordChange } from "../../../platform/store/audit/audit.ts";
import type { LateIndex } from "../../../platform/store/retention.ts";
import type { BalanceRow, PlanGrantRow } from "../../../platform/store/schema.ts";
import type { Sql } from "../../../platform/store/store.ts";
import { WorkspaceRows } from "../../../platform/store/workspace-rows.ts";
import { newBalanceColumns } from "../record.ts";
import { BalanceWriter } from "./balances.ts";
import { SlotWriter } from "./slots.ts";

/** What happens to the credits of a key that gets another plan. */
export type BalancesMode = "keep" | "reset";

/** By it the balances of a plan are found that lack its last changes. */
export const planBalancesIndex: LateIndex = {
  name: "balances_plan",
  on: "balances (plan_id, plan_version) where plan_id is not null",
};

/** A time after every other one: what ends with it is never reset again. */
export const NEVER = 8_640_000_000_000_000;

/** The credits that a plan has given to a pool, for the audit log. */
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

/** The balances that plans give to pools of keys. */
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
    const plan = planId === null ? undefined : await this.#plan(planId);
    if (!plan) {
      if (!balance) return { kind: "unchanged" };
      await this.replace(poolId, balance);
      await this.#balances.remove(poolId, now);
      return { kind: "ended", before: balance.remaining };
    }
    const { credits, version, name } = plan;
    if (balance?.plan_id === planId && mode === "keep") return { kind: "unchanged" };
    const grant = await this.#grant(poolId);
    const left = balance?.remaining ?? leftOf(grant, now);
    const isReset = mode === "reset" && left !== undefined;
    const resetBefore = grant?.reset_until ?? 0;
    if (isReset && resetBefore > now) return { kind: "refused", until: resetBefore };
    const running = balance ? grantedUntil(balance) : (grant?.granted_until ?? null);
    const until = left === undefined || isReset ? null : running;
    const next = {
      ...newBalanceColumns(now),
      ...balance,
      pool_id: poolId,
      remaining: left === undefined || isReset ? credits.amount : left,
      ...adoptedColumns(credits, now, until),
      ...(isReset && balance && { period: (balance.period ?? 0) + 1 }),
      plan_id: planId,
      plan_version: version,
    };
    await this.#balances.put(next);
    // A reset to a short period and back gives the long one no second time.
    const resetUntil = Math.max(next.refill_due_at ?? NEVER, running ?? 0);
    await this.#remember(poolId, { kept: null, ...(isReset && { reset_until: resetUntil }) });
    const cause = isReset ? "reset" : left === undefined ? "granted" : balance ? "moved" : "kept";
    const before = balance?.remaining ?? grant?.kept ?? null;
    return { kind: "given", plan: name, version, cause, before, remaining: next.remaining };
  }

  /** Notes what was left of the balance of a plan that goes, or whose place one of the key takes. */
  async replace(poolId: string, balance: BalanceRow): Promise<void> {
    await this.#remember(poolId, { kept: balance.remaining, granted_until: grantedUntil(balance) });
  }

  async #plan(planId: string): Promise<{ name: string; version: number; credits: PlanCredits } | undefined> {
    const row = await this.sql.db
      .selectFrom("plans")
      .select(["name", "credits", "credits_version"])
      .where("id", "=", planId)
      .where("workspace_id", "=", this.workspaceId)
      .executeTakeFirst();
    if (!row || row.credits === null) return undefined;
    return { name: row.name, version: row.credits_version ?? 0, credits: JSON.parse(row.credits) };
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

/** What is left of the period that was given; undefined: a new one begins. */
function leftOf(grant: PlanGrantRow | undefined, now: Instant): number | undefined {
  if (!grant || grant.kept === null) return undefined;
  return grant.granted_until === null || now < grant.granted_until ? grant.kept : undefined;
}

/** Makes the balances and slots that the plans of a key give and that do not exist yet. Returns the ids of those that exist then. */
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
    .select(["id", "concurrency"])
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
  const planId = assigned.find(({ owner_id }) => owner_id === poolId)?.plan_id;
  if (planId === undefined) return existing;
  const balance = await new BalanceWriter(sql, workspaceId).findForUpdate(poolId, random, now);
  if (balance) return [poolId, ...existing];
  const settled = await new PlanBalanceWriter(sql, workspaceId).settle(poolId, undefined, { planId, now });
  if (settled.kind !== "given") return existing;
  const { kind: _, ...meta } = settled;
  await recordChange(
    sql,
    {
      workspaceId,
      occurredAt: instantAt(now),
      actor: "system",
      action: "credits.grant",
      targets: [keyId, planId],
      meta,
      events: [],
    },
    random,
  );
  return [poolId, ...existing];
}
