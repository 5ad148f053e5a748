import { systemClock } from "../../src/clock/system.ts";

/** A fault that ran: its time by the monotonic clock in ms, and the node it hit; no node: all of them. */
export interface Disturbance {
  what: string;
  node: number | undefined;
  from: number;
  /** Infinity while it lasts. */
  to: number;
}

interface Sample {
  at: number;
  node: number | undefined;
  ms: number;
}

/** When which node was disturbed, and how late the machine was meanwhile. */
export class Timeline {
  readonly disturbances: Disturbance[] = [];
  /** Delays of at least `LAG_MS`: of this process (no node), or of a node's answer to `/health/live`. */
  readonly #lags: Sample[] = [];
  /** The longest delay in ms. */
  worstLagMs = 0;

  /** Records the beginning of a fault; the result ends it. */
  begin(what: string, node?: number): () => void {
    const disturbance = { what, node, from: systemClock.monotonic(), to: Number.POSITIVE_INFINITY };
    this.disturbances.push(disturbance);
    return () => {
      disturbance.to = systemClock.monotonic();
    };
  }

  /**
   * Whether a fault of this node (undefined: of any node), or the `recoveryMs` after it, overlaps with this time. The lag
   * that was measured meanwhile prolongs the recovery.
   */
  isDisturbed(node: number | undefined, from: number, to: number, recoveryMs: number): boolean {
    return this.disturbances.some((disturbance) => {
      if (node !== undefined && disturbance.node !== undefined && disturbance.node !== node) return false;
      if (disturbance.from > to) return false;
      return from <= disturbance.to + recoveryMs + 2 * this.lag(node, disturbance.to, to);
    });
  }

  recordLag(node: number | undefined, at: number, ms: number): void {
    this.worstLagMs = Math.max(this.worstLagMs, node === undefined ? ms : 0);
    if (ms >= LAG_MS) this.#lags.push({ at, node, ms });
  }

  /**
   * Whether the machine itself was too slow in this time: this process was late, or a node without a fault was late to
   * answer. The load balancer removes a node whose check takes longer than this.
   */
  isOverloaded(from: number, to: number): boolean {
    return this.#lags.some(
      ({ at, node, ms }) =>
        ms >= OVERLOAD_MS &&
        at >= from &&
        at - ms <= to &&
        (node === undefined || !this.isDisturbed(node, at - ms, at, 0)),
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
}

/** The time limit of the load balancer's checks. */
const OVERLOAD_MS = 200;
/** Shorter delays are usual. */
const LAG_MS = 50;
