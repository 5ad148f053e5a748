import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type MouseEvent,
  memo,
  type ReactNode,
  type Ref,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { classes } from "./classes.ts";
import { useDensity } from "./theme.ts";
import { Tick } from "./tick.tsx";
import { useMedia } from "./use-media.ts";

const ROW_HEIGHT = { comfortable: 36, compact: 28 };
const CARD_HEIGHT = 92;
/** Rows above and below the window that are there before they are scrolled to. Each of them costs what a visible row does. */
const OVERSCAN = 6;
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

/**
 * A table that renders only the rows in the window, so it can have 100,000. A row is rendered again only if it changes:
 * scrolling renders the rows that come into the window. Arrow keys move between rows, Enter opens one, x selects it. Below
 * 600 px the rows are cards.
 */
export function DataTable<Row extends object>(props: DataTableProps<Row>) {
  const { label, columns, rows, rowId, selection, onSelection, onMore } = props;
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
  const isSelectable = selection !== undefined;
  const tracks = [isSelectable && "2rem", ...shown.map(({ width }) => width)].filter(Boolean).join(" ");
  const areAllSelected = useMemo(
    () => isSelectable && rows.length > 0 && rows.every((row) => selection.has(rowId(row))),
    [isSelectable, selection, rows, rowId],
  );
  return (
    <div role="table" aria-label={label} aria-rowcount={onMore ? -1 : rows.length + 1} className="text-sm">
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
                value={areAllSelected}
                isMixed={selection.size > 0 && !areAllSelected}
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
      <Body {...props} columns={shown} tracks={tracks} isCards={isCards} />
    </div>
  );
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
    if (step !== 0) {
      event.preventDefault();
      focusRow(index + step);
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
    >
      {items.map(({ key, index, start, size }) => {
        const row = rows[index]!;
        const id = rowId(row);
        return (
          <TableRow
            key={key}
            ref={isCards ? virtualizer.measureElement : undefined}
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
  ref: Ref<HTMLDivElement> | undefined;
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
  const { ref, row, id, index, label, top, height, columns, tracks, canOpen, isOpen, isSelected, onSelect } = props;
  const isCard = height === undefined;
  return (
    <div
      role="row"
      data-index={index}
      ref={ref}
      aria-rowindex={index + 2}
      aria-label={isCard ? label : undefined}
      tabIndex={canOpen ? 0 : undefined}
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
          className={classes(
            "min-w-0",
            isCard
              ? card === "title"
                ? "order-first pr-8 font-medium"
                : "flex items-center justify-between gap-3"
              : "truncate",
            !isCard && align === "right" && "text-right tabular-nums",
          )}
        >
          {isCard && card !== "title" && <span className="label">{header}</span>}
          {cell(row)}
        </div>
      ))}
    </div>
  );
}) as <Row>(props: TableRowProps<Row>) => ReactNode;
