import { useEffect, useState } from "react";

const STILL_MS = 250;

const waiting = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | undefined;

function wait(): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    timer = undefined;
    removeEventListener("scroll", wait);
    for (const tell of waiting) tell();
    waiting.clear();
  }, STILL_MS);
}

/** Whether the window has been still since the component appeared: what only passes by while one scrolls can do less. */
export function useStill(): boolean {
  const [isStill, setStill] = useState(false);
  useEffect(() => {
    const tell = () => setStill(true);
    waiting.add(tell);
    if (timer === undefined) {
      addEventListener("scroll", wait, { passive: true });
      wait();
    }
    return () => {
      waiting.delete(tell);
    };
  }, []);
  return isStill;
}
