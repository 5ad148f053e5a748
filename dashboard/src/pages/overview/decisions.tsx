import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Pause, Play } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { call, type Data, read } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { share } from "../../api/stats.ts";
import { Button } from "../../ui/button.tsx";
import { CodeMark } from "../../ui/code-mark.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { Section } from "../../ui/page.tsx";
import { Ranking } from "../../ui/ranking.tsx";
import { Skeleton } from "../../ui/skeleton.tsx";
import { keyName } from "../keys/key-state.tsx";

type Decision = Data<"system.listDecisions">["decisions"][number];

const INTERVAL_MS = 2_000;
const KEPT_MAX = 500;
const SHOWN_MAX = 14;
const RANKED_MAX = 5;
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** A sample of the decisions of the last minutes: as a tail, and the keys, owners and identifiers in it. */
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
          const { data } = await call("system.listDecisions", { since: latest, limit: 500 }, { signal: end.signal });
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
    <div className="grid grid-cols-1 gap-x-8 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
      <Section
        title="Decisions, live"
        actions={
          <Button kind="quiet" onPress={() => setPaused(!isPaused)}>
            {isPaused ? <Play aria-hidden /> : <Pause aria-hidden />}
            {isPaused ? "Continue" : "Pause"}
          </Button>
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
          <Tail decisions={decisions.slice(0, SHOWN_MAX)} apiNames={apiNames} />
        )}
      </Section>
      <Section title="In this sample">
        {decisions && decisions.length > 0 ? (
          <Sample of={decisions} />
        ) : (
          <p className="text-quiet">The keys, owners and identifiers of the sample.</p>
        )}
      </Section>
    </div>
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

interface Counted {
  readonly id: string;
  total: number;
  bad: number;
  apiId?: string | undefined;
}

/** The keys, owners and identifiers that occur most in the sample. */
function Sample({ of: decisions }: { of: readonly Decision[] }) {
  const can = useCan();
  const keys = top(decisions, ({ keyId }) => keyId);
  const owners = top(decisions, ({ identityId }) => identityId);
  const identifiers = top(decisions, ({ identifier }) => identifier);
  const keyNames = useQueries({
    queries: keys.map(({ id, apiId }) => ({
      ...read("keys.getKey", { keyId: id }),
      enabled: can(`apis.${apiId}.read_key`),
      staleTime: 5 * 60_000,
    })),
  });
  const ownerNames = useQueries({
    queries: owners.map(({ id }) => ({
      ...read("identities.getIdentity", { identity: id }),
      enabled: can(`identities.${id}.read_identity`),
      staleTime: 5 * 60_000,
    })),
  });
  return (
    <div className="space-y-5">
      <Part
        title="Keys"
        of={keys}
        label={({ id, apiId }, index) => {
          const key = keyNames[index]?.data;
          return (
            <Link to="/apis/$apiId/keys/$keyId" params={{ apiId: apiId!, keyId: id }} className="hover:underline">
              {key ? keyName(key) : id}
            </Link>
          );
        }}
      />
      <Part title="Owners" of={owners} label={({ id }, index) => ownerNames[index]?.data?.externalId ?? id} />
      <Part title="Identifiers" of={identifiers} label={({ id }) => <code className="font-mono text-xs">{id}</code>} />
    </div>
  );
}

function Part({
  title,
  of,
  label,
}: {
  title: string;
  of: readonly Counted[];
  label: (entry: Counted, index: number) => ReactNode;
}) {
  if (of.length === 0) return null;
  return (
    <div>
      <h3 className="label mb-1.5">{title}</h3>
      <Ranking
        label={title}
        empty=""
        entries={of.map((entry, index) => ({
          id: entry.id,
          label: label(entry, index),
          value: entry.total,
          bad: entry.bad,
          ...(entry.bad > 0 && { note: `${share(entry.bad, entry.total)} refused` }),
        }))}
      />
    </div>
  );
}

function top(decisions: readonly Decision[], idOf: (decision: Decision) => string | undefined): Counted[] {
  const counts = new Map<string, Counted>();
  for (const decision of decisions) {
    const id = idOf(decision);
    if (id === undefined) continue;
    const count = counts.get(id) ?? { id, total: 0, bad: 0, apiId: decision.apiId };
    count.total++;
    if (decision.passed === false || (decision.code !== undefined && decision.code !== "VALID")) count.bad++;
    counts.set(id, count);
  }
  return [...counts.values()].sort((a, b) => b.total - a.total).slice(0, RANKED_MAX);
}

/** Newer decisions before those that are known, each once. */
function merged(newer: readonly Decision[], known: readonly Decision[]): readonly Decision[] {
  const ids = new Set(newer.map(({ id }) => id));
  return [...newer, ...known.filter(({ id }) => !ids.has(id))].slice(0, KEPT_MAX);
}
