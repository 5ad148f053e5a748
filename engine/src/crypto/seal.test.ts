import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { newSealingKey, SealBroken, seal, sealingKeyFingerprint, unseal } from "./seal.ts";

describe("seal", () => {
  it("opens any content with the same key and context", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), (plaintext, context) => {
        const key = newSealingKey();
        assert.deepEqual(new Uint8Array(unseal(key, context, seal(key, context, plaintext))), plaintext);
      }),
    );
  });

  it("returns a different value each time", () => {
    const [key, plaintext] = [newSealingKey(), Buffer.from("secret")];
    assert.notEqual(seal(key, "context", plaintext), seal(key, "context", plaintext));
  });

  it("does not open with another key or another context", () => {
    const key = newSealingKey();
    const sealed = seal(key, "context", Buffer.from("secret"));
    assert.throws(() => unseal(newSealingKey(), "context", sealed), SealBroken);
    assert.throws(() => unseal(key, "another context", sealed), SealBroken);
  });

  it("does not open after a bit was flipped, or a byte was removed or added", () => {
    const key = newSealingKey();
    const bytes = Buffer.from(seal(key, "context", Buffer.from("a secret")), "base64url");
    const assertBroken = (changed: Uint8Array) =>
      assert.throws(() => unseal(key, "context", Buffer.from(changed).toString("base64url")), SealBroken);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      assertBroken(changed);
    }
    for (let length = 0; length < bytes.length; length++) {
      assertBroken(bytes.subarray(0, length));
      assertBroken(bytes.subarray(bytes.length - length));
    }
    assertBroken(Buffer.concat([bytes, Buffer.alloc(1)]));
  });
});

describe("sealingKeyFingerprint", () => {
  it("is unique per key and contains no part of it", () => {
    const keys = Array.from({ length: 100 }, newSealingKey);
    const fingerprints = keys.map(sealingKeyFingerprint);
    assert.equal(new Set(fingerprints).size, 100);
    for (const [i, key] of keys.entries()) {
      assert.match(fingerprints[i]!, /^[0-9a-f]{32}$/);
      assert(!key.toString("hex").includes(fingerprints[i]!.slice(0, 8)));
    }
  });
});
