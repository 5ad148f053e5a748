import { createColumnHelper, rowSelectionFeature, tableFeatures, useTable } from "@tanstack/react-table";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { classes } from "./classes.ts";
import { useDensity } from "./theme.ts";
import { Tick } from "./tick.tsx";
import { useMedia } from "./use-media.ts";

const ROW_HEIGHT = { comfortable: 36, compact: 28 };
const CARD_HEIGHT = 92;
/** The next page is asked for when so few rows remain below the last one that is shown. */
const ROWS_AHEAD = 60;

/** A column of a table. */
export interface Column<Row> {
  readonly id: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** A track of a CSS grid: `10rem`, `minmax(8rem, 2fr)`. */
  readonly width: string;
  readonly align?: "right";
  /** Not shown in windows that are narrower: `md` 900 px, `lg` 1200 px. */
  readonly from?: "md" | "lg";
  /** On a card, below 600 px: the first line, a line with its header (the default), or nothing. */
  readonly card?: "title" | "none";
}

export interface DataTableProps<Row> {
  /** What the table lists, for readers of the screen. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowId: (row: Row) => string;
  /** What a row is called, for readers of the screen. */
  readonly rowLabel: (row: Row) => string;
  /** Opens a row. */
  readonly onOpen?: ((row: Row) => void) | undefined;
  /** The row that is open beside the table. */
  readonly openId?: string | undefined;
  /** The selected rows by id. Without it rows cannot be selected. */
  readonly selection?: ReadonlySet<string>;
  readonly onSelection?: (selection: ReadonlySet<string>) => void;
  /** Present if the list has more rows than are loaded. */
  readonly onMore?: (() => void) | undefined;
}

const features = tableFeatures({ rowSelectionFeature });

/**
 * A table that renders only the rows in the window, so it can have 100,000. Arrow keys move between rows, Enter opens one,
 * x selects it. Below 600 px the rows are cards.
 */
export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowId, rowLabel, onOpen, openId, selection, onSelection, onMore } = props;
  const [density] = useDensity();
  const [isCards, isMedium, isLarge] = [
    useMedia("(width < 600px)"),
    useMedia("(width >= 900px)"),
    useMedia("(width >= 1200px)"),
  ];
  const shown = useMemo(
    () =>
      columns.filter(({ from, card }) =>
        isCards ? card !== "none" : from === undefined || (from === "lg" ? isLarge : isMedium),
      ),
    [columns, isCards, isMedium, isLarge],
  );
  const table = useTable({
    features,
    data: rows,
    columns: useMemo(() => {
      const helper = createColumnHelper<typeof features, Row>();
      return shown.map(({ id, header, cell }) => helper.display({ id, header, cell: ({ row }) => cell(row.original) }));
    }, [shown]),
    getRowId: rowId,
    enableRowSelection: selection !== undefined,
    state: useMemo(
      () => ({ rowSelection: Object.fromEntries([...(selection ?? [])].map((id) => [id, true as const])) }),
      [selection],
    ),
    onRowSelectionChange: (update) => {
      const before = Object.fromEntries([...(selection ?? [])].map((id) => [id, true as const]));
      const after = typeof update === "function" ? update(before) : update;
      onSelection?.(new Set(Object.keys(after).filter((id) => after[id])));
    },
  });
  const model = table.getRowModel().rows;

  const body = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  useEffect(() => {
    const measure = () => setOffset((body.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const virtualizer = useWindowVirtualizer({
    count: model.length,
    estimateSize: () => (isCards ? CARD_HEIGHT : ROW_HEIGHT[density]),
    getItemKey: (index) => model[index]!.id,
    overscan: 12,
    scrollMargin: offset,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the sizes depend on these.
  useEffect(() => virtualizer.measure(), [virtualizer, density, isCards]);
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (onMore && last + ROWS_AHEAD >= rows.length) onMore();
  }, [onMore, last, rows.length]);

  const tracks = [selection && "2rem", ...shown.map(({ width }) => width)].filter(Boolean).join(" ");
  const isSelectable = selection !== undefined;
  const toggle = (id: string, value: boolean) => {
    const next = new Set(selection);
    if (value) next.add(id);
    else next.delete(id);
    onSelection?.(next);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const row = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const index = Number(row.dataset.index);
    const step =
      event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      focusRow(index + step);
    } else if (event.key === "x" && isSelectable) {
      const { id } = model[index]!;
      toggle(id, !selection.has(id));
    } else if (event.key === "Enter" && event.target === row) {
      onOpen?.(model[index]!.original);
    }
  };
  const focusRow = (index: number) => {
    if (index < 0 || index >= model.length) return;
    virtualizer.scrollToIndex(index);
    const rendered = () => body.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
    // At once, so that the next key is for this row.
    if (rendered()) rendered()?.focus();
    else requestAnimationFrame(() => rendered()?.focus());
  };
  const onClick = (event: MouseEvent<HTMLDivElement>, row: Row) => {
    // A control in a row does its own thing, and so does the selection of a text.
    if ((event.target as HTMLElement).closest("a, button, label, input")) return;
    if (window.getSelection()?.isCollapsed === false) return;
    onOpen?.(row);
  };

  return (
    <div role="table" aria-label={label} aria-rowcount={onMore ? -1 : model.length + 1} className="text-sm">
      <div role="rowgroup" className={isCards ? "sr-only" : undefined}>
        <div
          role="row"
          className="grid items-center gap-x-3 border-b border-line px-2 pb-1.5"
          style={{ gridTemplateColumns: tracks }}
        >
          {isSelectable && (
            <span role="columnheader" aria-label="Selected">
              <Tick
                label="Select all that are loaded"
                value={rows.length > 0 && rows.every((row) => selection.has(rowId(row)))}
                isMixed={selection.size > 0 && !rows.every((row) => selection.has(rowId(row)))}
                onChange={(value) => onSelection?.(new Set(value ? rows.map(rowId) : []))}
              />
            </span>
          )}
          {shown.map(({ id, header, align }) => (
            <span key={id} role="columnheader" className={classes("label truncate", align === "right" && "text-right")}>
              {header}
            </span>
          ))}
        </div>
      </div>
      <div
        role="rowgroup"
        ref={body}
        className="relative"
        style={{ height: virtualizer.getTotalSize() }}
        onKeyDown={onKeyDown}
      >
        {items.map((item) => {
          const row = model[item.index]!;
          const isOpen = row.id === openId;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: onKeyDown of the group handles the keys of its rows.
            <div
              key={item.key}
              role="row"
              data-index={item.index}
              ref={isCards ? virtualizer.measureElement : undefined}
              aria-rowindex={item.index + 2}
              aria-label={isCards ? rowLabel(row.original) : undefined}
              tabIndex={onOpen ? 0 : undefined}
              onClick={(event) => onClick(event, row.original)}
              className={classes(
                "absolute inset-x-0 top-0 border-b border-line px-2 -outline-offset-2",
                isCards ? "flex flex-col gap-1 py-2.5" : "grid items-center gap-x-3",
                onOpen && "cursor-pointer hover:bg-hover",
                isOpen && "bg-accent-soft hover:bg-accent-soft",
              )}
              style={{
                transform: `translateY(${item.start - offset}px)`,
                ...(!isCards && { gridTemplateColumns: tracks, height: item.size }),
              }}
            >
              {isSelectable && (
                <span role="cell" className={isCards ? "absolute top-2 right-2" : undefined}>
                  <Tick
                    label={`Select ${rowLabel(row.original)}`}
                    value={selection.has(row.id)}
                    onChange={(value) => toggle(row.id, value)}
                  />
                </span>
              )}
              {row.getAllCells().map((cell, index) => {
                const { align, header, card } = shown[index]!;
                return (
                  <div
                    key={cell.id}
                    role="cell"
                    className={classes(
                      "min-w-0",
                      isCards
                        ? card === "title"
                          ? "pr-8 font-medium"
                          : "flex items-center justify-between gap-3"
                        : "truncate",
                      !isCards && align === "right" && "text-right tabular-nums",
                    )}
                  >
                    {isCards && card !== "title" && <span className="label">{header}</span>}
                    <table.FlexRender cell={cell} />
                  </div>
                );
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}
