import type { Key } from "@latchkey/sdk";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, lazyRouteComponent, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { Suspense, useCallback, useMemo, useState } from "react";
import { type Input, latchkey, list, read } from "../../api/client.ts";
import { counted, DAY, exactNumber } from "../../api/format.ts";
import { useCan } from "../../api/session.ts";
import type { KeysSearch } from "../../routes.tsx";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { EmptyState } from "../../ui/empty-state.tsx";
import { FilterChip, Filters, SearchField } from "../../ui/filters.tsx";
import { useSearchMembers } from "../../ui/listing.tsx";
import { Loading } from "../../ui/loading.tsx";
import { MoreMenu } from "../../ui/menu.tsx";
import { Page } from "../../ui/page.tsx";
import { WithPanel } from "../../ui/panel.tsx";
import { useDensity } from "../../ui/theme.ts";
import { toast, toastError } from "../../ui/toast.tsx";
import { keyColumns } from "./key-columns.tsx";
import { keyName } from "./key-state.tsx";

// What is not shown at first is loaded when it is.
const DeleteApi = lazyRouteComponent(() => import("../apis/delete-api.tsx"), "DeleteApi");
const BulkBar = lazyRouteComponent(() => import("./bulk.tsx"), "BulkBar");
const CreateSession = lazyRouteComponent(() => import("../portal/create-session.tsx"), "CreateSession");
const CreateKey = lazyRouteComponent(() => import("./create-key.tsx"), "CreateKey");
const ImportKeys = lazyRouteComponent(() => import("./import-keys.tsx"), "ImportKeys");
const KeyPanel = lazyRouteComponent(() => import("./key-panel.tsx"), "KeyPanel");

const MINUTE = 60_000;
const expiryDays = { "1d": 1, "14d": 14, "90d": 90 } as const;

/** The keys of an API. */
export function KeysPage() {
  const { apiId } = useParams({ from: "/shell/apis/$apiId" });
  const search = useSearch({ from: "/shell/apis/$apiId" });
  const navigate = useNavigate({ from: "/apis/$apiId" });
  const can = useCan();
  const [density, setDensity] = useDensity();
  const [dialog, setDialog] = useState<"create" | "import" | "portal" | "delete">();
  const [selection, setSelection] = useState<ReadonlySet<string>>(new Set());
  const api = useQuery(read("apis.getApi", { apiId }));
  const filter = useMemo(() => filterOf(apiId, search), [apiId, search]);
  // The rows of the last search stay until those of the next one are there.
  const keys = useInfiniteQuery({
    ...list("apis.listKeys", { ...filter, limit: 100 }),
    placeholderData: (before, query) => (isOfApi(query?.queryKey, apiId) ? before : undefined),
  });
  const rows = useMemo(() => keys.data?.pages.flatMap(({ data }) => data) ?? [], [keys.data]);
  const roles = useQuery({
    ...read("permissions.listRoles", { limit: 100 }),
    enabled: can("permissions.*.read_role"),
  });
  const set = useSearchMembers<KeysSearch>(navigate);

  // A key string must stay out of the address: the service looks it up by its hash. An owner's id can have the form of one.
  const findSecret = useCallback(
    (text: string): boolean => {
      if (!looksLikeKey(text)) return false;
      latchkey.keys
        .whoami({ key: text })
        .then(({ data }) => {
          if (data.apiId === apiId) set({ key: data.keyId });
          else void navigate({ to: "/apis/$apiId", params: { apiId: data.apiId }, search: { key: data.keyId } });
          toast({ text: `This is the key ${keyName(data)}.` });
        })
        .catch(async (error) => {
          const { data } = await latchkey.apis.listKeys({ apiId, externalId: text, limit: 1 });
          if (data.length === 0) throw error;
          set({ owner: text });
        })
        .catch(toastError);
      return true;
    },
    [apiId, navigate, set],
  );
  const onSearch = useCallback(
    (q: string) => {
      if (!findSecret(q)) set({ q }, true);
    },
    [set, findSecret],
  );

  const save = async (format: "csv" | "json") => {
    const { exportKeys } = await import("./export.ts");
    await exportKeys(filter, format, api.data?.name);
  };

  const close = () => setDialog(undefined);
  const open = search.key;
  const show = (key: string | undefined, replace?: boolean) => set({ key }, replace);
  const hasFilter = Object.entries(search).some(([name, value]) => name !== "key" && name !== "order" && value);
  const isEmpty = keys.data !== undefined && rows.length === 0 && !keys.hasNextPage;
  const prefixes = useMemo(() => prefixesOf(rows, api.data?.prefix, search.prefix), [rows, api.data, search.prefix]);
  const onMore = keys.hasNextPage && !keys.isFetching ? () => void keys.fetchNextPage() : undefined;

  return (
    <Page
      title={api.data?.name ?? "Keys"}
      above={
        <Link to="/apis" className="hover:underline">
          APIs
        </Link>
      }
      summary={
        <Summary
          apiId={apiId}
          filter={filter}
          hasFilter={hasFilter}
          listed={
            keys.isPlaceholderData ? undefined : keys.data && { count: rows.length, isComplete: !keys.hasNextPage }
          }
        />
      }
      actions={
        <>
          <MoreMenu
            label="More"
            entries={[
              {
                label: "Settings of the API",
                onAction: () => void navigate({ to: "/apis/$apiId/settings", params: { apiId } }),
              },
              {
                label: "Portal session…",
                needs: `apis.${apiId}.create_portal_session`,
                onAction: () => setDialog("portal"),
              },
              { label: "Export these keys as CSV", onAction: () => void save("csv") },
              { label: "Export these keys as JSON", onAction: () => void save("json") },
              {
                label: density === "compact" ? "Comfortable rows" : "Compact rows",
                onAction: () => setDensity(density === "compact" ? "comfortable" : "compact"),
              },
              "line",
              {
                label: "Delete the API…",
                isDanger: true,
                needs: `apis.${apiId}.delete_api`,
                onAction: () => setDialog("delete"),
              },
            ]}
          />
          <Button needs={`apis.${apiId}.create_key`} onPress={() => setDialog("import")}>
            Import…
          </Button>
          <Button kind="primary" needs={`apis.${apiId}.create_key`} onPress={() => setDialog("create")}>
            <Plus aria-hidden />
            Create key
          </Button>
        </>
      }
    >
      <Filters>
        <SearchField
          label="Search keys"
          placeholder="Name, owner, id, start, or paste a key"
          value={search.q ?? ""}
          onChange={onSearch}
          onPaste={findSecret}
        />
        <FilterChip
          label="State"
          value={search.state}
          onChange={(state) => set({ state })}
          options={[
            { value: "active", label: "Active" },
            { value: "disabled", label: "Disabled" },
            { value: "expired", label: "Expired" },
          ]}
        />
        <FilterChip
          label="Expires"
          value={search.expires}
          onChange={(expires) => set({ expires })}
          options={[
            { value: "1d", label: "within a day" },
            { value: "14d", label: "within 14 days" },
            { value: "90d", label: "within 90 days" },
          ]}
        />
        {prefixes.length > 0 && (
          <FilterChip
            label="Prefix"
            value={search.prefix}
            onChange={(prefix) => set({ prefix })}
            options={prefixes.map((value) => ({ value, label: `${value}_` }))}
          />
        )}
        {(roles.data?.length || search.role) && (
          <FilterChip
            label="Role"
            value={search.role}
            onChange={(role) => set({ role })}
            options={[
              ...new Set([...(search.role ? [search.role] : []), ...(roles.data ?? []).map(({ name }) => name)]),
            ].map((name) => ({ value: name, label: name }))}
          />
        )}
        {search.owner && (
          <FilterChip
            label="Owner"
            value={search.owner}
            onChange={(owner) => set({ owner })}
            options={[{ value: search.owner, label: search.owner }]}
          />
        )}
        <FilterChip
          label="Order"
          value={search.order}
          onChange={(order) => set({ order })}
          options={[{ value: "asc", label: "oldest first" }]}
        />
      </Filters>
      <WithPanel
        rows={rows}
        rowId={({ keyId }) => keyId}
        open={open}
        onOpen={show}
        panel={
          open && (
            <Suspense fallback={<div />}>
              <KeyPanel key={open} keyId={open} apiId={apiId} />
            </Suspense>
          )
        }
      >
        {keys.error || !keys.data ? (
          <Loading of={keys} lines={10} />
        ) : isEmpty ? (
          hasFilter ? (
            <EmptyState
              title="No key matches these filters"
              action={<Button onPress={() => void navigate({ search: {} })}>Clear the filters</Button>}
            />
          ) : (
            <EmptyState
              title="No keys yet"
              action={
                <Button kind="primary" needs={`apis.${apiId}.create_key`} onPress={() => setDialog("create")}>
                  Create the first key
                </Button>
              }
            >
              <p>Issue a key for each user or program that calls you, then verify it on every request.</p>
              <p>From another system? Import hashes, so that your users keep their keys.</p>
            </EmptyState>
          )
        ) : (
          <div
            aria-busy={keys.isPlaceholderData}
            className={keys.isPlaceholderData ? "opacity-60 transition-opacity delay-300" : undefined}
          >
            <DataTable
              label="Keys"
              columns={open ? besidePanel : keyColumns}
              rows={rows}
              rowId={({ keyId }) => keyId}
              rowLabel={keyName}
              openId={open}
              onOpen={({ keyId }) => show(keyId, open !== undefined)}
              selection={selection}
              onSelection={setSelection}
              onMore={onMore}
            />
            {keys.isFetchingNextPage && <p className="py-3 text-center text-quiet">Loading more keys…</p>}
          </div>
        )}
      </WithPanel>
      <Suspense>
        {selection.size > 0 && (
          <BulkBar
            apiId={apiId}
            keys={rows.filter(({ keyId }) => selection.has(keyId))}
            onClear={() => setSelection(new Set())}
          />
        )}
        {dialog === "create" && <CreateKey apiId={apiId} prefix={api.data?.prefix} onClose={close} />}
        {dialog === "import" && <ImportKeys apiId={apiId} onClose={close} />}
        {dialog === "portal" && <CreateSession apiId={apiId} onClose={close} />}
        {api.data && dialog === "delete" && <DeleteApi api={api.data} isOpen onClose={close} />}
      </Suspense>
    </Page>
  );
}

const besidePanel = keyColumns.filter(({ id }) => ["name", "owner", "state", "start"].includes(id));

/** Whether a key of a query is that of a list of keys of this API. */
function isOfApi(queryKey: readonly unknown[] | undefined, apiId: string): boolean {
  return (queryKey?.[1] as { apiId?: string } | undefined)?.apiId === apiId;
}

/** What the address asks for. The times of filters are whole minutes, so that a page that is drawn again reads nothing new. */
function filterOf(
  apiId: string,
  { q, state, expires, prefix, role, owner, order = "desc" }: KeysSearch,
): Input<"apis.countKeys"> & { order: "asc" | "desc" } {
  const now = Math.floor(Date.now() / MINUTE) * MINUTE;
  return {
    apiId,
    order,
    ...(q && { search: q }),
    ...(state && { state }),
    ...(expires && { expiresBefore: now + expiryDays[expires] * DAY }),
    ...(expires && !state && { state: "active" }),
    ...(prefix && { prefix }),
    ...(role && { role }),
    ...(owner && { externalId: owner }),
  };
}

function Summary({
  apiId,
  filter,
  hasFilter,
  listed,
}: {
  apiId: string;
  filter: ReturnType<typeof filterOf>;
  hasFilter: boolean;
  /** The keys that are loaded; undefined until there are some. Counting waits for them: it examines every key. */
  listed: { count: number; isComplete: boolean } | undefined;
}) {
  const { order: _, ...counting } = filter;
  const isReady = listed !== undefined;
  const all = useQuery({ ...read("apis.countKeys", { apiId }), staleTime: 30_000, enabled: isReady });
  const isPart = hasFilter && listed?.isComplete === false;
  const examined = useQuery({ ...read("apis.countKeys", counting), enabled: isPart });
  const matching = isPart ? examined.data : listed;
  const soon = useMemo(
    () => ({ apiId, state: "active" as const, expiresBefore: Math.ceil(Date.now() / DAY) * DAY + 14 * DAY }),
    [apiId],
  );
  const expiring = useQuery({ ...read("apis.countKeys", soon), staleTime: 30_000, enabled: isReady });
  if (!all.data) return <span className="invisible">–</span>;
  return (
    <>
      {hasFilter && matching && `${exactNumber(matching.count)}${matching.isComplete ? "" : "+"} of `}
      {counted(all.data.count, all.data.isComplete ? "key" : "+ key")}
      {(expiring.data?.count ?? 0) > 0 && (
        <>
          {" · "}
          <Link to="/apis/$apiId" params={{ apiId }} search={{ expires: "14d" }} className="link">
            {exactNumber(expiring.data!.count)} {expiring.data!.count === 1 ? "expires" : "expire"} within 14 days
          </Link>
        </>
      )}
    </>
  );
}

/** Whether a text is a key string rather than something to search for. Ids have a known beginning. */
function looksLikeKey(text: string): boolean {
  return /^[\w.-]{20,}$/.test(text) && !/^(key|api|id|identity|root|ws|req)_[A-Za-z0-9]{1,24}$/.test(text);
}

/** The prefixes that occur in the loaded keys, the most frequent first. */
function prefixesOf(rows: readonly Key[], ...more: (string | undefined)[]): string[] {
  const found = rows.flatMap(({ start }) => /^(.+)_[^_]*$/.exec(start)?.[1] ?? []);
  return [...new Set([...more.filter((prefix) => prefix !== undefined), ...found])].slice(0, 12);
}
