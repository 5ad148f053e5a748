import { type ReactNode, useCallback } from "react";
import type { Rows } from "../api/rows.ts";
import { useCan } from "../api/session.ts";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { EmptyState } from "./empty-state.tsx";
import { ErrorBox } from "./error-box.tsx";
import { Filters, SearchField } from "./filters.tsx";
import { Skeleton } from "./skeleton.tsx";

/** A list of the service as a table, or why it cannot be shown, or what stands in its place while it is empty. */
export function Listing<Row extends object>({
  of: { rows, error, retry, onMore },
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
  if (error) return <ErrorBox error={error} retry={retry} />;
  if (!rows) return <Skeleton lines={6} />;
  if (rows.length > 0) return <DataTable {...table} rows={rows} onMore={onMore} />;
  // A filtered page can be empty although more follow.
  if (onMore) return <DataTable {...table} rows={rows} onMore={onMore} />;
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
