/** Shorter chunks are copied into blocks. */
const LONG_CHUNK_BYTES = 4 * 1024;
const BLOCK_BYTES_MIN = 1024;
const BLOCK_BYTES_MAX = 16 * 1024;

/**
 * The bytes of chunks, in memory of at most twice their length and 1 KiB. Each chunk kept by itself, those of one byte would
 * take a hundred times their length. Long chunks and a single one are not copied until all are read.
 */
export class CollectedBytes {
  #parts: Buffer[] = [];
  /** The last part, if short chunks can be appended to it, and how many of its bytes are used. */
  #block: Buffer | undefined;
  #used = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  append(chunk: Buffer): void {
    if (this.#length === 0 || chunk.length >= LONG_CHUNK_BYTES) {
      this.#endBlock();
      this.#parts.push(chunk);
    } else this.#copy(chunk);
    this.#length += chunk.length;
  }

  /** All bytes. Nothing is to be appended afterwards. */
  all(): Buffer {
    this.#endBlock();
    const [only, ...others] = this.#parts;
    return only !== undefined && others.length === 0 ? only : Buffer.concat(this.#parts, this.#length);
  }

  clear(): void {
    this.#parts = [];
    this.#block = undefined;
    this.#length = 0;
  }

  #copy(chunk: Buffer): void {
    let block = this.#block;
    if (block === undefined || this.#used + chunk.length > block.length) {
      this.#endBlock();
      const bytes = Math.min(BLOCK_BYTES_MAX, Math.max(BLOCK_BYTES_MIN, this.#length, chunk.length));
      block = Buffer.allocUnsafeSlow(bytes);
      this.#block = block;
    }
    chunk.copy(block, this.#used);
    this.#used += chunk.length;
  }

  #endBlock(): void {
    if (this.#block !== undefined) this.#parts.push(this.#block.subarray(0, this.#used));
    this.#block = undefined;
    this.#used = 0;
  }
}
