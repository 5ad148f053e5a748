/** The column by which the rows of a table are in order. */
export interface TableOrder {
  readonly column: string;
  readonly direction: "asc" | "desc";
}

/** What a column is sorted by. Rows without a value come last. */
export type SortValue = string | number | boolean | undefined;

const texts = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** The rows by a value. Rows with the same value stay as they are. */
export function sorted<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => SortValue,
  direction: TableOrder["direction"],
): readonly Row[] {
  const sign = direction === "asc" ? 1 : -1;
  return rows.toSorted((one, other) => {
    const [a, b] = [keyOf(one), keyOf(other)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return sign * (typeof a === "string" && typeof b === "string" ? texts.compare(a, b) : Number(a) - Number(b));
  });
}

/** The order after a click on the header of a column: ascending, descending, and as the list was. */
export function nextOrder(order: TableOrder | undefined, column: string): TableOrder | undefined {
  if (order?.column !== column) return { column, direction: "asc" };
  return order.direction === "asc" ? { column, direction: "desc" } : undefined;
}
