/** A page with a table of 5,000 rows that counts how often each cell is rendered. `table.test.ts` bundles it. */
import { createElement, useState } from "react";
import { createRoot } from "react-dom/client";
import type { Column } from "../src/ui/tables/column.ts";
import { DataTable } from "../src/ui/tables/data-table.tsx";

interface Row {
  readonly id: string;
}

const rendered = new Map<string, number>();
const rows: readonly Row[] = Array.from({ length: 5_000 }, (_, index) => ({ id: `row ${index}` }));
const columns: readonly Column<Row>[] = [
  {
    id: "name",
    header: "Name",
    width: "1fr",
    cell: ({ id }) => {
      rendered.set(id, (rendered.get(id) ?? 0) + 1);
      return id;
    },
  },
];
const rowId = ({ id }: Row) => id;

function Table() {
  const [selection, onSelection] = useState<ReadonlySet<string>>(new Set());
  // The functions are others at each rendering, as on the pages.
  return createElement(DataTable<Row>, {
    label: "Rows",
    columns,
    rows,
    rowId,
    rowLabel: ({ id }: Row) => id,
    onOpen: () => {},
    selection,
    onSelection: (next: ReadonlySet<string>) => onSelection(next),
  });
}

/** How often each row was rendered since the last call. */
function takeRendered(): Record<string, number> {
  const taken = Object.fromEntries(rendered);
  rendered.clear();
  return taken;
}

Object.assign(globalThis, { takeRendered });
createRoot(document.body.appendChild(document.createElement("div"))).render(createElement(Table));
