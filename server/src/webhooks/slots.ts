import { addTo } from "../outbound/count.ts";

/** A webhook that has something to send. */
export interface Candidate {
  webhookId: string;
  workspaceId: string;
  /** The host to which it sends. Webhooks of several workspaces may have the same. */
  host: string;
  /** Whether its last attempt failed. It then gets one slot, so that an endpoint that is down gets few requests. */
  isFailing: boolean;
}

/** What a slot is for. */
type Sender = Pick<Candidate, "webhookId" | "workspaceId" | "host">;

export interface SlotBounds {
  total: number;
  perHost: number;
  perWorkspace: number;
  perWebhook: number;
}

/** Bounds how many requests are under way, and divides them fairly. */
export class Slots {
  readonly #bounds: SlotBounds;
  readonly #byHost = new Map<string, number>();
  readonly #byWorkspace = new Map<string, number>();
  readonly #byWebhook = new Map<string, number>();
  #total = 0;

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
  }

  get total(): number {
    return this.#total;
  }

  of(webhookId: string): number {
    return this.#byWebhook.get(webhookId) ?? 0;
  }

  take({ webhookId, workspaceId, host }: Sender): void {
    this.#total++;
    addTo(this.#byHost, host, 1);
    addTo(this.#byWorkspace, workspaceId, 1);
    addTo(this.#byWebhook, webhookId, 1);
  }

  giveBack({ webhookId, workspaceId, host }: Sender): void {
    this.#total--;
    addTo(this.#byHost, host, -1);
    addTo(this.#byWorkspace, workspaceId, -1);
    addTo(this.#byWebhook, webhookId, -1);
  }

  /**
   * How many requests each candidate may begin. Each free slot goes to the workspace with the fewest requests, and there to
   * the webhook with the fewest; among equals, to the first of the list.
   */
  divide<C extends Candidate>(candidates: readonly C[]): Map<C, number> {
    const given = new Map<C, number>();
    const byHost = new Map(this.#byHost);
    const byWorkspace = new Map(this.#byWorkspace);
    const room = ({ webhookId, isFailing }: C) => (isFailing ? 1 : this.#bounds.perWebhook) - this.of(webhookId);
    let open = candidates.filter((candidate) => room(candidate) > 0);
    const load = (candidate: C) => this.of(candidate.webhookId) + (given.get(candidate) ?? 0);
    for (let free = this.#bounds.total - this.#total; free > 0; free--) {
      open = open.filter(
        (candidate) =>
          (byHost.get(candidate.host) ?? 0) < this.#bounds.perHost &&
          (byWorkspace.get(candidate.workspaceId) ?? 0) < this.#bounds.perWorkspace &&
          (given.get(candidate) ?? 0) < room(candidate),
      );
      const [first] = open;
      if (first === undefined) break;
      const best = open.reduce((best, candidate) => {
        const [mine, others] = [candidate, best].map(({ workspaceId }) => byWorkspace.get(workspaceId) ?? 0);
        return mine! < others! || (mine === others && load(candidate) < load(best)) ? candidate : best;
      }, first);
      given.set(best, (given.get(best) ?? 0) + 1);
      addTo(byHost, best.host, 1);
      addTo(byWorkspace, best.workspaceId, 1);
    }
    return given;
  }
}
