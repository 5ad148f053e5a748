import { randomFillSync } from "node:crypto";
import type { Random } from "./random.ts";

const words = new Uint32Array(1024);
let next = words.length;

/** Chance from the operating system, drawn 1,024 words at a time because one call costs more than it yields. */
export const systemRandom: Random = {
  below(bound) {
    const limit = 2 ** 32 - (2 ** 32 % bound);
    for (;;) {
      if (next === words.length) {
        randomFillSync(words);
        next = 0;
      }
      const word = words[next++]!;
      // Words past the last whole multiple would favour small results.
      if (word < limit) return word % bound;
    }
  },
};
