import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatKey, RANDOM_BYTES_MAX, RANDOM_BYTES_MIN } from "../../../../engine/src/rules/key-string.ts";
import { cpuTimeOf } from "../../../test/cpu-time.ts";
import { leakKit } from "./kit.ts";

const PUBLIC_URL = "https://keys.example.com";

const letter = fc.constantFrom(..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
const prefixes = fc.string({ unit: letter, minLength: 1, maxLength: 16 });
const randomBytes = fc.uint8Array({ minLength: RANDOM_BYTES_MIN, maxLength: RANDOM_BYTES_MAX });
/** What stands around keys in programs, settings and logs. */
const before = fc.constantFrom("", " ", "\n", '"', "'", "=", "key: ", "Bearer ", "(", "`", "/");
const after = fc.constantFrom("", " ", "\n", '"', "'", ";", ",", ")", "`", "/", "?", "-", ".");

/** Every match of the regular expression in a text. */
function find(prefix: string, text: string): string[] {
  return [...text.matchAll(new RegExp(leakKit(prefix, PUBLIC_URL).regex, "g"))].map(([match]) => match);
}

describe("the regular expression of a leak kit", () => {
  it("matches every key with the prefix that the service can make, and nothing around it", () => {
    fc.assert(
      fc.property(prefixes, randomBytes, before, after, (prefix, bytes, left, right) => {
        const { key } = formatKey(prefix, bytes);
        assert.deepEqual(find(prefix, left + key + right), [key]);
      }),
      { numRuns: 2_000 },
    );
  });

  it("matches the shortest and the longest key", () => {
    for (const [byte, length] of [
      [0, RANDOM_BYTES_MIN],
      [255, RANDOM_BYTES_MIN],
      [0, RANDOM_BYTES_MAX],
      [255, RANDOM_BYTES_MAX],
    ] as const) {
      const { key } = formatKey("prod", new Uint8Array(length).fill(byte));
      assert.deepEqual(find("prod", key), [key]);
    }
  });

  it("rejects keys that were mistyped in a way that a regular expression can see", () => {
    const { key } = formatKey("prod", new Uint8Array(16).fill(77));
    const [head, tail] = [key.slice(0, 12), key.slice(13)];
    for (const wrong of ["0", "O", "I", "l", "_", "é", " ", "-", "+"]) {
      assert.deepEqual(find("prod", `${head}${wrong}${tail}`), [], wrong);
    }
    assert.deepEqual(find("prod", key.slice(0, 20)), []);
    assert.deepEqual(find("prod", `Prod${key.slice(4)}`), []);
    assert.deepEqual(find("prod", `xprod${key.slice(4)}`), []);
    assert.deepEqual(find("prod", `x_${key}`), []);
    assert.deepEqual(find("prod", key.replace("_", "-")), []);
    assert.deepEqual(find("prod", `${key}_`), []);
    assert.deepEqual(find("prod", `prod_${"a".repeat(356)}`), []);
  });

  it("takes the characters of the prefix as they are", () => {
    const { key } = formatKey("a.b", new Uint8Array(16).fill(1));
    assert.deepEqual(find("a.b", key), [key]);
    assert.deepEqual(find("a.b", key.replace(".", "x")), []);
  });

  it("has one repetition, so that no engine needs more than linear time", async () => {
    fc.assert(
      fc.property(prefixes, (prefix) => {
        const { regex } = leakKit(prefix, PUBLIC_URL);
        const rest = regex.slice(2, -2).replace(prefix.replaceAll(".", "\\."), "");
        assert.equal(rest, "_[1-9A-HJ-NP-Za-km-z]{22,355}");
        assert.match(regex, /^\\[bB].*\\b$/);
      }),
    );
    for (const unit of ["prod_", "prod_a", `prod_${"a".repeat(354)}0`, `prod_${"a".repeat(355)}`, "a", "_"]) {
      const text = unit.repeat(2_000_000 / unit.length);
      const took = await cpuTimeOf(() => assert(find("prod", text).length < text.length));
      // A thousandth of what quadratic time would take.
      assert(took < 2_000, `${unit}: ${took} ms`);
    }
  });
});

describe("a leak kit", () => {
  const kit = leakKit("my.app-1", PUBLIC_URL);

  it("has the same expression in each format", () => {
    assert(kit.gitleaks.includes(`regex = '''${kit.regex}'''`));
    assert(kit.trufflehog.includes(`key: '${kit.regex}'`));
    assert.equal(kit.github.regex, kit.regex);
  });

  it("has keywords that every key contains, in lower case for gitleaks", () => {
    const { gitleaks, trufflehog } = leakKit("MyApp", PUBLIC_URL);
    assert(gitleaks.includes('keywords = ["myapp_"]'));
    assert(trufflehog.includes('- "MyApp_"'));
  });

  it("names the addresses of the service", () => {
    assert(kit.trufflehog.includes("endpoint: https://keys.example.com/leaks/verify\n"));
    assert.equal(kit.github.endpoint, "https://keys.example.com/leaks/github");
    assert(!kit.trufflehog.includes("unsafe"));
    assert(leakKit("a", "http://localhost:3000").trufflehog.includes("/leaks/verify\n        unsafe: true\n"));
  });

  it("has a sample that matches", () => {
    assert.deepEqual(find("my.app-1", kit.github.sample), [kit.github.sample]);
    assert.equal(kit.github.type, "my_app_1_api_key");
  });
});
