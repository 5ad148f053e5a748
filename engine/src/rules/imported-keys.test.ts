import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { hashAlgorithms, longTokenOf, readHash, startOf, startOfToken } from "./imported-keys.ts";

const lengthOf = (algorithm: string) => (algorithm === "sha512" ? 64 : 32);

describe("readHash", () => {
  it("reads a digest from every encoding", () => {
    const digests = fc.constantFrom(...hashAlgorithms).chain((algorithm) => {
      const length = lengthOf(algorithm);
      return fc.tuple(fc.constant(algorithm), fc.uint8Array({ minLength: length, maxLength: length }));
    });
    fc.assert(
      fc.property(digests, ([algorithm, digest]) => {
        const bytes = Buffer.from(digest);
        const stored = bytes.toString("base64url");
        const padding = "=".repeat(-stored.length & 3);
        const written = [
          bytes.toString("hex"),
          bytes.toString("hex").toUpperCase(),
          bytes.toString("base64"),
          bytes.toString("base64").replace(/=+$/, ""),
          stored,
          stored + padding,
        ];
        for (const text of written) assert.equal(readHash(text, algorithm), stored, text);
      }),
    );
  });

  it("rejects other texts", () => {
    const hex = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    const base64 = "LCa0a2j/xo/5m0U8HTBBNBNCLXBkg7+g+YpeiGJm564=";
    const broken = [
      "",
      "abc",
      hex.slice(1),
      `${hex}0`,
      `${hex.slice(1)}g`,
      ` ${hex}`,
      `${hex}\n`,
      hex + hex,
      `${base64}=`,
      base64.slice(1),
      base64.replace("=", "=="),
      base64.replaceAll("/", "_"),
      `sha256:${hex}`,
      // The same digest with other bits after its end.
      base64.replace("4=", "5="),
    ];
    for (const text of broken) assert.equal(readHash(text, "sha256"), undefined, text);
    assert.equal(readHash(hex, "sha512"), undefined);
    assert.equal(readHash(hex + hex, "hmac-sha256"), undefined);
  });
});

describe("longTokenOf", () => {
  it("is the last of at least three parts", () => {
    assert.equal(longTokenOf("acme_BRTRKFsL_51FwqftsmMDHHbJAMEXXHCgG"), "51FwqftsmMDHHbJAMEXXHCgG");
    assert.equal(longTokenOf("acme_test_BRTR_long"), "long");
    for (const token of ["", "acme", "acme_long"]) assert.equal(longTokenOf(token), undefined);
  });
});

describe("startOf", () => {
  it("shows the prefix up to the first underscore and four more characters", () => {
    assert.equal(startOf("sk_live_4eC39HqLyjWDarjtT1zdp7dc"), "sk_live");
    assert.equal(startOf("5e884898da28047151d0e56f8dc62927"), "5e88");
    assert.equal(startOf("acme_51FwqftsmMDHHbJAMEXXHCgG"), "acme_51Fw");
  });

  it("never shows more than a third of a key, at whatever position an underscore is", () => {
    assert.equal(startOf("51FwqftsmMDHHbJAMEXX_HCg"), "51Fw");
    fc.assert(
      fc.property(fc.string({ minLength: 3, maxLength: 60, unit: fc.constantFrom("a", "_", "é", "😀") }), (key) => {
        const start = startOf(key);
        assert(key.startsWith(start) && start.length * 3 <= key.length && start.isWellFormed(), start);
      }),
    );
  });
});

describe("startOfToken", () => {
  it("shows the prefix and four characters of the short token, and nothing of the long token", () => {
    assert.equal(startOfToken("acme_BRTRKFsL_51FwqftsmMDHHbJAMEXXHCgG"), "acme_BRTR");
    assert.equal(startOfToken("acme_BR_51FwqftsmMDHHbJAMEXXHCgG"), "acme_BR");
  });
});
