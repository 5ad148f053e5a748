/** The words before the numbers: the version, and one that aligns the numbers. */
const HEAD_BYTES = 8;

/**
 * Numbers that one thread writes and others read, in shared memory. A reader gets the numbers of one `write`, never of
 * two: the version is odd during a write, and a reader that sees it odd or changed reads again.
 */
export class SharedNumbers {
  readonly buffer: SharedArrayBuffer;
  readonly #version: Int32Array;
  readonly #numbers: Float64Array;
  readonly #read: Float64Array;
  #readVersion = 0;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#version = new Int32Array(buffer, 0, 1);
    this.#numbers = new Float64Array(buffer, HEAD_BYTES);
    this.#read = new Float64Array(this.#numbers.length);
  }

  static of(count: number): SharedNumbers {
    return new SharedNumbers(new SharedArrayBuffer(HEAD_BYTES + count * Float64Array.BYTES_PER_ELEMENT));
  }

  /** Only one thread may write. */
  write(numbers: readonly number[]): void {
    Atomics.add(this.#version, 0, 1);
    this.#numbers.set(numbers);
    Atomics.add(this.#version, 0, 1);
  }

  /** The numbers of the last write. The next call may change the array. */
  read(): Readonly<Float64Array> {
    if (Atomics.load(this.#version, 0) === this.#readVersion) return this.#read;
    for (;;) {
      const before = Atomics.load(this.#version, 0);
      this.#read.set(this.#numbers);
      // An addition, because processors may delay the reads above beyond a mere load.
      const after = Atomics.add(this.#version, 0, 0);
      if (before === after && (before & 1) === 0) {
        this.#readVersion = before;
        return this.#read;
      }
    }
  }
}
