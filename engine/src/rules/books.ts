/**
 * The books of a budget: granted = spent + held + remaining + lapsed, after every function of this file. Null or absent: a
 * balance of keys, which keeps none, except `held` and `period`.
 */
export interface StoredBooks {
  /** The credits of open holds. Null: 0. */
  held?: number | null;
  granted?: number | null;
  spent?: number | null;
  /** What refills have replaced, and what holds gave back to ended periods. */
  lapsed?: number | null;
  /** Increases with each refill. Null: 0. */
  period?: number | null;
  /** What was spent before that from which thresholds count: the last refill, or without one, when credits were last added. */
  spent_before?: number | null;
}

/** A balance with books. */
export interface BookedBalance extends Required<Omit<StoredBooks, "held">> {
  held?: number | null;
  remaining: number;
  granted: number;
  spent: number;
  lapsed: number;
  period: number;
  spent_before: number;
}

/**
 * The most that a sum has. Books with more begin again with the present period. Balances are at most 10^15, and a period and a
 * batch change each sum by less than 2^52, so every number is exact.
 */
const SUM_MAX = 4_000_000_000_000_000;

/** Whether a balance keeps books. */
export function hasBooks<B extends StoredBooks>(balance: B): balance is B & BookedBalance {
  return balance.granted !== null && balance.granted !== undefined;
}

/** The books of a new budget. */
export function openBooks(remaining: number): BookedBalance {
  return { remaining, granted: remaining, spent: 0, lapsed: 0, period: 0, spent_before: 0 };
}

/** A balance after a refill of an amount. What was overspent counts as granted. */
export function refillBooks<B extends BookedBalance>(balance: B, remaining: number, amount: number): B {
  const lost = Math.max(0, balance.remaining - (remaining - amount));
  return boundedBooks({
    ...balance,
    remaining,
    granted: balance.granted + remaining - balance.remaining + lost,
    lapsed: balance.lapsed + lost,
    period: balance.period + 1,
    spent_before: balance.spent,
  });
}

/** A balance whose credits were set, incremented or decremented: `granted` changes by the real difference. */
export function changeBooks<B extends BookedBalance & { refill_amount: number | null }>(
  balance: B,
  remaining: number,
): B {
  const isPeriodBegun = remaining > balance.remaining && balance.refill_amount === null;
  return boundedBooks({
    ...balance,
    remaining,
    granted: balance.granted + remaining - balance.remaining,
    spent_before: isPeriodBegun ? balance.spent : balance.spent_before,
  });
}

/** Late settlements can lower what was spent below 0, and increase what lapsed. */
export function boundedBooks<B extends BookedBalance>(balance: B): B {
  if (balance.granted <= SUM_MAX && balance.lapsed <= SUM_MAX && balance.spent >= -SUM_MAX) return balance;
  const spent = balance.spent - balance.spent_before;
  return { ...balance, granted: unspent(balance) + spent, spent, lapsed: 0, spent_before: 0 };
}

/** What remains, with what is held: thresholds count what is spent. */
export function unspent({ remaining, held }: Pick<BookedBalance, "remaining" | "held">): number {
  return remaining + (held ?? 0);
}

/** What was spent in the present period. */
export function spentInPeriod({ spent, spent_before }: BookedBalance): number {
  return spent - spent_before;
}

/** What is not spent when a percentage of what a period had is. */
function thresholdAt(balance: BookedBalance, percent: number): number {
  const all = unspent(balance) + spentInPeriod(balance);
  // In two steps, because the product could exceed 2^53.
  const left = 100 - percent;
  return Math.trunc(all / 100) * left + Math.floor(((all % 100) * left) / 100);
}

/** What is not spent when the next of the percentages is reached; null if there is none. */
export function nextThreshold(thresholds: readonly number[], balance: BookedBalance): number | null {
  const next = Math.max(
    ...thresholds.map((percent) => thresholdAt(balance, percent)).filter((at) => at < unspent(balance)),
  );
  return next === Number.NEGATIVE_INFINITY ? null : next;
}

/** Which percentages a balance reaches that falls, of those that it had still to reach, and where it reaches the next. */
export function fall(
  thresholds: readonly number[],
  before: BookedBalance & { low_at: number | null },
  after: BookedBalance,
): { reached: number[]; low_at: number | null } {
  const { low_at: nextAt } = before;
  const pending = nextAt === null ? [] : thresholds.filter((percent) => thresholdAt(before, percent) <= nextAt);
  const reached = pending.filter((percent) => unspent(after) <= thresholdAt(after, percent));
  return {
    reached,
    low_at: nextThreshold(
      pending.filter((percent) => !reached.includes(percent)),
      after,
    ),
  };
}
