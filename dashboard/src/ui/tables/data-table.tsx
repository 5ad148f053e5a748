import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type ReactNode,
  type RefObject,
  useCallback,
  useContext,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { classes } from "../classes.ts";
import { Tick } from "../fields/tick.tsx";
import { ROW_HEIGHT, useDensity } from "../theme.ts";
import { useMedia } from "../use-media.ts";
import type { Column } from "./column.ts";
import { ShownRowsContext } from "./shown-rows.ts";
import { TableHeader } from "./table-header.tsx";
import { sorted, type TableOrder } from "./table-order.ts";

const CARD_HEIGHT = 92;
/** Rows above and below the window that are there before they are scrolled to. Each of them costs what a visible row does. */
const OVERSCAN = 6;
/** The next page is asked for when so few rows remain below the last one that is shown. */
const ROWS_AHEAD = 60;

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
  /** Loads more rows. Absent while some are loaded, and at the end of the list. */
  readonly onMore?: (() => void) | undefined;
  /** Whether the list has more rows than are loaded. Default: whether `onMore` is there. */
  readonly hasMore?: boolean;
  /** Columns that the service can sort the whole list by, and its order if it is by one of them. */
  readonly serviceOrders?: readonly string[];
  readonly order?: TableOrder | undefined;
  readonly onOrder?: (order: TableOrder | undefined) => void;
}

/**
 * A table that renders only the rows in the window, so it can have 100,000. A row is rendered again only if it changes:
 * scrolling renders the rows that come into the window. It is one stop of the Tab key: arrow keys, Home and End move between
 * rows, Tab goes to the controls of the row, Enter opens it, x selects it. Below 600 px the rows are cards.
 */
export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowId, selection, onSelection, serviceOrders = [], onOrder } = props;
  const hasMore = props.hasMore ?? props.onMore !== undefined;
  const [isCards, isMedium, isLarge] = [
    useMedia("(width < 600px)"),
    useMedia("(width >= 900px)"),
    useMedia("(width >= 1200px)"),
  ];
  const place = useRef<HTMLDivElement>(null);
  const width = useWidth(place);
  const isSelectable = selection !== undefined;
  const shown = useMemo(() => {
    if (isCards) return columns.filter(({ card }) => card !== "none");
    const wide = columns.filter(({ from }) => from === undefined || (from === "lg" ? isLarge : isMedium));
    return fitting(wide, width - (isSelectable ? TICK_WIDTH : 0));
  }, [columns, isCards, isMedium, isLarge, isSelectable, width]);
  const tracks = [isSelectable && "2rem", ...shown.map(({ width }) => width)].filter(Boolean).join(" ");
  const areAllSelected = useMemo(
    () => isSelectable && rows.length > 0 && rows.every((row) => selection.has(rowId(row))),
    [isSelectable, selection, rows, rowId],
  );
  const [local, setLocal] = useState<TableOrder>();
  const order = props.order ?? (hasMore ? undefined : local);
  const byService = (column: Column<Row>) => onOrder !== undefined && serviceOrders.includes(column.id);
  // Rows that the service has sorted have no other order, and those of a part of the list none.
  const own = order === local ? local : undefined;
  const byValue = columns.find(({ id }) => id === own?.column)?.sort;
  const inOrder = useMemo(() => (own && byValue ? sorted(rows, byValue, own.direction) : rows), [rows, own, byValue]);
  const show = useContext(ShownRowsContext);
  useEffect(() => {
    show?.(inOrder);
    return () => show?.([]);
  }, [show, inOrder]);
  const sort = (next: TableOrder | undefined) => {
    const column = next && columns.find(({ id }) => id === next.column);
    const isByService = column === undefined || byService(column);
    setLocal(isByService ? undefined : next);
    if (props.order || (column && isByService)) onOrder?.(isByService ? next : undefined);
  };
  return (
    <div ref={place} role="table" aria-label={label} aria-rowcount={hasMore ? -1 : rows.length + 1} className="text-sm">
      <TableHeader
        columns={shown}
        tracks={tracks}
        isCards={isCards}
        order={order}
        canSort={(column) => byService(column) || (column.sort !== undefined && !hasMore)}
        onOrder={sort}
        selection={
          isSelectable
            ? {
                areAll: areAllSelected,
                areSome: selection.size > 0,
                onAll: (value) => onSelection?.(new Set(value ? rows.map(rowId) : [])),
              }
            : undefined
        }
      />
      <Body {...props} rows={inOrder} columns={shown} tracks={tracks} isCards={isCards} />
    </div>
  );
}

const REM = 16;
const GAP = 12;
const TICK_WIDTH = 2 * REM + GAP;

/** The columns whose least widths have room. */
function fitting<Row>(columns: readonly Column<Row>[], width: number): readonly Column<Row>[] {
  const least = columns.reduce(
    (sum, { width }) => sum + GAP + REM * Number(/[\d.]+(?=rem)/.exec(width)?.[0] ?? 0),
    GAP,
  );
  if (least <= width) return columns;
  const lastOf = (size: "lg" | "md") => columns.findLastIndex(({ from }) => from === size);
  const dropped = lastOf("lg") === -1 ? lastOf("md") : lastOf("lg");
  if (dropped === -1) return columns;
  return fitting(
    columns.filter((_, index) => index !== dropped),
    width,
  );
}

/** The width of an element in pixels; without bound until it is measured. */
function useWidth(of: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(Number.POSITIVE_INFINITY);
  useLayoutEffect(() => {
    if (!of.current) return;
    setWidth(of.current.clientWidth);
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    observer.observe(of.current);
    return () => observer.disconnect();
  }, [of]);
  return width;
}

interface BodyProps<Row> extends DataTableProps<Row> {
  /** The tracks of the grid of a row. */
  readonly tracks: string;
  readonly isCards: boolean;
}

/** The rows. It renders again whenever other rows are in the window. */
function Body<Row extends object>(props: BodyProps<Row>) {
  const { columns, rows, rowId, rowLabel, onOpen, openId, selection, onMore, tracks, isCards } = props;
  const [density] = useDensity();
  const latest = useRef(props);
  useLayoutEffect(() => {
    latest.current = props;
  });
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
    count: rows.length,
    estimateSize: () => (isCards ? CARD_HEIGHT : ROW_HEIGHT[density]),
    getItemKey: (index) => rowId(rows[index]!),
    overscan: OVERSCAN,
    scrollMargin: offset,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the sizes depend on these.
  useEffect(() => virtualizer.measure(), [virtualizer, density, isCards]);
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (onMore && last + ROWS_AHEAD >= rows.length) onMore();
  }, [onMore, last, rows.length]);

  // The row that Tab leads to: the last one that had the focus, else the first one in the window.
  const [current, setCurrent] = useState<unknown>();
  const isThere = items.some(({ key }) => key === current);
  const first = items.find(({ start }) => start >= (virtualizer.scrollOffset ?? 0)) ?? items[0];
  const stop = isThere ? current : first?.key;
  const isFocusable = onOpen !== undefined || selection !== undefined;
  // Beside React: rows are not rendered again, and cells make their controls without knowing of the row.
  useLayoutEffect(() => {
    if (!isFocusable) return;
    for (const { key, index } of items) {
      const row = body.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
      if (!row) continue;
      row.tabIndex = key === stop ? 0 : -1;
      for (const control of row.querySelectorAll<HTMLElement>("a, button, input")) control.tabIndex = row.tabIndex;
    }
  });

  const select = useCallback((id: string, value: boolean) => {
    const { selection, onSelection } = latest.current;
    const next = new Set(selection);
    if (value) next.add(id);
    else next.delete(id);
    onSelection?.(next);
  }, []);
  const focusRow = (index: number) => {
    if (index < 0 || index >= rows.length) return;
    virtualizer.scrollToIndex(index);
    const rendered = () => body.current?.querySelector<HTMLElement>(`[data-index="${index}"]`);
    // At once, so that the next key is for this row.
    if (rendered()) rendered()?.focus();
    else requestAnimationFrame(() => rendered()?.focus());
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const element = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
    if (!element || event.altKey || event.ctrlKey || event.metaKey) return;
    const index = Number(element.dataset.index);
    const step =
      event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
    const to = event.key === "Home" ? 0 : event.key === "End" ? rows.length - 1 : index + step;
    if (to !== index) {
      event.preventDefault();
      focusRow(to);
    } else if (event.key === "x" && selection) {
      const id = rowId(rows[index]!);
      select(id, !selection.has(id));
    } else if (event.key === "Enter" && event.target === element) {
      onOpen?.(rows[index]!);
    }
  };
  const onClick = (event: MouseEvent<HTMLDivElement>) => {
    // A control in a row does its own thing, and so does the selection of a text.
    if ((event.target as HTMLElement).closest("a, button, label, input")) return;
    if (window.getSelection()?.isCollapsed === false) return;
    const element = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
    if (element) onOpen?.(rows[Number(element.dataset.index)]!);
  };

  return (
    <div
      role="rowgroup"
      ref={body}
      className="relative"
      style={{ height: virtualizer.getTotalSize() }}
      onKeyDown={onKeyDown}
      onClick={onClick}
      onFocus={({ target }) => {
        const index = Number(target.closest<HTMLElement>("[data-index]")?.dataset.index);
        setCurrent(items.find((item) => item.index === index)?.key);
      }}
    >
      {items.map(({ key, index, start, size }) => {
        const row = rows[index]!;
        const id = rowId(row);
        return (
          <TableRow
            key={key}
            measure={isCards ? virtualizer.measureElement : undefined}
            row={row}
            id={id}
            index={index}
            label={rowLabel(row)}
            top={start - offset}
            height={isCards ? undefined : size}
            columns={columns}
            tracks={tracks}
            canOpen={onOpen !== undefined}
            isOpen={id === openId}
            isSelected={selection?.has(id)}
            onSelect={select}
          />
        );
      })}
    </div>
  );
}

interface TableRowProps<Row> {
  measure: ((element: HTMLDivElement | null) => void) | undefined;
  row: Row;
  id: string;
  index: number;
  label: string;
  top: number;
  /** Undefined: the row is a card, as high as its content. */
  height: number | undefined;
  columns: readonly Column<Row>[];
  tracks: string;
  canOpen: boolean;
  isOpen: boolean;
  /** Undefined: rows cannot be selected. */
  isSelected: boolean | undefined;
  onSelect: (id: string, value: boolean) => void;
}

const TableRow = memo(function TableRow<Row>(props: TableRowProps<Row>) {
  const { measure, row, id, index, label, top, height, columns, tracks, canOpen, isOpen, isSelected, onSelect } = props;
  const isCard = height === undefined;
  return (
    <div
      role="row"
      data-index={index}
      ref={measure}
      aria-rowindex={index + 2}
      aria-label={isCard ? label : undefined}
      className={classes(
        "absolute inset-x-0 top-0 border-b border-line px-2 -outline-offset-2",
        // What changes in a row does not lay out the other rows again.
        isCard ? "flex flex-col gap-1 py-2.5" : "grid items-center gap-x-3 [contain:strict]",
        canOpen && "cursor-pointer hover:bg-hover",
        isOpen && "bg-accent-soft hover:bg-accent-soft",
      )}
      style={{ transform: `translateY(${top}px)`, ...(!isCard && { gridTemplateColumns: tracks, height }) }}
    >
      {isSelected !== undefined && (
        <span role="cell" className={isCard ? "absolute top-2 right-2" : undefined}>
          <Tick label={`Select ${label}`} value={isSelected} onChange={(value) => onSelect(id, value)} />
        </span>
      )}
      {columns.map(({ id, header, align, card, cell }) => (
        <div
          key={id}
          role="cell"
          // A name from right to left is cut at its end, not at its beginning.
          dir="auto"
          className={classes(
            "min-w-0",
            isCard
              ? card === "title"
                ? "order-first pr-8 font-medium"
                : "flex items-center justify-between gap-3"
              : "truncate",
            !isCard && (align === "right" ? "text-right tabular-nums" : "text-left"),
          )}
        >
          {isCard && card !== "title" && <span className="label">{header}</span>}
          {cell(row)}
        </div>
      ))}
    </div>
  );
}) as <Row>(props: TableRowProps<Row>) => ReactNode;
