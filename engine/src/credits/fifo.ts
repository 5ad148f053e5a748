/** A queue on an array. Every operation except `unshift` takes amortized constant time. */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** The first item that satisfies the predicate; takes time in proportion to its position. */
  find(predicate: (item: T) => boolean): T | undefined {
    return this.#items.find((item, i) => i >= this.#head && predicate(item));
  }

  /** Removes and returns all items. */
  drain(): T[] {
    const items = this.#items.slice(this.#head);
    this.#items = [];
    this.#head = 0;
    return items;
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head]!;
    this.#items[this.#head++] = undefined as T;
    // At least half of the array is unused, so each item is copied once on average.
    if (this.#head >= 32 && this.#head * 2 >= this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Inserts items before all others, in their order. */
  unshift(items: readonly T[]): void {
    this.#items = items.concat(this.#items.slice(this.#head));
    this.#head = 0;
  }
}
