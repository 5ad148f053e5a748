import { type Book, Count } from "./count.ts";
import type { JournalHolds } from "./journal.ts";

/** A hold as the database has it at the end. */
export interface StoredHold {
  id: string;
  state: string;
  cost: number;
  charged: number;
  uncovered: number;
  balances: readonly string[];
  /** How much of its charge each balance did not have. */
  lacks: readonly { balanceId: string; lack: number }[];
  /** Whether it is open, and its time had passed some seconds before the end. */
  isOverdue: boolean;
}

interface Stored {
  budgets: readonly { id: string; remaining: number; held: number; granted: number; spent: number; lapsed: number }[];
  holds: readonly StoredHold[];
  /** The slots that holds have of each limit of concurrency. */
  slots: readonly { id: string; held: number }[];
}

/** How many holds of a key that limits its concurrency may be open. */
export const SLOTS = 12;

/**
 * Each hold ends once, as its caller was told or at its expiry, and its budgets have spent and hold what the holds say, as do
 * the slots. These budgets are charged by holds only.
 */
export function holds({ budgets, ends, made }: JournalHolds, stored: Stored): Book[] {
  const leaked = new Count("holds that are never given back", "holds that nobody ended");
  const ended = new Count("holds that ended in another way than clients were told", "settlements and releases");
  const books = new Count("held credits and slots spent twice, lost or below 0", "holds");
  const rows = new Map(stored.holds.map((hold) => [hold.id, hold]));
  for (const { id, state, isOverdue } of stored.holds) {
    if (state === "expired" || isOverdue) leaked.add(1);
    leaked.expect(!isOverdue, () => `${id} is open, and its time has passed`);
  }
  ended.add(made.length);
  for (const id of made) ended.expect(rows.has(id), () => `${id} does not exist`);
  for (const { holdId, state, charged } of ends) {
    ended.add(1);
    const row = rows.get(holdId);
    ended.expect(
      row?.state === state && row.charged === charged,
      () => `${holdId} is ${row?.state} with ${row?.charged}, and a client was told ${state} with ${charged}`,
    );
  }
  const balances = new Map(stored.budgets.map((budget) => [budget.id, budget]));
  for (const { id: budgetId, isDenying, granted } of budgets) {
    const of = stored.holds.filter((hold) => hold.balances.includes(budgetId));
    books.add(of.length);
    const open = of.filter(({ state }) => state === "open").reduce((sum, { cost }) => sum + cost, 0);
    const charged = of.reduce((sum, { charged, uncovered, lacks }) => {
      const lack = lacks.find(({ balanceId }) => balanceId === budgetId)?.lack ?? 0;
      return sum + charged + uncovered - lack;
    }, 0);
    const row = balances.get(budgetId);
    books.expect(
      row !== undefined &&
        row.spent === charged &&
        row.held === open &&
        row.granted === granted &&
        granted === row.spent + row.held + row.remaining + row.lapsed &&
        (row.remaining >= 0 || !isDenying),
      () =>
        `${budgetId} was granted ${granted}, and has ${JSON.stringify(row)}; its holds charged ${charged} and hold ${open}`,
    );
  }
  for (const { id, held } of stored.slots) {
    const of = stored.holds.filter((hold) => hold.balances.includes(id));
    books.add(of.length);
    const open = of.filter(({ state }) => state === "open").length;
    const finding = () => `${held} of ${SLOTS} slots of ${id} are taken, and ${open} holds are open`;
    books.expect(held === open && held <= SLOTS, finding);
  }
  return [leaked, ended, books];
}
