import { createLink, type LinkComponent } from "@tanstack/react-router";
import type { ComponentProps, ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from "react-aria-components";
import { useCan } from "../api/session.ts";
import { classes } from "./classes.ts";
import { Tooltip } from "./overlays/tooltip.tsx";

/** The permission that something needs, or several. */
export type Needs = string | readonly string[];

type Look = "primary" | "plain" | "quiet" | "danger";

const looks: Record<Look, string> = {
  primary: "border-accent bg-accent text-on-accent font-medium hover:bg-accent-strong hover:border-accent-strong",
  plain: "border-edge/60 bg-raised hover:bg-hover",
  quiet: "border-transparent hover:bg-hover",
  danger: "border-bad/50 bg-raised text-bad hover:bg-bad-soft",
};

function look(kind: Look, isOff: boolean | undefined, className?: string): string {
  return classes(
    "inline-flex h-8 shrink-0 items-center justify-center gap-1.5 rounded-md border px-3 text-sm whitespace-nowrap transition-colors duration-120 [&_svg]:size-4",
    isOff ? "border-line bg-field text-quiet cursor-not-allowed" : looks[kind],
    className,
  );
}

export interface ButtonProps
  extends Omit<AriaButtonProps, "className" | "children" | "style" | "isDisabled" | "onPress"> {
  onPress?: AriaButtonProps["onPress"] | undefined;
  kind?: Look;
  className?: string;
  children: ReactNode;
  /** The permissions of the root key that the action needs. Without one of them the button says so. */
  needs?: Needs | undefined;
  /** Why the action is not possible now. The button stays reachable by keyboard and says it. */
  offBecause?: string | false | undefined;
}

/** A button. One that cannot be used now stays in place and says why. */
export function Button({ needs, ...rest }: ButtonProps) {
  return needs === undefined ? <PlainButton {...rest} /> : <PermittedButton needs={needs} {...rest} />;
}

function PermittedButton({ needs, offBecause, ...rest }: ButtonProps & { needs: Needs }) {
  return <PlainButton {...rest} offBecause={useLack(needs) ?? offBecause} />;
}

/** Says which permission is missing; undefined if none is. */
function useLack(needs: Needs): string | undefined {
  const can = useCan();
  const missing = [needs].flat().find((permission) => !can(permission));
  return missing && `The root key lacks the permission ${missing.replace(".some.", ".*.")}`;
}

function PlainButton({
  kind = "plain",
  className,
  offBecause,
  isPending,
  onPress,
  children,
  ...rest
}: Omit<ButtonProps, "needs">) {
  const isOff = Boolean(offBecause) || isPending;
  // Not `isPending` of the library: it announces the button by its id, and the button is often gone a moment later.
  const act = isOff
    ? {
        type: "button" as const,
        "aria-disabled": "true" as const,
        onPress: undefined as never,
        onKeyDown: undefined as never,
      }
    : onPress && { onPress };
  const button = (
    <AriaButton {...rest} {...act} className={look(kind, isOff, className)}>
      {children}
    </AriaButton>
  );
  return offBecause ? (
    <Tooltip text={offBecause} delay={200}>
      {button}
    </Tooltip>
  ) : (
    button
  );
}

/** A button with an icon and no text: its label is read and shown on hover. */
export function IconButton({ needs, ...rest }: ButtonProps & { label: string }) {
  return needs === undefined ? <PlainIconButton {...rest} /> : <PermittedIconButton needs={needs} {...rest} />;
}

function PermittedIconButton({ needs, ...rest }: ButtonProps & { label: string; needs: Needs }) {
  return <PlainIconButton {...rest} offBecause={useLack(needs) ?? rest.offBecause} />;
}

function PlainIconButton({
  label,
  className,
  kind = "quiet",
  ...rest
}: Omit<ButtonProps, "needs"> & { label: string }) {
  const look = classes("size-8 !px-0", className);
  // A button that is off has a tooltip of its own.
  if (rest.offBecause) return <PlainButton {...rest} kind={kind} aria-label={label} className={look} />;
  return (
    <Tooltip text={label} delay={500}>
      <PlainButton {...rest} kind={kind} aria-label={label} className={look} />
    </Tooltip>
  );
}

const Anchor = ({ kind = "plain", className, ...rest }: ComponentProps<"a"> & { kind?: Look }) => (
  <a {...rest} className={look(kind, false, className)} />
);

/** A link to a place of the dashboard that looks like a button. */
export const LinkButton: LinkComponent<typeof Anchor> = createLink(Anchor);
