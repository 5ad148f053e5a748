import type { Budget } from "@latchkey/sdk";
import { classes } from "../../ui/classes.ts";
import { StatusBadge, type Tone } from "../../ui/text/status-badge.tsx";
import { amountText, hadInPeriod, heldText, sharesOf, stateOf } from "./budget-use.ts";

const fills: Record<Tone, string> = { good: "bg-good", warn: "bg-warn", bad: "bg-bad", neutral: "bg-quiet" };

/** What was spent of the period's credits as a bar, then what open holds have taken, with a mark at each threshold. */
export function BudgetBar({ of: budget, className }: { of: Budget; className?: string }) {
  const { name, spent, thresholds } = budget;
  const spentOfAll = `${amountText(spent, budget)} of ${amountText(hadInPeriod(budget), budget)}`;
  const shares = sharesOf(budget);
  const percent = percentOf(shares.spent);
  return (
    <div
      role="meter"
      aria-label={`Spent of ${name}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
      aria-valuetext={`${spentOfAll}${heldText(budget)}`}
      title={`${spentOfAll} spent${heldText(budget)}`}
      className={classes("relative h-2 min-w-0 rounded-full bg-field ring-1 ring-line ring-inset", className)}
    >
      <div className="flex h-full overflow-hidden rounded-full">
        <div className={classes("rounded-full", fills[stateOf(budget).tone])} style={{ width: `${percent}%` }} />
        <div className="rounded-full bg-quiet/50" style={{ width: `${percentOf(shares.held)}%` }} />
      </div>
      {thresholds.map((threshold) => (
        <span
          key={threshold}
          className="absolute -inset-y-0.5 w-0.5 -translate-x-1/2 bg-ink"
          style={{ left: `${threshold}%` }}
        />
      ))}
    </div>
  );
}

/** With one decimal. */
function percentOf(share: number): number {
  return Math.round(share * 1_000) / 10;
}

/** The state of a budget as a badge. */
export function BudgetState({ of: budget }: { of: Budget }) {
  const { tone, text } = stateOf(budget);
  return <StatusBadge tone={tone}>{text}</StatusBadge>;
}
