import { addTo } from "../../platform/outbound/count.ts";
import { Places } from "../../platform/outbound/places.ts";

/** A webhook that has something to send. */
export interface Candidate {
  webhookId: string;
  workspaceId: string;
  /** The host to which it sends. Webhooks of several workspaces may have the same. */
  host: string;
  /** Whether its last attempt failed. It then gets one slot, so that an endpoint that is down gets few requests. */
  isFailing: boolean;
  /** Whether its endpoint fails, or has let a request wait for long. Such endpoints share a part of the slots. */
  isSlow: boolean;
}

/** What a slot is for. */
type Sender = Pick<Candidate, "webhookId" | "workspaceId" | "host" | "isSlow">;

export interface SlotBounds {
  total: number;
  perHost: number;
  perWorkspace: number;
  perWebhook: number;
  /** Slots of all slow endpoints together. */
  slow: number;
}

/**
 * Bounds how many requests are under way, and divides them fairly. Workspaces share the slots, those to one host, and those
 * of slow endpoints, as `Places` says: so a further workspace finds a free one, however many the others use.
 */
export class Slots {
  readonly #bounds: SlotBounds;
  readonly #all: Places;
  readonly #slow: Places;
  readonly #byHost = new Map<string, Places>();
  readonly #byWebhook = new Map<string, number>();

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
    this.#all = new Places(bounds.total);
    this.#slow = new Places(bounds.slow);
  }

  get total(): number {
    return this.#all.taken;
  }

  of(webhookId: string): number {
    return this.#byWebhook.get(webhookId) ?? 0;
  }

  /** Takes a slot. Returns what gives it back. */
  take({ webhookId, workspaceId, host, isSlow }: Sender): () => void {
    const here = this.#at(host);
    this.#byHost.set(host, here);
    const taken = isSlow ? [this.#all, here, this.#slow] : [this.#all, here];
    for (const places of taken) places.take(workspaceId);
    addTo(this.#byWebhook, webhookId, 1);
    return () => {
      for (const places of taken) places.giveBack(workspaceId);
      if (here.taken === 0) this.#byHost.delete(host);
      addTo(this.#byWebhook, webhookId, -1);
    };
  }

  /**
   * How many requests each candidate may begin. Each free slot goes to the workspace with the fewest requests, and there to
   * the webhook with the fewest; among equals, to the first of the list.
   */
  divide<C extends Candidate>(candidates: readonly C[]): Map<C, number> {
    const given = new Map<C, number>();
    const undo: (() => void)[] = [];
    let open = candidates;
    for (;;) {
      open = open.filter((candidate) => this.#hasRoom(candidate));
      const [first] = open;
      if (first === undefined) break;
      const best = open.reduce((best, candidate) => {
        const [mine, others] = [candidate, best].map(({ workspaceId }) => this.#all.of(workspaceId));
        const isLess = mine! < others! || (mine === others && this.of(candidate.webhookId) < this.of(best.webhookId));
        return isLess ? candidate : best;
      }, first);
      given.set(best, (given.get(best) ?? 0) + 1);
      undo.push(this.take(best));
    }
    for (const giveBack of undo) giveBack();
    return given;
  }

  #hasRoom({ webhookId, workspaceId, host, isFailing, isSlow }: Candidate): boolean {
    const { perWebhook, perWorkspace } = this.#bounds;
    return (
      this.of(webhookId) < (isFailing ? 1 : perWebhook) &&
      this.#all.of(workspaceId) < perWorkspace &&
      this.#all.hasRoom(workspaceId) &&
      this.#at(host).hasRoom(workspaceId) &&
      (!isSlow || this.#slow.hasRoom(workspaceId))
    );
  }

  #at(host: string): Places {
    return this.#byHost.get(host) ?? new Places(this.#bounds.perHost);
  }
}
