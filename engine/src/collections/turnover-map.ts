/**
 * A map whose entries come and go. The tables of a `Map`, while it grows and shrinks, refer to their entries and to the next
 * table. Once one of them is old, all later entries become old too, with what they refer to, and wait for a full collection of
 * garbage. So this map goes on in a new one after as many deletions as it has entries, which it copies.
 *
 * An iterator need not see what is set or deleted after its start.
 */
export class TurnoverMap<K, V> {
  #entries = new Map<K, V>();
  #deletions = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value);
  }

  delete(key: K): void {
    if (!this.#entries.delete(key) || ++this.#deletions < this.#entries.size) return;
    this.#entries = new Map(this.#entries);
    this.#deletions = 0;
  }

  clear(): void {
    // A table forgets only what is deleted.
    for (const key of this.#entries.keys()) this.#entries.delete(key);
    this.#entries = new Map();
    this.#deletions = 0;
  }

  keys(): Iterable<K> {
    return this.#entries.keys();
  }

  values(): Iterable<V> {
    return this.#entries.values();
  }
}
