import { Ban, CircleCheck, CircleX, type LucideIcon, TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { classes } from "../classes.ts";

/** How good a state is. */
export type Tone = "good" | "warn" | "bad" | "neutral";

const tones: Record<Tone, [string, LucideIcon]> = {
  good: ["text-good bg-good-soft", CircleCheck],
  warn: ["text-warn bg-warn-soft", TriangleAlert],
  bad: ["text-bad bg-bad-soft", CircleX],
  neutral: ["text-quiet bg-field", Ban],
};

/** A state as a word with an icon. */
export function StatusBadge({ tone, icon, children }: { tone: Tone; icon?: LucideIcon; children: ReactNode }) {
  const [look, own] = tones[tone];
  const Icon = icon ?? own;
  return (
    <span
      className={classes(
        "inline-flex h-5 items-center align-middle gap-1 rounded-full px-1.5 text-xs font-medium tracking-normal whitespace-nowrap",
        look,
      )}
    >
      <Icon aria-hidden className="size-3 shrink-0" />
      {children}
    </span>
  );
}
