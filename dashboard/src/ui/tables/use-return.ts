import { useElementScrollRestoration } from "@tanstack/react-router";
import { useEffect, useState } from "react";

/** Pages that are loaded to come back to a place: 5,000 rows. */
const PAGES_MAX = 50;
/** What a person does who does not wait for the place. */
const INTERRUPTIONS = ["wheel", "touchmove", "keydown", "pointerdown"] as const;

/**
 * Scrolls to where the window was when this entry of the history was left, once so many rows are there. The router does it
 * for rows that are there at once.
 */
export function useReturn({ rows, onMore, hasMore }: ReturnTo): void {
  const place = useElementScrollRestoration({ getElement: () => window })?.scrollY ?? 0;
  const [wanted, setWanted] = useState(place);
  const [pages, setPages] = useState(0);
  useEffect(() => {
    if (wanted === 0) return;
    const stop = () => setWanted(0);
    for (const type of INTERRUPTIONS) addEventListener(type, stop, { passive: true });
    return () => {
      for (const type of INTERRUPTIONS) removeEventListener(type, stop);
    };
  }, [wanted]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height depends on the number of rows.
  useEffect(() => {
    if (wanted === 0 || rows === undefined) return;
    const { scrollHeight, clientHeight } = document.documentElement;
    if (hasMore && pages < PAGES_MAX && scrollHeight - clientHeight < wanted) {
      if (!onMore) return;
      setPages(pages + 1);
      onMore();
    } else {
      setWanted(0);
      scrollTo(0, wanted);
    }
  }, [rows?.length, onMore, hasMore, wanted]);
}

interface ReturnTo {
  /** Undefined until the first page is there. */
  readonly rows: readonly unknown[] | undefined;
  readonly onMore: (() => void) | undefined;
  readonly hasMore: boolean;
}
