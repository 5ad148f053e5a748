/**
 * Connections, or handshakes, by the networks of their peers: how many each network has, which one has the most, and which has the
 * next turn. Here they are *members*; the oldest one comes first everywhere. Everything takes constant time but `largest`, which looks
 * at each network.
 */
export class ByNetwork<T> {
  /** The members of each network that has any. The first network has the next turn. */
  readonly #ofNetwork = new Map<string, Set<T>>();
  /** All members with their networks. */
  readonly #networks = new Map<T, string>();

  get size(): number {
    return this.#networks.size;
  }

  [Symbol.iterator](): MapIterator<T> {
    return this.#networks.keys();
  }

  /** @param member not yet added to any network. */
  add(member: T, network: string): void {
    this.#networks.set(member, network);
    const members = this.#ofNetwork.get(network);
    if (members === undefined) this.#ofNetwork.set(network, new Set([member]));
    else members.add(member);
  }

  /** Does nothing for what is not a member. */
  remove(member: T): void {
    const network = this.#networks.get(member);
    if (network === undefined) return;
    this.#networks.delete(member);
    const members = this.#ofNetwork.get(network);
    members?.delete(member);
    if (members?.size === 0) this.#ofNetwork.delete(network);
  }

  /** How many members a network has. */
  count(network: string): number {
    return this.#ofNetwork.get(network)?.size ?? 0;
  }

  /**
   * The members of the network that has the most. Of several that have as many it is `preferred`, or else the one that has its turn
   * first. Without members it is empty.
   */
  largest(preferred?: string): ReadonlySet<T> {
    let most: ReadonlySet<T> = (preferred === undefined ? undefined : this.#ofNetwork.get(preferred)) ?? new Set();
    for (const members of this.#ofNetwork.values()) if (members.size > most.size) most = members;
    return most;
  }

  /** Removes the oldest member of the network that has the next turn. That network has another one after all others. */
  takeNext(): T | undefined {
    for (const [network, members] of this.#ofNetwork) {
      for (const member of members) {
        this.remove(member);
        if (this.#ofNetwork.delete(network)) this.#ofNetwork.set(network, members);
        return member;
      }
    }
    return undefined;
  }
}
