import { type ReactNode, useCallback } from "react";
import type { Rows } from "../../api/rows.ts";
import { useCan } from "../../api/session.ts";
import { CsvButton } from "../text/csv-button.tsx";
import { EmptyState } from "../text/empty-state.tsx";
import { Loading } from "../text/loading.tsx";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { useReturn } from "./use-return.ts";

/** A list of the service as a table, or why it cannot be shown, or what stands in its place while it is empty. */
export function Listing<Row extends object>({
  of,
  needs,
  empty,
  noMatch,
  ...table
}: Omit<DataTableProps<Row>, "rows" | "onMore" | "hasMore"> & {
  of: Rows<Row>;
  /** The permission to read the list. */
  needs: string;
  /** Shown if the list is empty without a filter. */
  empty: ReactNode;
  /** Shown instead if a filter finds nothing. Undefined: there is no filter. */
  noMatch: string | undefined;
}) {
  const can = useCan();
  useReturn(of);
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
  const { rows, onMore, hasMore } = of;
  if (of.error || !rows) return <Loading of={of} rows={6} />;
  // A filtered page can be empty although more follow.
  if (rows.length > 0 || hasMore) {
    return (
      <>
        <div className="-mt-2 flex justify-end">
          <CsvButton label={table.label} onSave={() => of.save(table.label)} />
        </div>
        <DataTable {...table} rows={rows} onMore={onMore} hasMore={hasMore} />
      </>
    );
  }
  return noMatch === undefined ? empty : <EmptyState title={noMatch} />;
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
