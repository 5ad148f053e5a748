import schema from "virtual:operation/apis.getLeakKit";
import type { Api } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { type Data, read } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { member, textProblem } from "../../api/schema.ts";
import { type LeakFormat, leakFormats } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { TagsField } from "../../ui/fields/fields.tsx";
import { Segments } from "../../ui/fields/segments.tsx";
import { Code } from "../../ui/text/code-snippet.tsx";
import { Loading } from "../../ui/text/loading.tsx";

const ReportLeak = lazy(async () => ({ default: (await loadCode(() => import("./report-leak.tsx"))).ReportLeak }));

type Kit = Data<"apis.getLeakKit">["kits"][number];

interface Format {
  readonly name: string;
  /** What to do with it. */
  readonly use: string;
  readonly text: (kit: Kit) => string;
}

const formats: Record<LeakFormat, Format> = {
  regex: {
    name: "Regular expression",
    use: "For filters of logs and other scanners: RE2, Hyperscan, PCRE and JavaScript match it in linear time. It matches every key with the prefix.",
    text: ({ regex }) => regex,
  },
  gitleaks: {
    name: "gitleaks",
    use: "Append it to .gitleaks.toml. With useDefault = true under [extend], the rules of gitleaks stay.",
    text: ({ gitleaks }) => gitleaks,
  },
  trufflehog: {
    name: "TruffleHog",
    use: "Save it as trufflehog.yaml, and run: trufflehog filesystem --config trufflehog.yaml . TruffleHog asks the address in it whether a key that it found is live.",
    text: ({ trufflehog }) => trufflehog,
  },
  github: {
    name: "GitHub",
    use: "Send it to GitHub's secret scanning partner program, and set LATCHKEY_GITHUB_KEYS so that the service can check the signatures of its reports.",
    text: ({ github: { type, regex, endpoint, sample } }) =>
      [`Secret type: ${type}`, `Regular expression: ${regex}`, `Endpoint: ${endpoint}`, `Sample: ${sample}`].join("\n"),
  },
};
const formatNames = Object.fromEntries(leakFormats.map((id) => [id, formats[id].name])) as Record<LeakFormat, string>;

/** The address in kits of a service that does not know its own. */
const EXAMPLE_ADDRESS = "https://keys.example.com";

/** What finds the keys of an API in repositories and logs, for each scanner; and a report of a key that was found. */
export function LeakKit({ of: { apiId, prefix } }: { of: Api }) {
  const { prefixes: text, format = "regex" } = useSearch({ from: "/shell/apis/$apiId/settings" });
  const navigate = useNavigate({ from: "/apis/$apiId/settings" });
  const [isReporting, setReporting] = useState(false);
  const prefixes = text?.split(" ").filter(Boolean) ?? (prefix === undefined ? [] : [prefix]);
  const problem = prefixesProblem(prefixes);
  const kits = useQuery({
    ...read("apis.getLeakKit", { apiId, prefixes }),
    enabled: prefixes.length > 0 && problem === undefined,
  });
  const set = (change: { prefixes?: string | undefined; format?: LeakFormat }) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true, resetScroll: false });
  const { use, text: textOf } = formats[format];
  return (
    <div className="mt-6 space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h3 className="font-medium">Find leaked keys</h3>
        <Button onPress={() => setReporting(true)}>Report a leaked key…</Button>
      </div>
      <div className="max-w-xl">
        <TagsField
          label="Prefixes"
          description="Those that your calls of keys.createKey set. Keys without a prefix cannot be told from other texts."
          value={prefixes}
          onChange={(names) =>
            set({ prefixes: names.length === 0 || names.join() === prefix ? undefined : names.join(" ") })
          }
          problem={problem}
          placeholder="live"
        />
      </div>
      <Segments label="Format" options={formatNames} value={format} onChange={(format) => set({ format })} />
      <p className="max-w-prose text-quiet">{use}</p>
      {problem !== undefined ? null : prefixes.length === 0 ? (
        <p>Enter the prefixes of your keys, or set a default prefix above.</p>
      ) : kits.error || !kits.data ? (
        <Loading of={kits} />
      ) : (
        <>
          {kits.data.kits.map((kit) => (
            <Code key={kit.prefix} text={textOf(kit).trimEnd()} label={`Copy for ${kit.prefix}_`} />
          ))}
          {kits.data.kits.some((kit) => textOf(kit).includes(EXAMPLE_ADDRESS)) && (
            <p className="text-xs text-quiet">
              The service does not know its address: replace {EXAMPLE_ADDRESS} by it, or set LATCHKEY_PUBLIC_URL.
            </p>
          )}
        </>
      )}
      <Suspense>{isReporting && <ReportLeak onClose={() => setReporting(false)} />}</Suspense>
    </div>
  );
}

function prefixesProblem(prefixes: readonly string[]): string | undefined {
  const { items, maxItems = Number.POSITIVE_INFINITY } = member(schema, "prefixes");
  if (prefixes.length > maxItems) return `Use at most ${maxItems} prefixes.`;
  const wrong = prefixes.find((prefix) => textProblem(items!, prefix) !== undefined);
  return wrong && `${wrong}: ${textProblem(items!, wrong)}`;
}
