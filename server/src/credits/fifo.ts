/** A queue on an array: every operation but `unshift` takes constant time, averaged over many. */
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

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head]!;
    this.#items[this.#head++] = undefined as T;
    // Half of the array at least is behind the head, so each item is copied once on average.
    if (this.#head >= 32 && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Puts items before all others, in their order. */
  unshift(items: readonly T[]): void {
    this.#items = items.concat(this.#items.slice(this.#head));
    this.#head = 0;
  }
}
