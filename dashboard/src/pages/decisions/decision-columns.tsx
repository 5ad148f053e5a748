import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { read } from "../../api/client.ts";
import { exactNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { CodeMark } from "../../ui/charts/code-mark.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { Time } from "../../ui/text/time.tsx";
import { type Decision, leftOutOf, markOf, reasonOf } from "./decision.ts";

/** The names of namespaces by id, as far as the root key may read them. */
export function useNamespaceNames(): ReadonlyMap<string, string> {
  const isAllowed = useCan()("ratelimits.*.read_namespace");
  const { data } = useQuery({
    ...read("ratelimits.listNamespaces", { limit: 100 }),
    enabled: isAllowed,
    staleTime: 60_000,
  });
  return useMemo(() => new Map((data ?? []).map(({ id, name }) => [id, name])), [data]);
}

/** The columns of the log; `isNarrow`: those beside an open panel. */
export function decisionColumns(
  namespaces: ReadonlyMap<string, string>,
  isNarrow: boolean,
): readonly Column<Decision>[] {
  const nameOf = (id: string | undefined) => (id && namespaces.get(id)) ?? id;
  const columns: readonly Column<Decision>[] = [
    { id: "time", header: "Time", width: "8rem", cell: ({ at }) => <Time at={at} relative /> },
    {
      id: "code",
      header: "Code",
      width: "minmax(12rem, 1fr)",
      card: "title",
      cell: (decision) => (
        <>
          <CodeMark code={markOf(decision)} />
          {leftOutOf(decision) > 0 && (
            <span
              className="ml-2 text-xs text-quiet"
              title="Refusals of the same kind before this one, which are no rows"
            >
              and {exactNumber(leftOutOf(decision))} more
            </span>
          )}
        </>
      ),
    },
    {
      id: "about",
      header: "Key or namespace",
      width: "minmax(11rem, 1fr)",
      cell: ({ keyId, namespaceId, identifier }) =>
        keyId === undefined && namespaceId === undefined ? (
          <span className="text-xs text-quiet">a key that does not exist</span>
        ) : (
          <code className="font-mono text-xs">{keyId ?? `${identifier} in ${nameOf(namespaceId)}`}</code>
        ),
    },
    {
      id: "reason",
      header: "Reason",
      width: "minmax(8rem, 1fr)",
      from: "md",
      cell: (decision) => <span className="text-xs text-quiet">{reasonOf(decision)}</span>,
    },
    {
      id: "tags",
      header: "Tags",
      width: "minmax(6rem, 1fr)",
      from: "lg",
      card: "none",
      cell: ({ tags = [] }) => <span className="text-xs text-quiet">{tags.join(" · ")}</span>,
    },
    {
      id: "took",
      header: "Took",
      width: "5.5rem",
      align: "right",
      from: "lg",
      card: "none",
      cell: ({ latencyUs }) => <span className="text-xs text-quiet">{exactNumber(latencyUs)} µs</span>,
    },
    {
      id: "request",
      header: "Request",
      width: "9rem",
      from: "lg",
      card: "none",
      cell: ({ requestId }) => <code className="font-mono text-xs">{requestId}</code>,
    },
  ];
  if (!isNarrow) return columns;
  return columns
    .filter(({ id }) => id === "time" || id === "code" || id === "about")
    .map((column) => (column.id === "about" ? { ...column, from: "lg" as const } : column));
}
