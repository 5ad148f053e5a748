import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";

/** For how long names are remembered. */
const LIFE: Milliseconds = 3_600_000;
/** Names of all workspaces. */
const NAMES_MAX = 200_000;

/** The names by which edges of a workspace number their reports. The store keeps a row for each, so they are bounded. */
export class RecorderNames {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #perWorkspaceMax: number;
  #since: Milliseconds;
  /** By workspace. */
  readonly #names = new Map<string, Set<string>>();
  #count = 0;

  constructor(clock: Pick<Clock, "monotonic">, perWorkspaceMax: number) {
    this.#clock = clock;
    this.#perWorkspaceMax = perWorkspaceMax;
    this.#since = clock.monotonic();
  }

  /** Notes a name. False: the workspace has used too many in this hour, and this is another one. */
  note(workspaceId: string, name: string): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#since >= LIFE || this.#count >= NAMES_MAX) {
      this.#names.clear();
      this.#count = 0;
      this.#since = now;
    }
    let names = this.#names.get(workspaceId);
    if (names === undefined) {
      names = new Set();
      this.#names.set(workspaceId, names);
    }
    if (names.has(name)) return true;
    if (names.size >= this.#perWorkspaceMax) return false;
    names.add(name);
    this.#count++;
    return true;
  }
}
