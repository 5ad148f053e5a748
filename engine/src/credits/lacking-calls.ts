import { firstLacking, type LockedBalance, type LockedCall } from "./locked-balance.ts";

/** A call, and the balance at which it waits; undefined: it was taken. */
interface Waiting<C> {
  readonly call: C;
  /** Position in the order of arrival. */
  readonly index: number;
  at: LockedBalance | undefined;
}

/**
 * Calls that one of their balances does not cover, in the order of arrival. Each waits at one balance that does not cover
 * it. When this balance gets credits back, the first call that they cover is found in logarithmic time; if another of its
 * balances lacks, the call moves there.
 */
export class LackingCalls<C extends LockedCall> {
  /** How many calls may still move. At 0, a call that would have to move stays where it is. */
  moves = 0;
  readonly #calls: Waiting<C>[] = [];
  /** The calls of each balance, in the order of arrival. */
  readonly #ofBalance = new Map<LockedBalance, Waiting<C>[]>();
  readonly #trees = new Map<LockedBalance, NeedTree<C>>();

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /**
   * Adds a call that waits at this balance.
   *
   * @throws after the first `take`.
   */
  push(call: C, at: LockedBalance): void {
    if (this.#trees.size > 0) throw new Error("Calls were taken already");
    const waiting = { call, index: this.#calls.length, at };
    this.#calls.push(waiting);
    for (const balance of call.locked) {
      const calls = this.#ofBalance.get(balance);
      if (calls) calls.push(waiting);
      else this.#ofBalance.set(balance, [waiting]);
    }
  }

  /** Removes and returns the first call that waits at this balance and that all its balances cover. */
  take(balance: LockedBalance): C | undefined {
    // No call waits at a balance that denies none.
    if (balance.free === Infinity || !this.#ofBalance.has(balance)) return undefined;
    const tree = this.#treeOf(balance);
    for (;;) {
      const waiting = tree.first(balance.free);
      if (!waiting) return undefined;
      const { call } = waiting;
      const lacking = firstLacking(call);
      if (!lacking) {
        tree.set(waiting, Infinity);
        waiting.at = undefined;
        return call;
      }
      if (this.moves === 0) return undefined;
      this.moves--;
      tree.set(waiting, Infinity);
      waiting.at = lacking;
      this.#treeOf(lacking).set(waiting, call.needOf(lacking));
    }
  }

  /** The calls that were not taken: those that lack credits, and those to try again, in the order of arrival. */
  rest(): { lacking: C[]; untried: C[] } {
    const lacking: C[] = [];
    const untried: C[] = [];
    for (const { call, at } of this.#calls) if (at) (at.covers(call.needOf(at)) ? untried : lacking).push(call);
    return { lacking, untried };
  }

  #treeOf(balance: LockedBalance): NeedTree<C> {
    let tree = this.#trees.get(balance);
    if (!tree) {
      const calls = this.#ofBalance.get(balance) ?? [];
      tree = new NeedTree(
        calls,
        calls.map(({ call, at }) => (at === balance ? call.needOf(balance) : Infinity)),
      );
      this.#trees.set(balance, tree);
    }
    return tree;
  }
}

/** What calls need in a complete binary tree with the smallest need below each node. Infinite: the call is not here. */
class NeedTree<C> {
  readonly #calls: readonly Waiting<C>[];
  /** In heap order, root at 1. */
  readonly #smallest: Float64Array;
  readonly #leaves: number;

  constructor(calls: readonly Waiting<C>[], needs: readonly number[]) {
    this.#calls = calls;
    let leaves = 1;
    while (leaves < needs.length) leaves *= 2;
    this.#leaves = leaves;
    this.#smallest = new Float64Array(2 * leaves).fill(Infinity);
    this.#smallest.set(needs, leaves);
    for (let node = leaves - 1; node >= 1; node--) this.#update(node);
  }

  /** The first call that the credits, which are finite, cover. */
  first(credits: number): Waiting<C> | undefined {
    const smallest = this.#smallest;
    if (smallest[1]! > credits) return undefined;
    let node = 1;
    while (node < this.#leaves) node = smallest[2 * node]! <= credits ? 2 * node : 2 * node + 1;
    return this.#calls[node - this.#leaves];
  }

  set(waiting: Waiting<C>, need: number): void {
    let node = this.#leaves + this.#place(waiting);
    this.#smallest[node] = need;
    for (node >>= 1; node >= 1; node >>= 1) this.#update(node);
  }

  #update(node: number): void {
    this.#smallest[node] = Math.min(this.#smallest[2 * node]!, this.#smallest[2 * node + 1]!);
  }

  #place({ index }: Waiting<C>): number {
    let from = 0;
    let to = this.#calls.length;
    while (to - from > 1) {
      const middle = (from + to) >> 1;
      if (this.#calls[middle]!.index <= index) from = middle;
      else to = middle;
    }
    return from;
  }
}
