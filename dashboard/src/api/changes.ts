import { refresh, reportSessionEnd } from "./client.ts";

/** Changes that come within this time are shown together. */
const PAUSE_MS = 2_000;
const RETRY_MS = { first: 1_000, most: 30_000 };

/** The scopes of operations that show objects of a kind. Everything is read again for a kind that is not here. */
const scopes: Readonly<Record<string, readonly string[]>> = {
  api: ["apis", "identities"],
  key: ["keys", "apis", "identities", "portal", "plans"],
  keys: ["keys", "apis", "identities", "plans"],
  credits: ["keys", "apis"],
  identity: ["identities", "keys", "apis", "plans"],
  budget: ["budgets"],
  plan: ["plans", "keys", "apis", "identities"],
  role: ["permissions", "keys"],
  permission: ["permissions", "keys"],
  namespace: ["ratelimits"],
  override: ["ratelimits"],
  webhook: ["webhooks"],
  root_key: ["rootKeys"],
  workspace: ["workspaces"],
  limit: [],
  auth: [],
  leak: ["keys"],
  quota: [],
};

/** What every change is shown by. */
const always = ["audit.", "system.getFindings", "system.search"];

/** What no change is shown by: analytics are later than changes, and the list of events offers newer ones itself. */
const never = ["analytics.", "events."];

interface Answer {
  readonly cursor: number;
  readonly kinds: readonly string[];
}

/**
 * Reads again what others change, while the window is visible: waits at the service for a change, again and again. After a
 * failure it continues where it was.
 */
export async function followChanges(signal: AbortSignal): Promise<void> {
  let cursor: number | undefined;
  let retryMs = RETRY_MS.first;
  while (!signal.aborted) {
    try {
      await untilVisible(signal);
      const answer: Answer = await ask(cursor, signal);
      cursor = answer.cursor;
      retryMs = RETRY_MS.first;
      if (answer.kinds.length > 0) void refresh(shows(answer.kinds));
      await pause(PAUSE_MS, signal);
    } catch {
      // Not all windows at once.
      await pause(retryMs * (0.5 + Math.random()), signal);
      retryMs = Math.min(RETRY_MS.most, retryMs * 2);
    }
  }
}

/** The next changes. */
async function ask(cursor: number | undefined, signal: AbortSignal): Promise<Answer> {
  const query = cursor === undefined ? "" : `?after=${cursor}`;
  const response = await fetch(`${location.origin}/dashboard/changes${query}`, { signal });
  if (response.status === 401) reportSessionEnd();
  if (!response.ok) throw new Error(`The service answered with status ${response.status}.`);
  return ((await response.json()) as { data: Answer }).data;
}

/** Whether an operation shows objects of these kinds. */
export function shows(kinds: readonly string[]): (operation: string) => boolean {
  const isIn = (scopes: readonly string[]) => (operation: string) =>
    scopes.some((scope) => operation.startsWith(scope));
  if (kinds.some((kind) => scopes[kind] === undefined)) return (operation) => !isIn(never)(operation);
  const starts = [...always, ...kinds.flatMap((kind) => (scopes[kind] ?? []).map((scope) => `${scope}.`))];
  return isIn(starts);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

/** A hidden window waits for nothing: browsers have few connections to one service. */
function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const end = new AbortController();
    const done = () => {
      if (document.hidden && !signal.aborted) return;
      end.abort();
      resolve();
    };
    document.addEventListener("visibilitychange", done, { signal: end.signal });
    signal.addEventListener("abort", done, { signal: end.signal });
  });
}
