import { type CSSProperties, createElement, type ReactElement, useEffect, useRef } from "react";
import { defineLatchkeyKeys, type PortalSession } from "./element.ts";

export type { PortalSession } from "./element.ts";

export interface LatchkeyKeysProps {
  /** The token of a session of the portal. */
  session: string;
  /** The address of the Latchkey service, as browsers reach it. */
  service: string;
  /** Instead of the language of the session: `en`, `de`, `fr`, `es`, `pt`, `ja` or `ar`. */
  language?: string;
  className?: string;
  style?: CSSProperties;
  /** Called when it is known what the session may do. */
  onSession?(session: PortalSession): void;
  /** Called when the session has ended. Give the component another one, or leave the page. */
  onEnded?(): void;
}

/** The element `<latchkey-keys>` as a component of React 18 and newer: an owner of keys manages them. */
export function LatchkeyKeys(properties: LatchkeyKeysProps): ReactElement {
  const { session, service, language, className, style } = properties;
  const element = useRef<HTMLElement>(null);
  const listeners = useRef(properties);
  listeners.current = properties;
  useEffect(() => {
    const target = element.current!;
    const onSession = (event: Event) => listeners.current.onSession?.((event as CustomEvent<PortalSession>).detail);
    const onEnded = () => listeners.current.onEnded?.();
    target.addEventListener("latchkey-session", onSession);
    target.addEventListener("latchkey-ended", onEnded);
    // After the listeners: the element may end at once.
    defineLatchkeyKeys();
    return () => {
      target.removeEventListener("latchkey-session", onSession);
      target.removeEventListener("latchkey-ended", onEnded);
    };
  }, []);
  // React 18 passes `className` to such an element unchanged.
  return createElement("latchkey-keys", { ref: element, session, service, language, class: className, style });
}
