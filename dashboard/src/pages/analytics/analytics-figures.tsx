import { shortNumber } from "../../api/format.ts";
import { share, type VerificationStats } from "../../api/stats.ts";
import { Figure, Figures } from "../../ui/charts/figures.tsx";
import { Count } from "../../ui/text/number.tsx";

/** What all verifications of a chart add up to. */
export function AnalyticsFigures({ of: sum }: { of: VerificationStats }) {
  return (
    <Figures>
      <Figure name="Verifications" note={`${shortNumber(sum.creditsSpent)} credits spent`}>
        <Count value={sum.total} />
      </Figure>
      <Figure name="Valid" note={share(sum.valid, sum.total)}>
        <Count value={sum.valid} />
      </Figure>
      <Figure name="Refused" note={share(sum.total - sum.valid, sum.total)}>
        <Count value={sum.total - sum.valid} />
      </Figure>
      <Figure name="Most frequent refusal" note={refusalNote(sum.outcomes)}>
        <span className="font-mono text-lg">{mostFrequentRefusal(sum.outcomes)?.[0] ?? "none"}</span>
      </Figure>
    </Figures>
  );
}

function mostFrequentRefusal(outcomes: Readonly<Record<string, number>>): [string, number] | undefined {
  return Object.entries(outcomes)
    .filter(([code]) => code !== "VALID")
    .sort(([, a], [, b]) => b - a)[0];
}

function refusalNote(outcomes: Readonly<Record<string, number>>): string {
  const found = mostFrequentRefusal(outcomes);
  return found ? `${shortNumber(found[1])} verifications` : "nothing was refused";
}
