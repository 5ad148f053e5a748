import { type Instant, instantAt } from "../clock/clock.ts";
import { sha256 } from "../crypto/digest.ts";
import { changeBooks, hasBooks } from "./books.ts";
import { nextDue, type Refill, type StoredBalance, withDueRefill } from "./refill.ts";

/** What a plan gives to the balance of a key. */
export interface PlanCredits {
  /** What a period has. */
  readonly amount: number;
  /** When the next period begins. Absent: there is one period, without end. */
  readonly refill?: Omit<Refill, "amount">;
}

/** What a plan gives to the budget of an identity. */
export interface PlanBudget extends PlanCredits {
  readonly onEmpty: "deny" | "allow";
  /** Percentages in ascending order. */
  readonly thresholds: number[];
  readonly unit?: string;
}

/** The credits of a plan since a time, or the budget that it gives. */
export interface CreditsVersion {
  readonly version: number;
  readonly since: Instant;
  /** Null: the plan has none. */
  readonly credits: PlanCredits | PlanBudget | null;
}

/**
 * The part of the ids of budgets that says the unit. An identity has one budget of its plans for each unit that these have had:
 * what is left in one unit is nothing in another.
 */
export function unitPartOf({ unit }: Pick<PlanBudget, "unit">): string {
  return unit === undefined ? "" : `_${sha256(unit).toString("hex").slice(0, 12)}`;
}

/** The id of the budget that plans give to an identity. It follows from that of the identity, so no look-up is needed. */
export function planBudgetId(identityId: string, unitPart: string): string {
  return `bud_${identityId.slice(identityId.indexOf("_") + 1)}${unitPart}`;
}

/** A balance that a plan has given. */
export interface PlannedBalance extends StoredBalance {
  /** The version of the credits of its plan that it has. */
  plan_version: number | null;
  /** Of a budget. 1: it counts, and never denies. */
  watched?: 0 | 1 | null;
}

/** The refill of a plan; undefined: it has none. */
export function refillOfPlan({ amount, refill }: PlanCredits): Refill | undefined {
  return refill && { ...refill, amount };
}

/**
 * When the first refill of a plan is due for a balance that has credits of a period which lasts `until`: not before. So no
 * sequence of changes, of a plan or of who has it, gives two periods in the time of one.
 */
export function firstDue(credits: PlanCredits, now: Instant, until: number | null): Instant | null {
  const refill = refillOfPlan(credits);
  if (refill === undefined) return null;
  return nextDue(refill, until !== null && until > now ? instantAt(until - 1) : now);
}

/**
 * Until when a balance has what a plan gave; null: it has no next period. A plan without a refill leaves the end of the last
 * period that another one gave.
 */
export function grantedUntil({ refill_due_at, refill_mark, refill_interval }: StoredBalance): number | null {
  return refill_interval === null ? refill_mark : refill_due_at;
}

/** The refill of a plan for a balance that has credits of a period until then, as columns. */
export function adoptedColumns(credits: PlanCredits, now: Instant, until: number | null) {
  const due = firstDue(credits, now, until);
  return { ...planRefillColumns(credits), refill_due_at: due, refill_mark: due === null ? until : null };
}

/** The columns of the refill of a plan. */
export function planRefillColumns({ amount, refill }: PlanCredits) {
  const { interval, refillDay, refillMonth, timeZone, rollover } = refill ?? {};
  const hasDay = interval === "weekly" || interval === "monthly" || interval === "yearly";
  return {
    refill_interval: interval ?? null,
    refill_amount: refill ? amount : null,
    refill_day: hasDay ? (refillDay ?? 1) : null,
    refill_month: interval === "yearly" ? (refillMonth ?? 1) : null,
    refill_zone: timeZone ?? null,
    refill_rollover: rollover ?? null,
  };
}

const schedule = ["refill_interval", "refill_day", "refill_month", "refill_zone"] as const;

/**
 * A balance with every version of its plan up to now, and the refills that were due in the time of each. A new amount counts
 * from the next refill. A new schedule begins when the period that runs has ended.
 *
 * @param versions those after that of the balance, in order.
 * @param onRefill gets the balance before and after each refill, with the time up to which it was decided.
 */
export function withPlanVersions<B extends PlannedBalance>(
  balance: B,
  versions: readonly CreditsVersion[],
  now: Instant,
  onRefill: (before: B, after: B, at: Instant) => void = () => {},
): B {
  let current = balance;
  const refill = (at: Instant) => {
    const before = current;
    current = withDueRefill(before, at);
    if ((current.period ?? 0) !== (before.period ?? 0)) onRefill(before, current, at);
    return current;
  };
  for (const { version, since, credits } of versions) {
    const at = since < now ? since : now;
    const before = refill(at);
    current = { ...before, plan_version: version };
    // While its plan has no credits, the balance limits no call. It continues with its schedule.
    if (credits === null) continue;
    const columns = planRefillColumns(credits);
    const isSame = schedule.every((column) => columns[column] === before[column]);
    current = { ...current, ...(isSame ? columns : adoptedColumns(credits, at, grantedUntil(before))) };
    if ("onEmpty" in credits) current = withOnEmpty(current, credits);
  }
  return refill(now);
}

/** A budget that denies calls, or never does, as its plan says. One that denies has no debts. */
export function withOnEmpty<B extends PlannedBalance>(balance: B, { onEmpty }: Pick<PlanBudget, "onEmpty">): B {
  if (onEmpty === "allow") return { ...balance, watched: 1 };
  const settled = balance.remaining < 0 && hasBooks(balance) ? changeBooks(balance, 0) : balance;
  return { ...settled, watched: 0 };
}
