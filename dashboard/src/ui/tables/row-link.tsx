import { useRouter } from "@tanstack/react-router";
import type { MouseEvent, ReactNode } from "react";

/**
 * A link of the dashboard in a row of a table. A `Link` reads the address again at each change of it and prepares to load
 * its page, and a table has a hundred of them.
 */
export function RowLink({
  href,
  title,
  className = "hover:underline",
  children,
}: {
  /** The path with its search: `/apis/api_1?owner=acme`. */
  href: string;
  title?: string;
  className?: string;
  children: ReactNode;
}) {
  const router = useRouter();
  const open = (event: MouseEvent) => {
    // The browser opens other tabs and windows itself.
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    void router.navigate({ href });
  };
  return (
    // The arrow keys move between rows, and Enter opens one.
    <a href={href} title={title} tabIndex={-1} className={className} onClick={open}>
      {children}
    </a>
  );
}

/** An address of the dashboard: ``path`/apis/${apiId}` ``, with its parts encoded. */
export function path(texts: TemplateStringsArray, ...parts: readonly string[]): string {
  return String.raw({ raw: texts }, ...parts.map(encodeURIComponent));
}
