import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";

/** What an edge says of itself with each question. */
export interface EdgeDescription {
  readonly id: string;
  readonly kind: "process" | "library";
  readonly version: string;
  readonly name?: string | undefined;
  readonly records: number;
  readonly reports: number;
  readonly leases?: number | undefined;
}

export interface Edge extends EdgeDescription {
  readonly rootKeyId: string;
  readonly address: string;
  /** Milliseconds since its last question. */
  readonly ageMs: Milliseconds;
}

interface SeenEdge extends Omit<Edge, "ageMs"> {
  readonly seenAt: Milliseconds;
}

/** Edges of one workspace, and of all. */
const EDGES_MAX = { perWorkspace: 2_000, all: 50_000 };
/** How long after its last question an edge counts as attached. */
const LIFE: Milliseconds = 10_000;

/** The edges that follow the changes of this node. */
export class Edges {
  readonly #clock: Clock;
  /** By workspace and by id, those without a question for the longest time first. */
  readonly #seen = new Map<string, Map<string, SeenEdge>>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The edges of all workspaces. */
  get count(): number {
    for (const workspaceId of [...this.#seen.keys()]) this.#expire(workspaceId);
    return this.#count;
  }

  /** Notes a question. Beyond the bounds, an edge is served and not listed. */
  note(workspaceId: string, edge: Omit<Edge, "ageMs">): void {
    this.#expire(workspaceId);
    let edges = this.#seen.get(workspaceId);
    if (edges?.delete(edge.id)) this.#count--;
    if ((edges?.size ?? 0) >= EDGES_MAX.perWorkspace || this.#count >= EDGES_MAX.all) return;
    if (edges === undefined || edges.size === 0) {
      edges = new Map();
      this.#seen.set(workspaceId, edges);
    }
    edges.set(edge.id, { ...edge, seenAt: this.#clock.monotonic() });
    this.#count++;
  }

  /** The edges of a workspace, by id. */
  list(workspaceId: string): Edge[] {
    this.#expire(workspaceId);
    const now = this.#clock.monotonic();
    const edges = [...(this.#seen.get(workspaceId)?.values() ?? [])];
    return edges
      .map(({ seenAt, ...edge }) => ({ ...edge, ageMs: Math.round(now - seenAt) }))
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  #expire(workspaceId: string): void {
    const edges = this.#seen.get(workspaceId);
    if (edges === undefined) return;
    const before = this.#clock.monotonic() - LIFE;
    for (const [id, { seenAt }] of edges) {
      if (seenAt > before) break;
      edges.delete(id);
      this.#count--;
    }
    if (edges.size === 0) this.#seen.delete(workspaceId);
  }
}
