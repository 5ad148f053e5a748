import { Ellipsis } from "lucide-react";
import { type KeyboardEvent, lazy, type ReactNode, Suspense, useRef, useState } from "react";
import { loadCode } from "../../api/connection.ts";
import { IconButton } from "../button.tsx";
import type { MenuEntries } from "./menu-popover.tsx";

const load = () => loadCode(() => import("./menu-popover.tsx"));
const MenuPopover = lazy(load);

/** What the button of a menu needs. */
export interface MenuOpener {
  onPress: (event: { pointerType: string }) => void;
  onKeyDown: (event: KeyboardEvent & { continuePropagation(): void }) => void;
  onHoverStart: () => void;
  onFocus: () => void;
  "aria-haspopup": "menu";
  "aria-expanded": boolean;
}

/** A menu that a button opens. Its code is loaded when the pointer or the focus reaches the button. */
export function Menu({
  label,
  entries,
  placement = "bottom end",
  trigger,
}: {
  label: string;
  entries: MenuEntries;
  placement?: "bottom start" | "bottom end";
  trigger: (opener: MenuOpener) => ReactNode;
}) {
  const place = useRef<HTMLSpanElement>(null);
  const [opened, setOpened] = useState<"pointer" | "keyboard">();
  const opener: MenuOpener = {
    onPress: ({ pointerType }) => setOpened(/^(keyboard|virtual)$/.test(pointerType) ? "keyboard" : "pointer"),
    onKeyDown: (event) => {
      if (event.key !== "ArrowDown") return event.continuePropagation();
      event.preventDefault();
      setOpened("keyboard");
    },
    onHoverStart: load,
    onFocus: load,
    "aria-haspopup": "menu",
    "aria-expanded": opened !== undefined,
  };
  return (
    <span ref={place} className="inline-flex h-full items-center">
      {trigger(opener)}
      {opened && (
        <Suspense>
          <MenuPopover
            triggerRef={place}
            label={label}
            entries={entries}
            placement={placement}
            isByKeyboard={opened === "keyboard"}
            onClose={() => setOpened(undefined)}
          />
        </Suspense>
      )}
    </span>
  );
}

/** A menu behind three dots. `isSmall`: for a line of text. */
export function MoreMenu({
  label,
  entries,
  isSmall = false,
}: {
  label: string;
  entries: MenuEntries;
  isSmall?: boolean;
}) {
  return (
    <Menu
      label={label}
      entries={entries}
      trigger={(opener) => (
        <IconButton
          {...opener}
          label={label}
          kind={isSmall ? "quiet" : "plain"}
          className={isSmall ? "!size-6 [&_svg]:!size-3.5" : ""}
        >
          <Ellipsis aria-hidden />
        </IconButton>
      )}
    />
  );
}
