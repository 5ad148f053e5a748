import type { Key } from "@latchkey/sdk";
import { useQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Suspense, useState } from "react";
import { read } from "../../api/client.ts";
import { loadCode } from "../../api/connection.ts";
import type { KeysSearch } from "../../layout/searches.ts";
import { WithPanel } from "../../ui/overlays/panel.tsx";
import { Page } from "../../ui/page.tsx";
import { useSearchMembers } from "../../ui/tables/listing.tsx";
import { useKeyList } from "./key-list.ts";
import { KeysActions } from "./keys-actions.tsx";
import { type KeysDialog, KeysDialogs } from "./keys-dialogs.tsx";
import { KeysFilters } from "./keys-filters.tsx";
import { KeysSummary } from "./keys-summary.tsx";
import { KeysTable } from "./keys-table.tsx";

const BulkBar = lazyRouteComponent(() => loadCode(() => import("./bulk.tsx")), "BulkBar");
const KeyPanel = lazyRouteComponent(() => loadCode(() => import("./key-panel.tsx")), "KeyPanel");

/** The keys of an API. */
export function KeysPage() {
  const { apiId } = useParams({ from: "/shell/apis/$apiId" });
  const search = useSearch({ from: "/shell/apis/$apiId" });
  const navigate = useNavigate({ from: "/apis/$apiId" });
  const set = useSearchMembers<KeysSearch>(navigate);
  const [dialog, setDialog] = useState<KeysDialog>();
  const [selection, setSelection] = useState<ReadonlySet<string>>(new Set());
  const { data: api } = useQuery(read("apis.getApi", { apiId }));
  const keys = useKeyList(apiId, search);
  const rows = keys.rows ?? [];
  const show = (key: string | undefined, replace?: boolean) => set({ key }, replace);
  const closeDialog = () => {
    setDialog(undefined);
    if (search.create) set({ create: undefined }, true);
  };
  return (
    <Page
      title={api?.name ?? "Keys"}
      above={
        <Link to="/apis" className="hover:underline">
          APIs
        </Link>
      }
      summary={
        <KeysSummary
          apiId={apiId}
          filter={keys.filter}
          hasFilter={keys.hasFilter}
          listed={keys.rows && !keys.isOfLastFilter ? { count: rows.length, isComplete: !keys.hasMore } : undefined}
        />
      }
      actions={<KeysActions apiId={apiId} apiName={api?.name} filter={keys.filter} onDialog={setDialog} />}
    >
      <KeysFilters apiId={apiId} search={search} set={set} rows={rows} prefix={api?.prefix} />
      <WithPanel<Key>
        rowId={({ keyId }) => keyId}
        open={search.key}
        onOpen={show}
        panel={
          search.key && (
            <Suspense fallback={<div />}>
              <KeyPanel key={search.key} keyId={search.key} apiId={apiId} />
            </Suspense>
          )
        }
      >
        <KeysTable
          of={keys}
          apiId={apiId}
          open={search.key}
          onOpen={show}
          order={search.order}
          onOrder={(order) => set({ order })}
          selection={selection}
          onSelection={setSelection}
          onCreate={() => setDialog("create")}
          onClear={() => void navigate({ search: {} })}
        />
      </WithPanel>
      <Suspense>
        {selection.size > 0 && !keys.filter.deleted && (
          <BulkBar
            filter={keys.filter}
            keys={rows.filter(({ keyId }) => selection.has(keyId))}
            selection={selection}
            areMore={keys.hasMore && rows.every(({ keyId }) => selection.has(keyId))}
            onClear={() => setSelection(new Set())}
          />
        )}
        <KeysDialogs apiId={apiId} api={api} open={search.create ? "create" : dialog} onClose={closeDialog} />
      </Suspense>
    </Page>
  );
}
