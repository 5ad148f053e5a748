import { useSyncExternalStore } from "react";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 5_000;

/** Set while the service does not answer; it ends when it does again. */
let outage: Promise<void> | undefined;
const listeners = new Set<() => void>();

/** What `/health/ready` answers, as far as the header shows it. */
export interface Readiness {
  isReady: boolean;
  /** What is wrong, by the name of the check. */
  checks: Readonly<Record<string, string>>;
}

/** Undefined if the service does not answer. What a proxy answers in its place is no answer. */
export async function readReadiness(signal?: AbortSignal): Promise<Readiness | undefined> {
  try {
    const response = await fetch(`${location.origin}/health/ready`, { ...(signal && { signal }), cache: "no-store" });
    const { status, checks = {} } = (await response.json()) as { status?: string } & Partial<Readiness>;
    return status === undefined ? undefined : { isReady: response.ok, checks };
  } catch (error) {
    if (signal?.aborted) throw error;
    return undefined;
  }
}

/** Reports that the service did not answer. The result ends when it answers again. */
export function waitForService(): Promise<void> {
  outage ??= answering().then(() => {
    outage = undefined;
    for (const listener of listeners) listener();
  });
  for (const listener of listeners) listener();
  return outage;
}

async function answering(): Promise<void> {
  let wait = FIRST_WAIT_MS;
  for (;;) {
    if (await readReadiness()) return;
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  }
}

/** Whether the service answers, as far as the last call and the last file showed. */
export function useConnection(): boolean {
  return useSyncExternalStore(subscribe, () => outage === undefined);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Loads code of the dashboard. While the service does not answer, it waits. If the service answers and has no such file, it
 * has a newer build: the page is loaded again, with the address that it has or gets.
 */
export async function loadCode<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch {
    await waitForService();
  }
  try {
    return await load();
  } catch (error) {
    if (!isFirstReload()) throw error;
    location.reload();
    return new Promise(() => {});
  }
}

const RELOADED = "latchkey-reloaded-at";
const RELOAD_EVERY_MS = 10_000;

/** Whether the page was not loaded again just before: code that never loads must not reload the page for ever. */
function isFirstReload(): boolean {
  const last = Number(sessionStorage.getItem(RELOADED));
  sessionStorage.setItem(RELOADED, String(Date.now()));
  return Date.now() - last > RELOAD_EVERY_MS;
}
