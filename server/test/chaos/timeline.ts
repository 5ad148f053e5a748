import { systemClock } from "../../../engine/src/clock/system.ts";

/** A fault that ran: its time by the monotonic clock in ms, and the node it hit; no node: all of them. */
export interface Disturbance {
  what: string;
  node: number | undefined;
  from: number;
  /** When it was repaired; Infinity while it lasts. */
  to: number;
}

/** How long a node was not well after a repair, in ms, without the time in which other faults hit it. */
export interface Recovery {
  what: string;
  node: number;
  ms: number;
  /** The longest delay of the machine meanwhile, in ms. */
  lagMs: number;
}

interface Sample {
  at: number;
  node: number | undefined;
  ms: number;
}

/** When which node was disturbed, when it was well again, and how late the machine was meanwhile. */
export class Timeline {
  readonly disturbances: Disturbance[] = [];
  /** The longest delay in ms. */
  worstLagMs = 0;
  readonly #nodes: number;
  /** Delays of at least `LAG_MS`: of this process (no node), or of a node's answer to `/health/ready`. */
  readonly #lags: Sample[] = [];
  /** Per node, when a request was sent to which it answered that it is well; ascending. */
  readonly #well: number[][];

  constructor(nodes: number) {
    this.#nodes = nodes;
    this.#well = Array.from({ length: nodes }, () => []);
  }

  /** Records the beginning of a fault; the result ends it. */
  begin(what: string, node?: number): () => void {
    const disturbance = { what, node, from: systemClock.monotonic(), to: Number.POSITIVE_INFINITY };
    this.disturbances.push(disturbance);
    return () => {
      disturbance.to = systemClock.monotonic();
    };
  }

  /**
   * Whether a fault of this node (undefined: of any node), or its effects, overlap with this time. They end `RECOVERY_MS`
   * after the repair, but not before the nodes that it hit have reported for `WELL_MS` that they are well. The lag that was
   * measured meanwhile is added.
   */
  isDisturbed(node: number | undefined, from: number, to: number): boolean {
    return this.disturbances.some((disturbance) => {
      if (!this.#hits(disturbance, node) || disturbance.from > to) return false;
      const repairedAt = disturbance.to;
      const wellAt = Math.max(...this.#hit(disturbance, node).map((hit) => this.#wellAfter(hit, repairedAt)));
      const end = Math.max(repairedAt + RECOVERY_MS, Math.min(wellAt, repairedAt + RECOVERY_MAX_MS) + WELL_MS);
      return from <= end + 2 * this.lag(node, repairedAt, to);
    });
  }

  /** Whether a fault itself overlaps with this time, without its effects. */
  isUnrepaired(node: number, from: number, to: number): boolean {
    return this.disturbances.some(
      (disturbance) => this.#hits(disturbance, node) && disturbance.from <= to && from <= disturbance.to,
    );
  }

  /** Each recovery of a node by `until`, the end of the observation. */
  recoveries(until: number): Recovery[] {
    return this.disturbances.flatMap((disturbance) =>
      this.#hit(disturbance, undefined).map((node) => {
        const from = Math.min(disturbance.to, until);
        const wellAt = Math.min(this.#wellAfter(node, from), until);
        const lagMs = this.lag(node, from, wellAt);
        return { what: disturbance.what, node, ms: this.#undisturbed(node, from, wellAt), lagMs };
      }),
    );
  }

  /** Records a delay: of this process (no node), or of a node's answer. */
  recordLag(node: number | undefined, at: number, ms: number): void {
    this.worstLagMs = Math.max(this.worstLagMs, node === undefined ? ms : 0);
    if (ms >= LAG_MS) this.#lags.push({ at, node, ms });
  }

  /** Records that a node has answered a request of this time that it is well. */
  recordWell(node: number, sentAt: number): void {
    this.#well[node]!.push(sentAt);
  }

  /**
   * Whether the machine itself was too slow for a call of this time: this process was late, or a node without a fault was
   * late to answer. The load balancer removes a node whose check takes longer than this.
   */
  isOverloaded(from: number, to: number): boolean {
    return this.#lags.some(
      ({ at, node, ms }) =>
        ms >= OVERLOAD_MS &&
        at >= from - RECOVERY_MS &&
        at - ms <= to &&
        (node === undefined || !this.isUnrepaired(node, at - ms, at)),
    );
  }

  /** The longest delay in this time, of this process or of the node. */
  lag(node: number | undefined, from: number, to: number): number {
    let longest = 0;
    for (const { at, node: of, ms } of this.#lags) {
      const isOurs = of === undefined || of === node;
      if (isOurs && at >= from && at - ms <= to) longest = Math.max(longest, ms);
    }
    return longest;
  }

  #hits({ node: hit }: Disturbance, node: number | undefined): boolean {
    return node === undefined || hit === undefined || hit === node;
  }

  /** The nodes that a fault has hit, or only this one of them. */
  #hit({ node: hit }: Disturbance, node: number | undefined): number[] {
    const only = node ?? hit;
    return only === undefined ? Array.from({ length: this.#nodes }, (_, i) => i) : [only];
  }

  /** The first time from `at` at which the node was well; Infinity if there is none. */
  #wellAfter(node: number, at: number): number {
    const times = this.#well[node]!;
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle]! < at) low = middle + 1;
      else high = middle;
    }
    return times[low] ?? Number.POSITIVE_INFINITY;
  }

  /** How much of this time has no fault of the node. */
  #undisturbed(node: number, from: number, to: number): number {
    let [free, at] = [0, from];
    for (const other of this.disturbances.toSorted((a, b) => a.from - b.from)) {
      if (!this.#hits(other, node) || other.to <= at || other.from >= to) continue;
      free += Math.max(0, other.from - at);
      at = Math.min(other.to, to);
    }
    return free + Math.max(0, to - at);
  }
}

/** Time after a repair in which the service may still answer 503: connections that were lost silently time out. */
const RECOVERY_MS = 6_000;
/** How long a node may need after a repair until it is well, without the time of other faults. */
export const RECOVERY_MAX_MS = 30_000;
/** Time after a node is well until the load balancer uses it again: two checks, and the connection. */
const WELL_MS = 2_000;
/** The time limit of the load balancer's checks. */
const OVERLOAD_MS = 200;
/** Shorter delays are usual. */
const LAG_MS = 50;
