import type { Clock, Milliseconds, Timer } from "../../../../engine/src/clock/clock.ts";
import { Places } from "../../platform/outbound/places.ts";
import { Problem } from "../../platform/rpc/problems.ts";
import type { ChangesQuestion, RecordedChanges } from "./changed-kinds.ts";

/** Interval between two looks at the events, while anybody waits: a window learns of a change after this time and a call. */
const LOOK_INTERVAL: Milliseconds = 1_000;
/** After this time without a change the answer is empty, so that proxies do not end the request. */
const HOLD_MAX: Milliseconds = 20_000;

/** Waiting requests of a session, of a workspace, and of this node. Workspaces share the last as `Places` says. */
export const WAITING_MAX = { session: 8, workspace: 64, node: 512 } as const;

/** What changed after a place in the events. */
export interface Changes {
  /** The place for the next question. */
  readonly cursor: number;
  /** The kinds of objects that changed, such as `key` and `role`; `*` stands for all. Empty: none did. */
  readonly kinds: readonly string[];
}

/** The session for which a request waits. */
export interface WatchingSession {
  readonly sessionId: string;
  readonly workspaceId: string;
  /** Throws or rejects with a problem once the session has ended. */
  check(): Promise<unknown>;
}

interface Waiting {
  readonly session: WatchingSession;
  readonly after: number;
  readonly until: Milliseconds;
  settle(changes: Changes): void;
  fail(error: unknown): void;
}

export interface ChangeWatchOptions {
  clock: Clock;
  /** Reads what changed in some workspaces, each after a place; one question at a time. */
  read(questions: readonly ChangesQuestion[]): Promise<RecordedChanges[]>;
}

/**
 * Requests that wait for a change of their workspace. A change is an event in the database, so a change on any node
 * answers them, and the cursor holds on every node and after a restart. While requests wait, the events of their
 * workspaces are read once a second, whatever the number of requests.
 */
export class ChangeWatch {
  readonly #options: ChangeWatchOptions;
  readonly #waiting = new Set<Waiting>();
  /** Those of the waiting requests, by workspace. */
  readonly #places = new Places(WAITING_MAX.node);
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: ChangeWatchOptions) {
    this.#options = options;
  }

  /** Waiting requests. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves with the changes after a place: at once if there are some, at the latest after `HOLD_MAX`. Without a place it
   * resolves with the newest one. Rejects with a problem when the session ends, or too many requests wait.
   */
  async wait(session: WatchingSession, after: number | undefined, signal: AbortSignal): Promise<Changes> {
    if (after === undefined) {
      const [found] = await this.#options.read([{ workspaceId: session.workspaceId, after: null }]);
      return { cursor: found?.newest ?? 0, kinds: [] };
    }
    this.#admit(session);
    const { promise, resolve, reject } = Promise.withResolvers<Changes>();
    const now = this.#options.clock.monotonic();
    const waiting: Waiting = { session, after, until: now + HOLD_MAX, settle: resolve, fail: reject };
    if (this.#isClosed || signal.aborted) return { cursor: after, kinds: [] };
    this.#waiting.add(waiting);
    this.#places.take(session.workspaceId);
    signal.addEventListener("abort", () => resolve({ cursor: after, kinds: [] }), { once: true });
    this.#timer ??= this.#options.clock.schedule(0, () => void this.#look());
    try {
      return await promise;
    } finally {
      this.#waiting.delete(waiting);
      this.#places.giveBack(session.workspaceId);
    }
  }

  /** Answers every request. Later ones are answered at once. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    for (const { after, settle } of this.#waiting) settle({ cursor: after, kinds: [] });
  }

  #admit({ sessionId, workspaceId }: WatchingSession): void {
    let ofSession = 0;
    for (const { session } of this.#waiting) if (session.sessionId === sessionId) ofSession++;
    const ofWorkspace = this.#places.of(workspaceId);
    const { session, workspace } = WAITING_MAX;
    if (ofSession < session && ofWorkspace < workspace && this.#places.hasRoom(workspaceId)) return;
    throw new Problem("workspace_busy", "Too many windows wait for changes. Try again later.", {
      headers: { "retry-after": "30" },
    });
  }

  async #look(): Promise<void> {
    const { clock, read } = this.#options;
    try {
      const after = new Map<string, number>();
      for (const { session, after: place } of this.#waiting) {
        after.set(session.workspaceId, Math.min(place, after.get(session.workspaceId) ?? place));
      }
      const questions = [...after].map(([workspaceId, place]) => ({ workspaceId, after: place }));
      const found = new Map((await read(questions)).map((one) => [one.workspaceId, one]));
      await Promise.all([...this.#waiting].map((waiting) => this.#answer(waiting, found)));
    } catch {
      // The database is unreachable, which is reported elsewhere. The next look tries again.
      this.#expire();
    }
    this.#timer =
      this.#waiting.size > 0 && !this.#isClosed ? clock.schedule(LOOK_INTERVAL, () => void this.#look()) : undefined;
  }

  async #answer(waiting: Waiting, found: ReadonlyMap<string, RecordedChanges>): Promise<void> {
    const { session, after, until, settle, fail } = waiting;
    const changes = found.get(session.workspaceId);
    // A request that began to wait during the look is answered by the next one.
    if (changes === undefined || (changes.after ?? 0) > after) return;
    try {
      await session.check();
    } catch (error) {
      fail(error);
      return;
    }
    const kinds = kindsAfter(changes, after);
    if (kinds.length > 0 || this.#options.clock.monotonic() >= until) settle({ cursor: changes.newest, kinds });
  }

  #expire(): void {
    const now = this.#options.clock.monotonic();
    for (const { after, until, settle } of this.#waiting) if (now >= until) settle({ cursor: after, kinds: [] });
  }
}

function kindsAfter({ newest, kinds, isCut }: RecordedChanges, after: number): string[] {
  // The database was replaced by an earlier state of it.
  if (after > newest) return ["*"];
  const later = kinds.filter(({ last }) => last > after).map(({ kind }) => kind);
  return isCut ? ["*"] : later;
}
