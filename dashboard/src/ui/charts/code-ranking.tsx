import { share } from "../../api/stats.ts";
import { CodeMark } from "./code-mark.tsx";
import { Ranking } from "./ranking.tsx";
import { codeColors } from "./series.ts";

/** Verifications by code, the most frequent first. */
export function CodeRanking({
  of: { outcomes, total },
}: {
  of: { outcomes: Readonly<Record<string, number>>; total: number };
}) {
  return (
    <Ranking
      label="Codes"
      empty="There were no verifications in this range."
      entries={Object.entries(outcomes)
        .sort(([, a], [, b]) => b - a)
        .map(([code, value]) => ({
          id: code,
          label: <CodeMark code={code} />,
          value,
          bad: code === "VALID" ? 0 : value,
          color: (codeColors as Readonly<Record<string, `--${string}`>>)[code],
          note: share(value, total),
        }))}
    />
  );
}
