/**
 * Calls of one pool that its free credits do not cover, in the order of arrival. Finds the first call that an amount covers
 * in logarithmic time, with a tree of the smallest cost below each node.
 */
export class LackingCalls<C extends { readonly cost: number }> {
  readonly #calls: C[] = [];
  /** A complete binary tree in heap order, root at 1; undefined before the first `takeFirst`. */
  #smallest: Float64Array | undefined;
  #leaves = 0;

  /** @throws after the first `takeFirst`. */
  push(call: C): void {
    if (this.#smallest) throw new Error("Calls were taken already");
    this.#calls.push(call);
  }

  /** Removes and returns the first call that costs no more than `credits`. */
  takeFirst(credits: number): C | undefined {
    const tree = this.#tree();
    if (tree[1]! > credits) return undefined;
    let node = 1;
    while (node < this.#leaves) node = tree[2 * node]! <= credits ? 2 * node : 2 * node + 1;
    const call = this.#calls[node - this.#leaves]!;
    tree[node] = Infinity;
    for (node >>= 1; node >= 1; node >>= 1) tree[node] = Math.min(tree[2 * node]!, tree[2 * node + 1]!);
    return call;
  }

  /** The calls that were not taken, in the order of arrival. */
  rest(): readonly C[] {
    const tree = this.#smallest;
    return tree ? this.#calls.filter((_, i) => tree[this.#leaves + i] !== Infinity) : this.#calls;
  }

  #tree(): Float64Array {
    if (this.#smallest) return this.#smallest;
    this.#leaves = 1;
    while (this.#leaves < this.#calls.length) this.#leaves *= 2;
    const tree = new Float64Array(2 * this.#leaves).fill(Infinity);
    this.#calls.forEach(({ cost }, i) => {
      tree[this.#leaves + i] = cost;
    });
    for (let node = this.#leaves - 1; node >= 1; node--) tree[node] = Math.min(tree[2 * node]!, tree[2 * node + 1]!);
    this.#smallest = tree;
    return tree;
  }
}
