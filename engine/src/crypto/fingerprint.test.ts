import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Fingerprint } from "./fingerprint.ts";

describe("Fingerprint", () => {
  it("has a reference implementation that matches the published vectors of HalfSipHash-2-4", () => {
    const published = [
      "218d1f59b9b83cc8",
      "be552412f8387315",
      "064f39ef7c50eb57",
      "ce0f1a45f7060679",
      "d5e78a175be52ea1",
    ];
    const key = Buffer.from([0, 1, 2, 3, 4, 5, 6, 7]);
    for (const [length, expected] of published.entries()) {
      assert.equal(halfSipHash(2, 4, key, key.subarray(0, length)).toString("hex"), expected);
    }
  });

  it("is HalfSipHash-1-3 over the duration and the text", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 60 }),
        fc.integer({ min: 1, max: 366 * 86_400_000 }),
        fc.tuple(fc.integer(), fc.integer()),
        (text, duration, key) => {
          const fingerprint = new Fingerprint(key);
          fingerprint.of(text, duration);
          const message = Buffer.alloc(8 + 2 * text.length);
          message.writeBigUInt64LE(BigInt(duration));
          message.write(text, 8, "utf16le");
          // Buffer.write replaces lone surrogates, so the code units are written one by one.
          for (let i = 0; i < text.length; i++) message.writeUInt16LE(text.charCodeAt(i), 8 + 2 * i);
          const keyBytes = Buffer.alloc(8);
          keyBytes.writeInt32LE(key[0], 0);
          keyBytes.writeInt32LE(key[1], 4);
          const expected = halfSipHash(1, 3, keyBytes, message);
          assert.equal(fingerprint.low, expected.readInt32LE(0));
          assert.equal(fingerprint.high, expected.readInt32LE(4));
        },
      ),
    );
  });

  it("spreads similar names over all bits", () => {
    const fingerprint = new Fingerprint([1, 2]);
    const ones = new Array<number>(64).fill(0);
    const seen = new Set<string>();
    const total = 50_000;
    for (let i = 0; i < total; i++) {
      fingerprint.of(`ws_1\u0000user_${i}`, 60_000);
      seen.add(`${fingerprint.low} ${fingerprint.high}`);
      for (let bit = 0; bit < 32; bit++) {
        ones[bit]! += (fingerprint.low >>> bit) & 1;
        ones[32 + bit]! += (fingerprint.high >>> bit) & 1;
      }
    }
    assert.equal(seen.size, total);
    // Six standard deviations of a fair coin.
    for (const [bit, count] of ones.entries())
      assert.ok(Math.abs(count - total / 2) < 3 * Math.sqrt(total), `bit ${bit}`);
  });
});

/** HalfSipHash as its authors describe it, with variable numbers of rounds and a result of 64 bits. */
function halfSipHash(compress: number, finish: number, key: Buffer, message: Buffer): Buffer {
  const v = new Uint32Array([0, 0xee, 0x6c796765, 0x74656462]);
  for (let i = 0; i < 4; i++) v[i]! ^= key.readUInt32LE((i % 2) * 4);
  const rotate = (i: number, bits: number) => {
    v[i] = (v[i]! << bits) | (v[i]! >>> (32 - bits));
  };
  const mix = (a: number, b: number, bits: number) => {
    v[a]! += v[b]!;
    rotate(b, bits);
    v[b]! ^= v[a]!;
  };
  const rounds = (count: number) => {
    for (let i = 0; i < count; i++) {
      mix(0, 1, 5);
      rotate(0, 16);
      mix(2, 3, 8);
      mix(0, 3, 7);
      mix(2, 1, 13);
      rotate(2, 16);
    }
  };
  const padded = Buffer.alloc(4 * (Math.floor(message.length / 4) + 1));
  message.copy(padded);
  padded[padded.length - 1] = message.length & 0xff;
  for (let at = 0; at < padded.length; at += 4) {
    v[3]! ^= padded.readUInt32LE(at);
    rounds(compress);
    v[0]! ^= padded.readUInt32LE(at);
  }
  const result = Buffer.alloc(8);
  v[2]! ^= 0xee;
  rounds(finish);
  result.writeUInt32LE((v[1]! ^ v[3]!) >>> 0, 0);
  v[1]! ^= 0xdd;
  rounds(finish);
  result.writeUInt32LE((v[1]! ^ v[3]!) >>> 0, 4);
  return result;
}
