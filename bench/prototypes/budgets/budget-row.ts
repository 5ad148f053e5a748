/**
 * The balance of a budget with its books: granted = spent + held + remaining + lapsed, after every function of this file.
 */
export interface BudgetRow {
  readonly granted: number;
  readonly spent: number;
  readonly held: number;
  /** Below 0 only in a row that is watched. */
  readonly remaining: number;
  /** What a period ended with, and what holds of an ended period gave back. */
  readonly lapsed: number;
  /** Increases with each refill. */
  readonly period: number;
}

/** How a row is charged. */
export interface BudgetRule {
  /** Whether the row counts and never denies. */
  readonly isWatched: boolean;
  /** The amount of a refill; undefined: it has none. */
  readonly amount?: number;
  /** The most that a refill keeps; undefined: nothing. */
  readonly rollover?: number;
}

/** What a call took from a row before its end: held, charged at its expiry, or given back at its expiry. */
export interface Portion {
  readonly from: "held" | "spent" | "returned";
  readonly amount: number;
  /** That of the row when it was held. */
  readonly period: number;
}

export function covers(row: BudgetRow, { isWatched }: BudgetRule, cost: number): boolean {
  return isWatched || row.remaining >= cost;
}

/** Spends a cost that the row covers. */
export function charge(row: BudgetRow, cost: number): BudgetRow {
  return { ...row, remaining: row.remaining - cost, spent: row.spent + cost };
}

/** Holds a cost that the row covers. */
export function hold(row: BudgetRow, cost: number): BudgetRow {
  return { ...row, remaining: row.remaining - cost, held: row.held + cost };
}

/** Replaces a portion by what a call really cost. `uncovered`: how much of it the row did not have. */
export function settle(
  row: BudgetRow,
  rule: BudgetRule,
  portion: Portion,
  actual: number,
): { row: BudgetRow; uncovered: number } {
  const had = portion.from === "returned" ? 0 : portion.amount;
  const used = Math.min(actual, had);
  const after = {
    ...row,
    held: row.held - (portion.from === "held" ? had : 0),
    spent: row.spent - (portion.from === "spent" ? had : 0) + used,
  };
  const back = had - used;
  const kept = portion.period === row.period ? back : Math.min(back, roomOf(row, rule));
  after.remaining += kept;
  after.lapsed += back - kept;
  const more = actual - used;
  const taken = rule.isWatched ? more : Math.min(more, after.remaining);
  after.remaining -= taken;
  after.spent += taken;
  return { row: after, uncovered: more - taken };
}

/** What a row takes of what comes back from an ended period. */
function roomOf({ remaining }: BudgetRow, { amount = 0, rollover }: BudgetRule): number {
  return rollover === undefined ? 0 : Math.max(0, rollover + amount - remaining);
}

/** Begins a period. What was overspent in a watched row counts as granted. */
export function refill(row: BudgetRow, { amount = 0, rollover }: BudgetRule): BudgetRow {
  const kept = rollover === undefined ? 0 : Math.min(Math.max(0, row.remaining), rollover);
  const lost = row.remaining - kept;
  return {
    ...row,
    granted: row.granted + amount - Math.min(0, lost),
    remaining: kept + amount,
    lapsed: row.lapsed + Math.max(0, lost),
    period: row.period + 1,
  };
}

/** Sets the remaining credits; `granted` changes by the real difference. */
export function setRemaining(row: BudgetRow, remaining: number): BudgetRow {
  return { ...row, granted: row.granted + remaining - row.remaining, remaining };
}

/** Takes up to an amount, and none that is not there. */
export function decrement(row: BudgetRow, amount: number): BudgetRow {
  return setRemaining(row, row.remaining - Math.min(amount, Math.max(0, row.remaining)));
}
