import { randomFillSync } from "node:crypto";
import type { Random } from "./random.ts";

const words = new Uint32Array(1024);
let next = words.length;

/** The latest bound, and the largest multiple of it that a word can reach. */
let bounded = 1;
let limit = 2 ** 32;

/** Random numbers from the operating system, 1,024 words at a time, because one call per number is expensive. */
export const systemRandom: Random = {
  below(bound) {
    if (bound !== bounded) {
      bounded = bound;
      limit = 2 ** 32 - (2 ** 32 % bound);
    }
    for (;;) {
      if (next === words.length) {
        randomFillSync(words);
        next = 0;
      }
      const word = words[next++]!;
      // Words above the last multiple of `bound` are skipped, because they would favour small results.
      if (word < limit) return word % bound;
    }
  },
};
