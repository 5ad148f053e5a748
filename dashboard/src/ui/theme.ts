import { useSyncExternalStore } from "react";

/** How the dashboard looks. `system`: as the system does. */
export type Theme = "system" | "light" | "dark";
/** Height of the rows in tables. */
export type Density = "comfortable" | "compact";
/** Pixels. */
export const ROW_HEIGHT: Readonly<Record<Density, number>> = { comfortable: 36, compact: 28 };

const listeners = new Set<() => void>();

/** A choice of the viewer that this browser remembers. Without storage it lasts until the page is left. */
function remembered<Value extends string>(name: string, values: readonly [Value, ...Value[]]) {
  let value = values.find((value) => value === stored(name)) ?? values[0];
  return {
    get: () => value,
    set(next: Value) {
      value = next;
      try {
        localStorage.setItem(`latchkey.${name}`, next);
      } catch {
        // Storage is off.
      }
      applyTheme();
      for (const listener of listeners) listener();
    },
  };
}

function stored(name: string): string | null {
  try {
    return localStorage.getItem(`latchkey.${name}`);
  } catch {
    return null;
  }
}

const theme = remembered<Theme>("theme", ["system", "light", "dark"]);
const density = remembered<Density>("density", ["comfortable", "compact"]);

/** Shows the chosen theme. */
export function applyTheme(): void {
  const { dataset } = document.documentElement;
  if (theme.get() === "system") delete dataset.theme;
  else dataset.theme = theme.get();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The chosen theme, and what sets it. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  return [useSyncExternalStore(subscribe, theme.get), theme.set];
}

/** The chosen density of tables, and what sets it. */
export function useDensity(): [Density, (density: Density) => void] {
  return [useSyncExternalStore(subscribe, density.get), density.set];
}
