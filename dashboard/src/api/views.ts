import { useMemo, useSyncExternalStore } from "react";
import { useSession } from "./session.ts";

/** What a table shows, under a name: the address has its filters and its order. */
export interface View {
  readonly name: string;
  /** Path and search. */
  readonly address: string;
}

export const VIEWS_MAX = 50;
export const VIEW_NAME_MAX = 60;
const ADDRESS_MAX = 2_000;

const listeners = new Set<() => void>();

/** The views that this browser keeps for the workspace, and what changes them. */
export function useViews() {
  const item = `latchkey.views.${useSession().workspace.id}`;
  const text = useSyncExternalStore(subscribe, () => stored(item));
  const views = useMemo(() => viewsIn(text), [text]);
  // Another window, or an undo, may have changed them since they were rendered.
  const change = (of: (kept: readonly View[]) => readonly View[]) => {
    localStorage.setItem(item, JSON.stringify(of(viewsIn(stored(item)))));
    for (const listener of listeners) listener();
  };
  return {
    views,
    /** Keeps a view, in the place of the one with its name. Throws if the browser refuses. */
    save: (view: View) => change((kept) => [...kept.filter(({ name }) => name !== view.name), view]),
    remove: ({ name }: View) => change((kept) => kept.filter((view) => view.name !== name)),
  };
}

/** Why a view cannot be kept. */
export function viewProblem(views: readonly View[], { name, address }: View): string | undefined {
  if (name === "") return "Enter a name";
  if (name.length > VIEW_NAME_MAX) return `At most ${VIEW_NAME_MAX} characters`;
  if (address.length > ADDRESS_MAX) return "The filters are too long to be kept";
  if (views.length < VIEWS_MAX || views.some((view) => view.name === name)) return undefined;
  return `This browser keeps ${VIEWS_MAX} views. Delete one first.`;
}

/** Reads nothing that this browser cannot have stored: other programs of this origin, or a person, can write there. */
function viewsIn(text: string | null): readonly View[] {
  let entries: unknown;
  try {
    entries = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(entries)) return [];
  return entries.filter(isView).slice(0, VIEWS_MAX);
}

function isView(entry: unknown): entry is View {
  const { name, address } = (entry ?? {}) as Partial<Record<keyof View, unknown>>;
  if (typeof name !== "string" || typeof address !== "string") return false;
  return /^\/(?![/\\])/.test(address) && viewProblem([], { name, address }) === undefined;
}

function stored(item: string): string | null {
  try {
    return localStorage.getItem(item);
  } catch {
    // Storage is off.
    return null;
  }
}

/** Also of changes in other windows. */
function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    removeEventListener("storage", listener);
  };
}
