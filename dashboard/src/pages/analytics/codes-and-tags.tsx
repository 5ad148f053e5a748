import type { VerificationStats } from "../../api/stats.ts";
import { CodeRanking } from "../../ui/charts/code-ranking.tsx";
import { countsOf, Ranking } from "../../ui/charts/ranking.tsx";
import { Section } from "../../ui/page.tsx";

const TAGS_SHOWN = 12;

/** How often each code and each tag occurred. */
export function CodesAndTags({ of: sum, onTag }: { of: VerificationStats; onTag: (tag: string) => void }) {
  return (
    <div className="grid grid-cols-1 gap-x-8 md:grid-cols-2">
      <Section title="Codes">
        <CodeRanking of={sum} />
      </Section>
      <Section title="Tags">
        <Ranking
          label="Tags"
          empty="No verification had a tag. Send tags such as path=/v1/charges with keys.verifyKey."
          entries={sum.tags.slice(0, TAGS_SHOWN).map(({ tag, ...counts }) => ({
            id: tag,
            label: (
              <button type="button" className="font-mono text-xs hover:underline" onClick={() => onTag(tag)}>
                {tag}
              </button>
            ),
            ...countsOf(counts),
          }))}
        />
      </Section>
    </div>
  );
}
