import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type Entry, read } from "../../api/client.ts";
import { useRows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { share } from "../../api/stats.ts";
import { Sparkline } from "../../ui/charts/sparkline.tsx";
import { useRange } from "../../ui/fields/range.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { SearchedListing, useSearchChange } from "../../ui/tables/searched-listing.tsx";
import { CodeSnippet } from "../../ui/text/code-snippet.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Count } from "../../ui/text/number.tsx";
import { Time } from "../../ui/text/time.tsx";

type Namespace = Entry<"ratelimits.listNamespaces">;

/** The namespaces in which rate limits are counted. */
export function NamespacesPage() {
  const { q = "" } = useSearch({ from: "/shell/ratelimits" });
  const navigate = useNavigate({ from: "/ratelimits" });
  const needs = "ratelimits.*.read_namespace";
  const list = useRows("ratelimits.listNamespaces", q === "" ? {} : { search: q }, useCan()(needs));
  const onSearch = useSearchChange(navigate);
  return (
    <Page
      title="Rate limits"
      summary="A namespace counts the calls of identifiers, such as users or addresses. Its first use creates it."
    >
      <SearchedListing
        one="namespace"
        many="namespaces"
        placeholder="Name or id"
        search={q}
        onSearch={onSearch}
        of={list}
        needs={needs}
        columns={columns}
        rowId={({ id }) => id}
        rowLabel={({ name }) => name}
        onOpen={({ id }) => void navigate({ to: "/ratelimits/$namespaceId", params: { namespaceId: id } })}
        empty={
          <EmptyState title="No rate limits yet">
            <p>The first call of ratelimits.limit with a new name creates a namespace. It appears here at once.</p>
            <CodeSnippet
              operation="ratelimits.limit"
              input={{ namespace: "login", identifier: "user_4021", limit: 10, duration: 60_000 }}
            />
          </EmptyState>
        }
      />
    </Page>
  );
}

const columns: readonly Column<Namespace>[] = [
  {
    id: "name",
    header: "Name",
    sort: ({ name }) => name,
    width: "minmax(10rem, 2fr)",
    card: "title",
    cell: ({ id, name }) => (
      <Link
        to="/ratelimits/$namespaceId"
        params={{ namespaceId: id }}
        tabIndex={-1}
        className="truncate font-medium hover:underline"
      >
        {name}
      </Link>
    ),
  },
  { id: "id", header: "Id", width: "minmax(13rem, 1fr)", from: "md", cell: ({ id }) => <Id id={id} /> },
  {
    id: "use",
    header: "Decisions, 24 hours",
    width: "11rem",
    align: "right",
    cell: ({ id }) => <DayOfUse namespace={id} />,
  },
  { id: "denied", header: "Denied", width: "6rem", align: "right", cell: ({ id }) => <Denied namespace={id} /> },
  {
    id: "created",
    header: "First used",
    sort: ({ createdAt }) => createdAt,
    align: "right",
    width: "8rem",
    from: "lg",
    card: "none",
    cell: ({ createdAt }) => <Time at={createdAt} relative />,
  },
];

function useDay(namespace: string) {
  const isAllowed = useCan()(`ratelimits.${namespace}.read_analytics`);
  const range = useRange("24h");
  return useQuery({
    ...read("analytics.getRatelimitStats", { namespace, ...range }),
    enabled: isAllowed,
    staleTime: 60_000,
  });
}

function DayOfUse({ namespace }: { namespace: string }) {
  const { data } = useDay(namespace);
  if (!data) return "–";
  return (
    <span className="flex items-center justify-end gap-2">
      <Sparkline
        values={data.series.map(({ total }) => total)}
        refused={data.series.map(({ denied }) => denied)}
        label="Decisions in the last 24 hours"
      />
      <span className="min-w-10 whitespace-nowrap text-right">
        <Count value={data.total} />
      </span>
    </span>
  );
}

function Denied({ namespace }: { namespace: string }) {
  const { data } = useDay(namespace);
  return data ? share(data.denied, data.total) : "–";
}
