import assert from "node:assert/strict";
import { it } from "node:test";
import { alphanumeric } from "./random.ts";
import { seededRandom } from "./seeded.ts";

it("alphanumeric gives texts of each length, with each character equally often at each place", () => {
  const random = seededRandom(2);
  const texts = 62_000;
  for (const length of [0, 1, 2, 9, 16]) {
    const counts = Array.from({ length }, () => new Map<string, number>());
    for (let i = 0; i < texts; i++) {
      const text = alphanumeric(random, length);
      assert.equal(text.length, length);
      for (const [at, count] of counts.entries()) count.set(text[at]!, (count.get(text[at]!) ?? 0) + 1);
    }
    for (const count of counts) {
      const characters = [...count.keys()].sort().join("");
      assert.equal(characters, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
      // 1,000 are expected, with a standard deviation of 32.
      for (const times of count.values()) assert.ok(times > 800 && times < 1_200, String(times));
    }
  }
});
