import { type ReactNode, useCallback } from "react";
import type { Rows } from "../api/rows.ts";
import { useCan } from "../api/session.ts";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { EmptyState } from "./empty-state.tsx";
import { Filters, SearchField } from "./filters.tsx";
import { Loading } from "./loading.tsx";
import { WithPanel } from "./panel.tsx";

/** A list of the service as a table, or why it cannot be shown, or what stands in its place while it is empty. */
export function Listing<Row extends object>({
  of,
  needs,
  empty,
  noMatch,
  ...table
}: Omit<DataTableProps<Row>, "rows" | "onMore"> & {
  of: Rows<Row>;
  /** The permission to read the list. */
  needs: string;
  /** Shown if the list is empty without a filter. */
  empty: ReactNode;
  /** Shown instead if a filter finds nothing. Undefined: there is no filter. */
  noMatch: string | undefined;
}) {
  const can = useCan();
  if (!can(needs)) {
    return (
      <EmptyState title="The root key may not read this list">
        <p>
          It lacks the permission <code className="font-mono text-xs">{needs.replace(".some.", ".*.")}</code>. Sign in
          with another root key, or give this permission to yours.
        </p>
      </EmptyState>
    );
  }
  const { rows, onMore } = of;
  if (of.error || !rows) return <Loading of={of} lines={6} />;
  // A filtered page can be empty although more follow.
  if (rows.length > 0 || onMore) return <DataTable {...table} rows={rows} onMore={onMore} />;
  return noMatch === undefined ? empty : <EmptyState title={noMatch} />;
}

/** A list below a field that searches it. */
export function SearchedListing<Row extends object>({
  one,
  many,
  placeholder,
  search,
  onSearch,
  ...list
}: Omit<Parameters<typeof Listing<Row>>[0], "label" | "noMatch"> & {
  /** What a row is, and the rows: `identity`, `identities`. */
  one: string;
  many: string;
  placeholder: string;
  /** The text of the address, and what writes it there. */
  search: string;
  onSearch: (text: string) => void;
}) {
  return (
    <>
      <Filters>
        <SearchField label={`Search ${many}`} placeholder={placeholder} value={search} onChange={onSearch} />
      </Filters>
      <Listing
        {...list}
        label={many.charAt(0).toUpperCase() + many.slice(1)}
        noMatch={search === "" ? undefined : `No ${one} matches “${search}”`}
      />
    </>
  );
}

/** A list of the service of which a row opens in a panel. `panel` has the id that is open, and its row if that is loaded. */
export function ListingWithPanel<Row extends object>({
  open,
  onOpen,
  panel,
  ...list
}: Omit<Parameters<typeof Listing<Row>>[0], "openId" | "onOpen"> & {
  open: string | undefined;
  onOpen: (id: string | undefined, replace?: boolean) => void;
  panel: (id: string, row: Row | undefined) => ReactNode;
}) {
  const { rowId, of } = list;
  const rows = of.rows ?? [];
  return (
    <WithPanel
      rows={rows}
      rowId={rowId}
      open={open}
      onOpen={onOpen}
      panel={
        open !== undefined &&
        panel(
          open,
          rows.find((row) => rowId(row) === open),
        )
      }
    >
      <Listing {...list} openId={open} onOpen={(row) => onOpen(rowId(row), open !== undefined)} />
    </WithPanel>
  );
}

/** Writes the text of a search into the address of a page whose only member it is. */
export function useSearchChange(
  navigate: (to: { search: { q?: string }; replace: boolean }) => Promise<void>,
): (text: string) => void {
  return useCallback((q) => void navigate({ search: q === "" ? {} : { q }, replace: true }), [navigate]);
}

/** Changes members of the address of a page. An empty one is removed. */
export function useSearchMembers<Search extends object>(
  navigate: (to: { search: (before: Search) => Search; replace: boolean }) => Promise<void>,
): (change: Search, replace?: boolean) => void {
  return useCallback(
    (change, replace = false) =>
      void navigate({
        search: (before) =>
          Object.fromEntries(Object.entries({ ...before, ...change }).filter(([, value]) => value)) as Search,
        replace,
      }),
    [navigate],
  );
}
