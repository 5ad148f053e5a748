import type { ReactNode } from "react";
import { exactNumber } from "../../api/format.ts";
import { share } from "../../api/stats.ts";
import { Count } from "../text/number.tsx";

/** An entry of a `Ranking`. */
export interface Ranked {
  readonly id: string;
  readonly label: ReactNode;
  readonly value: number;
  /** The part of the value that was refused. */
  readonly bad?: number;
  /** The colour of its bar in the charts, if it has one: a custom property of theme.css. */
  readonly color?: `--${string}` | undefined;
  readonly note?: ReactNode;
}

/** The counts of an entry that ranks verifications. */
export function countsOf({ total, valid }: { total: number; valid: number }): Pick<Ranked, "value" | "bad" | "note"> {
  return { value: total, bad: total - valid, note: `${share(total - valid, total)} refused` };
}

/** Entries with their counts as bars, the largest first. */
export function Ranking({ label, entries, empty }: { label: string; entries: readonly Ranked[]; empty: string }) {
  if (entries.length === 0) return <p className="text-quiet">{empty}</p>;
  const most = Math.max(1, ...entries.map(({ value }) => value));
  return (
    <ol aria-label={label} className="space-y-2.5">
      {entries.map(({ id, label, value, bad = 0, color, note }) => (
        <li key={id}>
          <div className="flex items-baseline gap-3">
            <span className="min-w-0 flex-1 truncate">{label}</span>
            {note && <span className="shrink-0 text-xs text-quiet tabular-nums">{note}</span>}
            <span className="w-14 shrink-0 text-right">
              <Count value={value} />
            </span>
          </div>
          <div
            aria-hidden
            className="mt-1 flex h-1.5 overflow-hidden rounded-full bg-field"
            title={bad === 0 ? undefined : `${exactNumber(bad)} refused`}
          >
            {color ? (
              <span style={{ width: `${(100 * value) / most}%`, background: `var(${color})` }} />
            ) : (
              <>
                <span className="bg-code-valid" style={{ width: `${(100 * (value - bad)) / most}%` }} />
                <span className="bg-code-limited" style={{ width: `${(100 * bad) / most}%` }} />
              </>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}
