import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Lock, Plus } from "lucide-react";
import { lazy, Suspense, useMemo, useState } from "react";
import { type Entry, list, read } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import { counted } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Page } from "../../ui/page.tsx";
import type { Column } from "../../ui/tables/column.ts";
import { DataTable } from "../../ui/tables/data-table.tsx";
import { Filters, SearchField } from "../../ui/tables/filters.tsx";
import { useSearchChange } from "../../ui/tables/searched-listing.tsx";
import { Id } from "../../ui/text/copy-button.tsx";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { Count } from "../../ui/text/number.tsx";
import { StatusBadge } from "../../ui/text/status-badge.tsx";
import { RecentUse } from "../keys/recent-use.tsx";

const ReportLeak = lazy(async () => ({ default: (await loadCode(() => import("./report-leak.tsx"))).ReportLeak }));
const CreateApi = lazy(async () => ({ default: (await loadCode(() => import("./create-api.tsx"))).CreateApi }));

type Api = Entry<"apis.listApis">;

/** The APIs of the workspace. */
export function ApisPage() {
  const { q = "", report } = useSearch({ from: "/shell/apis" });
  const navigate = useNavigate({ from: "/apis" });
  const [isCreating, setCreating] = useState(false);
  const apis = useInfiniteQuery(list("apis.listApis", q === "" ? {} : { search: q }));
  const { data, error, hasNextPage, fetchNextPage, isFetching } = apis;
  const rows = useMemo(() => data?.pages.flatMap(({ data }) => data) ?? [], [data]);
  const search = useSearchChange(navigate);
  const isFirst = data !== undefined && rows.length === 0 && q === "";
  return (
    <Page
      title="APIs"
      summary="An API is a namespace of keys. Most products have one per environment or service."
      actions={
        <>
          <Button onPress={() => void navigate({ search: (before) => ({ ...before, report: true }) })}>
            Report a leaked key…
          </Button>
          <Button kind="primary" needs="apis.*.create_api" onPress={() => setCreating(true)}>
            <Plus aria-hidden />
            Create API
          </Button>
        </>
      }
    >
      {!isFirst && (
        <Filters>
          <SearchField label="Search APIs" placeholder="Name or id" value={q} onChange={search} />
        </Filters>
      )}
      {error || !data ? (
        <Loading of={apis} rows={6} />
      ) : rows.length > 0 ? (
        <DataTable
          label="APIs"
          columns={columns}
          rows={rows}
          rowId={({ apiId }) => apiId}
          rowLabel={({ name }) => name}
          onOpen={({ apiId }) => void navigate({ to: "/apis/$apiId", params: { apiId } })}
          onMore={hasNextPage && !isFetching ? () => void fetchNextPage() : undefined}
          hasMore={hasNextPage}
        />
      ) : q === "" ? (
        <EmptyState
          title="No APIs yet"
          action={
            <Button kind="primary" needs="apis.*.create_api" onPress={() => setCreating(true)}>
              Create your first API
            </Button>
          }
        >
          <p>Create an API, issue a key in it, and verify the key on each request that your users send.</p>
        </EmptyState>
      ) : (
        <EmptyState title={`No API matches “${q}”`}>
          <p>Names and ids are searched, regardless of case.</p>
        </EmptyState>
      )}
      <Suspense>
        {isCreating && <CreateApi isOpen onClose={() => setCreating(false)} />}
        {report && (
          <ReportLeak onClose={() => void navigate({ search: ({ report: _, ...before }) => before, replace: true })} />
        )}
      </Suspense>
    </Page>
  );
}

const columns: readonly Column<Api>[] = [
  {
    id: "name",
    header: "Name",
    sort: ({ name }) => name,
    width: "minmax(10rem, 2fr)",
    card: "title",
    cell: ({ apiId, name, deleteProtection }) => (
      <span className="flex min-w-0 items-center gap-2">
        <Link to="/apis/$apiId" params={{ apiId }} tabIndex={-1} className="truncate font-medium hover:underline">
          {name}
        </Link>
        {deleteProtection && (
          <StatusBadge tone="neutral" icon={Lock}>
            Protected
          </StatusBadge>
        )}
      </span>
    ),
  },
  { id: "id", header: "Id", width: "minmax(13rem, 1fr)", from: "md", cell: ({ apiId }) => <Id id={apiId} /> },
  {
    id: "prefix",
    header: "Prefix",
    sort: ({ prefix }) => prefix,
    width: "7rem",
    from: "md",
    card: "none",
    cell: ({ prefix }) => (prefix === undefined ? "–" : <code className="font-mono text-xs">{prefix}_</code>),
  },
  { id: "keys", header: "Keys", width: "6rem", align: "right", cell: ({ apiId }) => <KeyCount apiId={apiId} /> },
  {
    id: "use",
    header: "Verifications, 36 hours",
    width: "11rem",
    align: "right",
    cell: ({ apiId }) => <RecentUse of={{ apiId }} />,
  },
];

function KeyCount({ apiId }: { apiId: string }) {
  const can = useCan();
  const isAllowed = can(`apis.${apiId}.read_key`);
  const { data } = useQuery({ ...read("apis.countKeys", { apiId }), enabled: isAllowed, staleTime: 30_000 });
  if (!isAllowed) return <span title={`The root key lacks the permission apis.${apiId}.read_key`}>–</span>;
  if (!data) return null;
  return data.isComplete ? (
    <Count value={data.count} />
  ) : (
    <span title={`At least ${counted(data.count, "key")}`}>
      <Count value={data.count} />+
    </span>
  );
}
