import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { newSealingKey, SealBroken, seal, sealingKeyFingerprint, unseal } from "./seal.ts";

describe("seal", () => {
  it("opens with the same key and context, whatever the content", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), (plaintext, context) => {
        const key = newSealingKey();
        assert.deepEqual(new Uint8Array(unseal(key, context, seal(key, context, plaintext))), plaintext);
      }),
    );
  });

  it("gives something else each time", () => {
    const [key, plaintext] = [newSealingKey(), Buffer.from("secret")];
    assert.notEqual(seal(key, "place", plaintext), seal(key, "place", plaintext));
  });

  it("opens with no other key and in no other place", () => {
    const key = newSealingKey();
    const sealed = seal(key, "place", Buffer.from("secret"));
    assert.throws(() => unseal(newSealingKey(), "place", sealed), SealBroken);
    assert.throws(() => unseal(key, "another place", sealed), SealBroken);
  });

  it("does not open when a single bit is another one, or a byte is missing or too many", () => {
    const key = newSealingKey();
    const bytes = Buffer.from(seal(key, "place", Buffer.from("a secret")), "base64url");
    const refused = (changed: Uint8Array) =>
      assert.throws(() => unseal(key, "place", Buffer.from(changed).toString("base64url")), SealBroken);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3]! ^= 1 << (bit & 7);
      refused(changed);
    }
    for (let length = 0; length < bytes.length; length++) {
      refused(bytes.subarray(0, length));
      refused(bytes.subarray(bytes.length - length));
    }
    refused(Buffer.concat([bytes, Buffer.alloc(1)]));
  });
});

describe("fingerprint", () => {
  it("tells keys apart and holds nothing of them", () => {
    const keys = Array.from({ length: 100 }, newSealingKey);
    const fingerprints = keys.map(sealingKeyFingerprint);
    assert.equal(new Set(fingerprints).size, 100);
    for (const [i, key] of keys.entries()) {
      assert.match(fingerprints[i]!, /^[0-9a-f]{32}$/);
      assert(!key.toString("hex").includes(fingerprints[i]!.slice(0, 8)));
    }
  });
});
