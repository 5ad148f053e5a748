import type { Milliseconds } from "../../../../engine/src/clock/clock.ts";

export interface ChunkPaceOptions {
  /** How long a chunk should take. */
  time: Milliseconds;
  /** The size of the first chunk, and the smallest. */
  min: number;
  max: number;
}

/** Sizes the chunks of a long work by the time that they take. */
export class ChunkPace {
  readonly #options: ChunkPaceOptions;
  #size: number;

  constructor(options: ChunkPaceOptions) {
    this.#options = options;
    this.#size = options.min;
  }

  /** The size that the next chunk should have. */
  get size(): number {
    return this.#size;
  }

  /** To be called after each chunk with its size and its time. The size at most doubles or halves, because times vary. */
  record(size: number, took: Milliseconds): void {
    const { time, min, max } = this.#options;
    // A small chunk that is quick says nothing about larger ones.
    if (took < time && size < this.#size / 2) return;
    const fitting = (size * time) / took;
    const next = Math.round(Math.min(this.#size * 2, Math.max(this.#size / 2, fitting)));
    this.#size = Math.min(max, Math.max(min, next));
  }
}
