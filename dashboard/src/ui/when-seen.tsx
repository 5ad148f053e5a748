import { type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { classes } from "./classes.ts";

/**
 * Renders its children once their place comes into the window: what nobody scrolls to reads nothing and loads no code. The
 * place never gets smaller than it was before: a page that shrinks at its end moves everything in the window.
 */
export function WhenSeen({ height = "min-h-24", children }: { height?: string; children: ReactNode }) {
  const [isSeen, setSeen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!place.current) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  const skeleton = <div className={classes("skeleton", height)} />;
  return (
    <div ref={place} className={height}>
      {isSeen ? <Suspense fallback={skeleton}>{children}</Suspense> : skeleton}
    </div>
  );
}
