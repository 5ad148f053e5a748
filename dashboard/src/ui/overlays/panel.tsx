import { ChevronDown, ChevronUp, X } from "lucide-react";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { IconButton } from "../button.tsx";
import { ShownRowsContext } from "../tables/shown-rows.ts";

/** What the panel of an open row does with the list beside it. */
interface OpenRow {
  readonly close: () => void;
  /** Opens the row above or below; undefined: it is not loaded or there is none. */
  readonly previous: (() => void) | undefined;
  readonly next: (() => void) | undefined;
}

const OpenRowContext = createContext<OpenRow>({ close: () => {}, previous: undefined, next: undefined });

/** Closes the panel that the component is in. */
export function useClosePanel(): () => void {
  return useContext(OpenRowContext).close;
}

/**
 * A table with the panel of its open row beside it. Below 900 px the panel covers the page. `onOpen` writes the id of the
 * open row into the address; undefined closes the panel.
 */
export function WithPanel<Row extends object>({
  rowId,
  open,
  onOpen,
  panel,
  children,
}: {
  rowId: (row: Row) => string;
  open: string | undefined;
  onOpen: (id: string | undefined, replace?: boolean) => void;
  panel: ReactNode;
  children: ReactNode;
}) {
  const [shown, setShown] = useState<readonly object[]>([]);
  const rows = shown as readonly Row[];
  const at = open === undefined ? -1 : rows.findIndex((row) => rowId(row) === open);
  const opener = (row: Row | undefined) => (at === -1 || !row ? undefined : () => onOpen(rowId(row), true));
  return (
    <div className={panel ? "md:grid md:grid-cols-[minmax(0,1fr)_26rem] md:gap-5" : undefined}>
      <div className="min-w-0">
        <ShownRowsContext value={setShown}>{children}</ShownRowsContext>
      </div>
      <OpenRowContext
        value={{ close: () => onOpen(undefined), previous: opener(rows[at - 1]), next: opener(rows[at + 1]) }}
      >
        {panel}
      </OpenRowContext>
    </div>
  );
}

/** The panel of a row, inside `WithPanel`. Escape closes it; the arrows step through the rows. */
export function Panel({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  const { close, previous, next } = useContext(OpenRowContext);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      // A dialog or a menu above the panel handles its own keys.
      if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("[role=dialog], [role=menu]")) {
        close();
      }
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [close]);
  return (
    <aside
      aria-label={title}
      className="appear fixed inset-x-0 top-12 bottom-0 z-20 overflow-y-auto bg-paper md:sticky md:inset-auto md:top-14 md:z-0 md:max-h-[calc(100dvh-4.5rem)] md:self-start md:border-l md:border-line"
    >
      <header className="sticky top-0 flex items-center gap-1 border-b border-line bg-paper py-2 pr-2 pl-4">
        <h2 dir="auto" className="min-w-0 flex-1 truncate text-left font-medium">
          {title}
        </h2>
        {(previous || next) && (
          <>
            <Step label="Previous row" onPress={previous}>
              <ChevronUp aria-hidden />
            </Step>
            <Step label="Next row" onPress={next}>
              <ChevronDown aria-hidden />
            </Step>
          </>
        )}
        <IconButton label="Close the panel" onPress={close}>
          <X aria-hidden />
        </IconButton>
      </header>
      <div className="px-4 py-3">{children}</div>
      {actions && (
        <footer className="sticky bottom-0 flex flex-wrap gap-2 border-t border-line bg-paper px-4 py-2.5">
          {actions}
        </footer>
      )}
    </aside>
  );
}

/** A step to another row. At the end of the list it keeps the focus and does nothing. */
function Step({ onPress, ...rest }: { label: string; onPress: (() => void) | undefined; children: ReactNode }) {
  return (
    <IconButton
      {...rest}
      onPress={onPress}
      aria-disabled={!onPress}
      className={onPress ? "" : "cursor-default opacity-40"}
    />
  );
}

/** The panel of a row that a link leads to, but that is not loaded. */
export function UnlistedPanel({ id }: { id: string }) {
  return (
    <Panel title="Not in the list">
      <p className="text-quiet">
        {id} is not among the rows that are listed. Remove the filters, or scroll down to load more rows.
      </p>
    </Panel>
  );
}
