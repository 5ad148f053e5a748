import type { ReactNode } from "react";
import type { Rows } from "../api/rows.ts";
import { useCan } from "../api/session.ts";
import { DataTable, type DataTableProps } from "./data-table.tsx";
import { EmptyState } from "./empty-state.tsx";
import { ErrorBox } from "./error-box.tsx";
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
