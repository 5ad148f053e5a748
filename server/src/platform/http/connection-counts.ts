/** The number of open connections of each thread, in memory that the threads share. */
export class ConnectionCounts {
  readonly #words: Int32Array;
  readonly #thread: number;

  /** @param words one word for each thread. `thread` is the index of this one. */
  constructor(words: Int32Array<SharedArrayBuffer>, thread: number) {
    this.#words = words;
    this.#thread = thread;
  }

  set own(count: number) {
    Atomics.store(this.#words, this.#thread, count);
  }

  /** The connections of the other threads. */
  get others(): number {
    let sum = 0;
    for (let thread = 0; thread < this.#words.length; thread++) {
      if (thread !== this.#thread) sum += Atomics.load(this.#words, thread);
    }
    return sum;
  }
}
