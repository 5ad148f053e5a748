import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { read } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { CodeMark } from "../../ui/charts/code-mark.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Time } from "../../ui/text/time.tsx";
import { aboutFilter, type Decision, leftOutOf, markOf, reasonOf } from "./decision.ts";

const SHOWN_MAX = 5;

/** The last refusals of a key, an identity or a namespace. */
export function RefusalList({ about }: { about: string }) {
  const can = useCan();
  const isAllowed = can("apis.some.read_analytics") || can("ratelimits.some.read_analytics");
  const found = useQuery({
    ...read("analytics.listDecisions", { ...aboutFilter(about), refused: true, limit: SHOWN_MAX }),
    enabled: isAllowed,
  });
  if (!isAllowed) return <p className="text-quiet">The root key lacks the permission apis.*.read_analytics.</p>;
  if (!found.data) return <Loading of={found} lines={3} />;
  if (found.data.length === 0) return <p className="text-quiet">Nothing was refused.</p>;
  return (
    <ul aria-label="Last refusals">
      {found.data.map((decision) => (
        <Refusal key={decision.id} of={decision} about={about} />
      ))}
    </ul>
  );
}

function Refusal({ of: decision, about }: { of: Decision; about: string }) {
  const { id, at, identifier, tags = [] } = decision;
  const more = leftOutOf(decision);
  return (
    <li className="border-b border-line">
      <Link
        to="/decisions"
        search={{ about, open: id }}
        className="grid grid-cols-[7rem_minmax(0,1fr)] items-center gap-x-3 py-2 hover:bg-hover sm:grid-cols-[9rem_14rem_minmax(0,1fr)]"
      >
        <span className="text-xs text-quiet">
          <Time at={at} relative />
        </span>
        <CodeMark code={markOf(decision)} />
        <span className="truncate text-xs text-quiet max-sm:col-start-2">
          {[identifier, reasonOf(decision), ...tags, more > 0 && `and ${exactNumber(more)} more`]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </Link>
    </li>
  );
}
