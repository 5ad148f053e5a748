import { Check } from "lucide-react";
import type { RefObject } from "react";
import { Menu, MenuItem, Popover, Separator } from "react-aria-components";
import { useCan } from "../../api/session.ts";
import type { Needs } from "../button.tsx";
import { classes } from "../classes.ts";

/** An entry of a menu. */
export interface MenuEntry {
  readonly label: string;
  readonly onAction?: () => void;
  /** A page outside the dashboard, which opens in another tab. */
  readonly href?: string;
  readonly isDanger?: boolean;
  /** Marks the entry that holds now. */
  readonly isChosen?: boolean;
  /** The permissions of the root key that the action needs. */
  readonly needs?: Needs;
}

/** The entries of a menu from the top; `line` is a line between them. */
export type MenuEntries = readonly (MenuEntry | "line")[];

/** The open menu of a button. */
export default function MenuPopover({
  triggerRef,
  label,
  entries,
  placement,
  isByKeyboard,
  onClose,
}: {
  triggerRef: RefObject<HTMLElement | null>;
  label: string;
  entries: MenuEntries;
  placement: "bottom start" | "bottom end";
  /** The first entry has the focus then. */
  isByKeyboard: boolean;
  onClose: () => void;
}) {
  return (
    <Popover
      triggerRef={triggerRef}
      isOpen
      onOpenChange={(isOpen) => !isOpen && onClose()}
      placement={placement}
      aria-label={label}
      className="appear min-w-44 rounded-md border border-line bg-raised p-1 shadow-over outline-none"
    >
      <Menu
        aria-label={label}
        autoFocus={isByKeyboard ? "first" : true}
        onClose={onClose}
        className="max-h-80 overflow-y-auto outline-none"
      >
        {entries.map((entry, index) =>
          entry === "line" ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines are all the same.
            <Separator key={`line ${index}`} className="my-1 border-t border-line" />
          ) : (
            <Entry key={entry.label} of={entry} />
          ),
        )}
      </Menu>
    </Popover>
  );
}

function Entry({ of: { label, onAction, href, isDanger = false, isChosen = false, needs } }: { of: MenuEntry }) {
  const can = useCan();
  const missing = [needs ?? []].flat().find((permission) => !can(permission));
  const isLacking = missing !== undefined;
  return (
    <MenuItem
      isDisabled={isLacking}
      textValue={label}
      {...(onAction && { onAction })}
      {...(href !== undefined && { href, target: "_blank", rel: "noreferrer" })}
      className={classes(
        "block rounded-sm px-2.5 py-1.5 outline-none data-focused:bg-hover",
        isLacking ? "cursor-not-allowed text-quiet" : isDanger && "text-bad",
      )}
    >
      <span className="flex items-center justify-between gap-4">
        {label}
        {isChosen && <Check aria-label="chosen" className="size-4 text-accent" />}
      </span>
      {isLacking && <span className="text-xs">Needs {missing}</span>}
    </MenuItem>
  );
}
