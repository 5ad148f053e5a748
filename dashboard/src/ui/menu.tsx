import type { ReactNode } from "react";
import { Menu as AriaMenu, MenuItem as AriaMenuItem, MenuTrigger, Popover, Separator } from "react-aria-components";
import { useCan } from "../api/session.ts";
import { classes } from "./classes.ts";

/** A menu that the button `trigger` opens. */
export function Menu({ trigger, children, label }: { trigger: ReactNode; children: ReactNode; label?: string }) {
  return (
    <MenuTrigger>
      {trigger}
      <Popover
        placement="bottom end"
        className="appear min-w-44 rounded-md border border-line bg-raised p-1 shadow-over outline-none"
      >
        <AriaMenu {...(label !== undefined && { "aria-label": label })} className="outline-none">
          {children}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}

/** An entry of a menu. */
export function MenuItem({
  children,
  onAction,
  href,
  danger = false,
  needs,
}: {
  children: string;
  onAction?: () => void;
  href?: string;
  danger?: boolean;
  /** The permission of the root key that the action needs. */
  needs?: string;
}) {
  const can = useCan();
  const isLacking = needs !== undefined && !can(needs);
  return (
    <AriaMenuItem
      isDisabled={isLacking}
      textValue={children}
      {...(onAction && { onAction })}
      {...(href !== undefined && { href, target: "_blank", rel: "noreferrer" })}
      className={classes(
        "flex flex-col rounded-sm px-2.5 py-1.5 outline-none data-focused:bg-hover",
        isLacking ? "cursor-not-allowed text-quiet" : danger && "text-bad",
      )}
    >
      {children}
      {isLacking && <span className="text-xs">Needs {needs}</span>}
    </AriaMenuItem>
  );
}

/** A line between entries. */
export function MenuLine() {
  return <Separator className="my-1 border-t border-line" />;
}
