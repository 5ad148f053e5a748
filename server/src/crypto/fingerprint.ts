/** The secret of the fingerprints: two 32-bit words from `crypto`. Without it nobody can aim at one bucket. */
export type FingerprintKey = readonly [number, number];

/**
 * Names a counter by 64 bits: HalfSipHash-1-3 (Aumasson, Bernstein; the 32-bit SipHash) with a result of 64 bits, over
 * the duration as 64 bits and the UTF-16LE code units of the text. Among ten million counters two share a name with a
 * probability of 3 in a million.
 *
 * The result stands in `low` and `high` as signed 32-bit words, since a call that returned both would allocate.
 */
export class Fingerprint {
  low = 0;
  high = 0;
  readonly #k0: number;
  readonly #k1: number;

  constructor(key: FingerprintKey) {
    this.#k0 = key[0] | 0;
    this.#k1 = key[1] | 0;
  }

  of(text: string, duration: number): void {
    let v0 = this.#k0;
    let v1 = this.#k1 ^ 0xee;
    let v2 = 0x6c796765 ^ this.#k0;
    let v3 = 0x74656462 ^ this.#k1;
    const length = text.length;
    // Word −2 and −1 are the duration; the last word carries the length in bytes, and a lone code unit if there is one.
    const last = length >> 1;
    for (let i = -2; i <= last; i++) {
      let word: number;
      if (i === -2) word = duration | 0;
      else if (i === -1) word = (duration / 2 ** 32) | 0;
      else if (i < last) word = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 16);
      else word = ((8 + 2 * length) << 24) | ((length & 1) === 1 ? text.charCodeAt(length - 1) : 0);

      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    v2 ^= 0xee;
    for (let round = 0; round < 6; round++) {
      if (round === 3) {
        this.low = v1 ^ v3;
        v1 ^= 0xdd;
      }
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    this.high = v1 ^ v3;
  }
}
