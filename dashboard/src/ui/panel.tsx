import { ChevronDown, ChevronUp, X } from "lucide-react";
import { type ReactNode, useEffect } from "react";
import { IconButton } from "./button.tsx";

/** A list with the panel of its open row beside it. Below 900 px the panel covers the page. */
export function WithPanel({ children, panel }: { children: ReactNode; panel: ReactNode }) {
  return (
    <div className={panel ? "md:grid md:grid-cols-[minmax(0,1fr)_26rem] md:gap-5" : undefined}>
      <div className="min-w-0">{children}</div>
      {panel}
    </div>
  );
}

/** The panel of a row. Escape closes it; the arrows step through the rows. */
export function Panel({
  title,
  onClose,
  onStep,
  actions,
  children,
}: {
  title: string;
  onClose: () => void;
  onStep?: (step: 1 | -1) => void;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useEffect(() => {
    const close = (event: KeyboardEvent) => {
      // A dialog or a menu above the panel handles its own keys.
      if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("[role=dialog], [role=menu]")) {
        onClose();
      }
    };
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, [onClose]);
  return (
    <aside
      aria-label={title}
      className="appear fixed inset-x-0 top-12 bottom-0 z-20 overflow-y-auto bg-paper md:sticky md:inset-auto md:top-14 md:z-0 md:max-h-[calc(100dvh-4.5rem)] md:self-start md:border-l md:border-line"
    >
      <header className="sticky top-0 flex items-center gap-1 border-b border-line bg-paper py-2 pr-2 pl-4">
        <h2 className="min-w-0 flex-1 truncate font-medium">{title}</h2>
        {onStep && (
          <>
            <IconButton label="Previous row" onPress={() => onStep(-1)}>
              <ChevronUp aria-hidden />
            </IconButton>
            <IconButton label="Next row" onPress={() => onStep(1)}>
              <ChevronDown aria-hidden />
            </IconButton>
          </>
        )}
        <IconButton label="Close the panel" onPress={onClose}>
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
