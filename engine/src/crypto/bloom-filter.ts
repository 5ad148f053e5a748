import { Fingerprint, type FingerprintKey } from "./fingerprint.ts";
import { newFingerprintKey } from "./secret.ts";

/** The state that threads share. */
export interface BloomFilterState {
  buffer: SharedArrayBuffer;
  key: FingerprintKey;
}

/** A block is one cache line of the processor: 16 words of 32 bits. */
const WORDS_PER_BLOCK = 16;
const BITS_PER_BLOCK = 512;
const BITS_SET_PER_TEXT = 7;

/** The buffer begins with the number of added texts, in a block of its own. */
const HEAD = WORDS_PER_BLOCK;

/** The first layer has 64 KiB, for 21,504 texts. */
const FIRST_BLOCKS = 1 << 10;
const GROWTH = 4;
/** Texts per block in all layers but the last: 24 bits for each, so that many layers have few false positives together. */
const TEXTS_PER_BLOCK = 21;

/** Some consecutive blocks of the buffer. */
interface Layer {
  readonly firstWord: number;
  readonly blocks: number;
  /** The number of added texts from which this layer is used. */
  readonly from: number;
}

type Layers = readonly [Layer, ...Layer[]];

/**
 * A set of texts with false positives and without false negatives: a blocked Bloom filter (Putze, Sanders, Singler
 * 2007) over a keyed fingerprint, so that a client cannot construct false positives. Texts are never removed.
 *
 * It has layers, each with four times the blocks of the one before (Almeida et al. 2007, scalable Bloom filters). A text is added to
 * the first layer that is not full, and looked for in those in use. The operating system allocates a page at its first
 * write, so few texts take little memory, whatever the size of the buffer.
 *
 * The false-positive rate is 0.1 % until the last layer is in use, 0.3 % with 16 bits of the buffer per text, and
 * 2.7 % with 10. Threads with the same state share one set.
 */
export class BloomFilter {
  readonly state: BloomFilterState;
  readonly #words: Int32Array;
  readonly #fingerprint: Fingerprint;
  readonly #layers: Layers;

  constructor(state: BloomFilterState) {
    this.state = state;
    this.#words = new Int32Array(state.buffer);
    this.#fingerprint = new Fingerprint(state.key);
    this.#layers = layersOf((this.#words.length - HEAD) / WORDS_PER_BLOCK);
  }

  /** Creates an empty filter of at most `bytesMax` bytes, and at least 128. */
  static ofBytes(bytesMax: number): BloomFilter {
    const blocks = Math.max(1, Math.floor((bytesMax / 4 - HEAD) / WORDS_PER_BLOCK));
    return new BloomFilter({
      buffer: new SharedArrayBuffer(4 * (HEAD + WORDS_PER_BLOCK * blocks)),
      key: newFingerprintKey(),
    });
  }

  add(text: string): void {
    // A text that is added again must not use up a layer.
    if (this.mayHave(text)) return;
    // Counted before its bits are set, so that whoever is told of the text looks for it in this layer.
    const count = Atomics.add(this.#words, 0, 1) >>> 0;
    let [layer] = this.#layers;
    for (const next of this.#layers) {
      if (next.from <= count) layer = next;
    }
    const { low, high } = this.#fingerprint;
    const first = blockIn(layer, low);
    for (let i = 0; i < BITS_SET_PER_TEXT; i++) {
      const bit = bitOf(high, i);
      Atomics.or(this.#words, first + (bit >>> 5), 1 << (bit & 31));
    }
  }

  /** False if the text was certainly never added. */
  mayHave(text: string): boolean {
    this.#fingerprint.of(text, 0);
    const count = Atomics.load(this.#words, 0) >>> 0;
    for (const layer of this.#layers) {
      if (layer.from < count && this.#isIn(layer)) return true;
    }
    return false;
  }

  /** Whether a layer has the text of the fingerprint. */
  #isIn(layer: Layer): boolean {
    const { low, high } = this.#fingerprint;
    const first = blockIn(layer, low);
    for (let i = 0; i < BITS_SET_PER_TEXT; i++) {
      const bit = bitOf(high, i);
      if ((this.#words[first + (bit >>> 5)]! & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }
}

/** The layers of this many blocks. The last one has what remains, at least as much as the one before. */
function layersOf(blocks: number, firstWord = HEAD, size = FIRST_BLOCKS, from = 0): Layers {
  if (blocks < 2 * size) return [{ firstWord, blocks, from }];
  const end = firstWord + WORDS_PER_BLOCK * size;
  const rest = layersOf(blocks - size, end, GROWTH * size, from + TEXTS_PER_BLOCK * size);
  return [{ firstWord, blocks: size, from }, ...rest];
}

/** The first word of the block in a layer. */
function blockIn({ firstWord, blocks }: Layer, hash: number): number {
  return firstWord + WORDS_PER_BLOCK * Math.floor(((hash >>> 0) / 2 ** 32) * blocks);
}

/** The position of bit `i` in a block: enhanced double hashing (Dillinger, Manolios 2004). */
function bitOf(hash: number, i: number): number {
  const step = (hash >>> 9) | 1;
  return ((hash >>> 18) + i * step + (i * i * i - i) / 6 + (hash & 511)) & (BITS_PER_BLOCK - 1);
}
