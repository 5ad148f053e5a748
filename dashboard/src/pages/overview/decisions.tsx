import { Link } from "@tanstack/react-router";
import { Pause, Play } from "lucide-react";
import { useEffect, useState } from "react";
import { call, type Data } from "../../api/client.ts";
import { exactNumber, locale } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { CodeMark } from "../../ui/charts/code-mark.tsx";
import { Section } from "../../ui/page.tsx";
import { ErrorBox } from "../../ui/text/error-box.tsx";
import { Skeleton } from "../../ui/text/skeleton.tsx";

type Decision = Data<"system.listDecisions">["decisions"][number];

const INTERVAL_MS = 2_000;
const SHOWN_MAX = 14;
const clock = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });

/** The tail of a sample of the decisions of the last minutes. */
export function LiveDecisions({ apiNames }: { apiNames: ReadonlyMap<string, string> }) {
  const can = useCan();
  const isAllowed = can("apis.some.read_analytics") || can("ratelimits.some.read_analytics");
  const [isPaused, setPaused] = useState(false);
  const [decisions, setDecisions] = useState<readonly Decision[]>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (!isAllowed || isPaused) return;
    const end = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    let latest = 0;
    const poll = async () => {
      if (!document.hidden) {
        try {
          const { data } = await call(
            "system.listDecisions",
            { since: latest, limit: SHOWN_MAX },
            { signal: end.signal },
          );
          latest = data.decisions[0]?.at ?? latest;
          setDecisions((before = []) => merged(data.decisions, before));
          setError(undefined);
        } catch (error) {
          if (!end.signal.aborted) setError(error);
        }
      }
      if (!end.signal.aborted) timer = setTimeout(poll, INTERVAL_MS);
    };
    void poll();
    return () => {
      end.abort();
      clearTimeout(timer);
    };
  }, [isAllowed, isPaused]);

  if (!isAllowed) {
    return (
      <Section title="Decisions, live">
        <p className="text-quiet">The root key lacks the permission apis.*.read_analytics.</p>
      </Section>
    );
  }
  return (
    <Section
      title="Decisions, live"
      actions={
        <>
          <Link to="/decisions" search={{ outcome: "refused" }} className="link self-center text-xs">
            All refusals
          </Link>
          <Button kind="quiet" onPress={() => setPaused(!isPaused)}>
            {isPaused ? <Play aria-hidden /> : <Pause aria-hidden />}
            {isPaused ? "Continue" : "Pause"}
          </Button>
        </>
      }
    >
      {error !== undefined && <ErrorBox error={error} />}
      {!decisions ? (
        <Skeleton lines={6} />
      ) : decisions.length === 0 ? (
        <p className="text-quiet">
          No decision in the last minutes. Verify a key or count a rate limit, and it appears here within two seconds.
        </p>
      ) : (
        <Tail decisions={decisions} apiNames={apiNames} />
      )}
    </Section>
  );
}

function Tail({ decisions, apiNames }: { decisions: readonly Decision[]; apiNames: ReadonlyMap<string, string> }) {
  return (
    <ul aria-label="Recent decisions">
      {decisions.map(({ id, at, latencyUs, code, passed, keyId, apiId, identifier, tags = [] }) => (
        <li
          key={id}
          className="grid grid-cols-[4.5rem_minmax(0,1fr)_auto] items-center gap-x-3 border-b border-line py-1.5 sm:grid-cols-[5.5rem_12rem_minmax(0,1fr)_auto]"
        >
          <span className="text-xs text-quiet tabular-nums">{clock.format(at)}</span>
          <CodeMark code={code ?? (passed ? "passed" : "denied")} />
          <span className="truncate text-xs max-sm:col-span-2 max-sm:col-start-2 max-sm:row-start-2">
            {keyId !== undefined && apiId !== undefined ? (
              <>
                <Link to="/apis/$apiId/keys/$keyId" params={{ apiId, keyId }} className="font-mono hover:underline">
                  {keyId}
                </Link>
                <span className="text-quiet"> {[apiNames.get(apiId), ...tags].filter(Boolean).join(" · ")}</span>
              </>
            ) : identifier === undefined ? (
              <span className="text-quiet">a key that does not exist</span>
            ) : (
              <span className="font-mono">{identifier}</span>
            )}
          </span>
          <span className="text-right text-xs text-quiet tabular-nums">{exactNumber(latencyUs)} µs</span>
        </li>
      ))}
    </ul>
  );
}

/** Newer decisions before those that are known, each once. */
function merged(newer: readonly Decision[], known: readonly Decision[]): readonly Decision[] {
  const ids = new Set(newer.map(({ id }) => id));
  return [...newer, ...known.filter(({ id }) => !ids.has(id))].slice(0, SHOWN_MAX);
}
