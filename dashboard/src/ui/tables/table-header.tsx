import { classes } from "../classes.ts";
import { Tick } from "../fields/tick.tsx";
import type { Column } from "./column.ts";
import { nextOrder, type TableOrder } from "./table-order.ts";

/** The headers of the columns. Those that can be sorted by are buttons. */
export function TableHeader<Row>({
  columns,
  tracks,
  isCards,
  order,
  canSort,
  onOrder,
  selection,
}: {
  columns: readonly Column<Row>[];
  /** The tracks of the grid of a row. */
  tracks: string;
  isCards: boolean;
  order: TableOrder | undefined;
  canSort: (column: Column<Row>) => boolean;
  onOrder: (order: TableOrder | undefined) => void;
  /** Undefined: rows cannot be selected. */
  selection: { areAll: boolean; areSome: boolean; onAll: (value: boolean) => void } | undefined;
}) {
  return (
    <div role="rowgroup" className={isCards ? "sr-only" : undefined}>
      <div
        role="row"
        className="grid items-center gap-x-3 border-b border-line px-2 pb-1.5"
        style={{ gridTemplateColumns: tracks }}
      >
        {selection && (
          <span role="columnheader" aria-label="Selected">
            <Tick
              label="Select all that are loaded"
              value={selection.areAll}
              isMixed={selection.areSome && !selection.areAll}
              onChange={selection.onAll}
            />
          </span>
        )}
        {columns.map((column) => {
          const { id, header, align } = column;
          const direction = order?.column === id ? order.direction : undefined;
          const isSorted = direction && (direction === "asc" ? "ascending" : "descending");
          return (
            <span
              key={id}
              role="columnheader"
              aria-sort={isSorted ?? (canSort(column) ? "none" : undefined)}
              className={classes("label truncate", align === "right" && "text-right")}
            >
              {canSort(column) && !isCards ? (
                <button
                  type="button"
                  title={`Sort by ${header.toLowerCase()}`}
                  className="cursor-pointer rounded-sm hover:underline"
                  onClick={() => onOrder(nextOrder(order, id))}
                >
                  {header}
                  {direction && <span aria-hidden> {direction === "asc" ? "↑" : "↓"}</span>}
                </button>
              ) : (
                header
              )}
            </span>
          );
        })}
      </div>
    </div>
  );
}
