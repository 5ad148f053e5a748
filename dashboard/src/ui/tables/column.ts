import type { ReactNode } from "react";
import type { SortValue } from "./table-order.ts";

/** A column of a table. */
export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** A track of a CSS grid: `10rem`, `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly align?: "right";
  /**
   * Not shown in windows that are narrower (`md` 900 px, `lg` 1200 px), nor where the table would be wider than its place: of
   * those with `lg` the last goes first, then of those with `md`.
   */
  readonly from?: "md" | "lg";
  /** What the rows are sorted by when all of them are loaded. Absent: the table cannot be sorted by this column. */
  readonly sort?: (row: Row) => SortValue;
  /** On a card, below 600 px: the first line, a line with its header (the default), or nothing. */
  readonly card?: "title" | "none";
}
