import type { KeysOrder } from "../../layout/searches.ts";
import { Button } from "../../ui/button.tsx";
import { DataTable } from "../../ui/tables/data-table.tsx";
import { useReturn } from "../../ui/tables/use-return.ts";
import { EmptyState } from "../../ui/text/empty-state.tsx";
import { Loading } from "../../ui/text/loading.tsx";
import { deletedKeyColumns, keyColumns, keyColumnsBesidePanel } from "./key-columns.tsx";
import { type KeyList, keysOrderOf, tableOrderOf } from "./key-list.ts";
import { keyName } from "./key-state.tsx";

/** The keys as a table, or why there is none. */
export function KeysTable({
  of: list,
  apiId,
  open,
  onOpen,
  order,
  onOrder,
  selection,
  onSelection,
  onCreate,
  onClear,
}: {
  of: KeyList;
  apiId: string;
  /** The key whose panel is open. */
  open: string | undefined;
  onOpen: (keyId: string, replace: boolean) => void;
  order: KeysOrder | undefined;
  onOrder: (order: KeysOrder | undefined) => void;
  selection: ReadonlySet<string>;
  onSelection: (selection: ReadonlySet<string>) => void;
  onCreate: () => void;
  /** Clears the filters. */
  onClear: () => void;
}) {
  const { rows, hasFilter, isOfLastFilter } = list;
  useReturn(list);
  if (list.error || !rows) {
    return (
      <>
        <Loading of={list} rows={10} />
        {list.error && order && <Button onPress={() => onOrder(undefined)}>List the newest keys first</Button>}
      </>
    );
  }
  if (rows.length === 0 && !list.hasMore) {
    if (hasFilter) {
      return (
        <EmptyState
          title="No key matches these filters"
          action={<Button onPress={onClear}>Clear the filters</Button>}
        />
      );
    }
    return (
      <EmptyState
        title="No keys yet"
        action={
          <Button kind="primary" needs={`apis.${apiId}.create_key`} onPress={onCreate}>
            Create the first key
          </Button>
        }
      >
        <p>Issue a key for each user or program that calls you, then verify it on every request.</p>
        <p>From another system? Import hashes, so that your users keep their keys.</p>
      </EmptyState>
    );
  }
  return (
    <div aria-busy={isOfLastFilter} className={isOfLastFilter ? "opacity-60 transition-opacity delay-300" : undefined}>
      <DataTable
        label="Keys"
        columns={open ? keyColumnsBesidePanel : list.filter.deleted ? deletedKeyColumns : keyColumns}
        rows={rows}
        rowId={({ keyId }) => keyId}
        rowLabel={keyName}
        openId={open}
        onOpen={({ keyId }) => onOpen(keyId, open !== undefined)}
        serviceOrders={SERVICE_ORDERS}
        order={tableOrderOf(order)}
        onOrder={(order) => onOrder(keysOrderOf(order))}
        {...(!list.filter.deleted && { selection })}
        onSelection={onSelection}
        onMore={list.onMore}
        hasMore={list.hasMore}
      />
      {list.isLoadingMore && <p className="py-3 text-center text-quiet">Loading more keys…</p>}
    </div>
  );
}

/** Columns by which the service lists keys. */
const SERVICE_ORDERS = ["name", "used", "created"];
