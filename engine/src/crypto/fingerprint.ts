/** The secret key of the fingerprints: two 32-bit words. Without it a client cannot construct collisions. */
export type FingerprintKey = readonly [number, number];

/**
 * A keyed hash of 64 bits that identifies a counter: HalfSipHash-1-3 (Aumasson, Bernstein; the 32-bit SipHash) over the
 * duration as 64 bits and the UTF-16LE code units of the text. Among ten million counters, the probability of a
 * collision is 3 in a million.
 *
 * The result is in `low` and `high` as signed 32-bit words, because returning both would allocate.
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
    // Words −2 and −1 are the duration. The last word contains the length in bytes, and the last code unit of an odd length.
    const last = length >> 1;
    // A round for each word, and six rounds without a word: three after each half of the finalization.
    for (let i = -2; i <= last + 6; i++) {
      let word = 0;
      if (i < 0) word = i === -2 ? duration | 0 : (duration / 2 ** 32) | 0;
      else if (i < last) word = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 16);
      else if (i === last) word = ((8 + 2 * length) << 24) | ((length & 1) === 1 ? text.charCodeAt(length - 1) : 0);
      else if (i === last + 1) v2 ^= 0xee;
      else if (i === last + 4) {
        this.low = v1 ^ v3;
        v1 ^= 0xdd;
      }

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
    this.high = v1 ^ v3;
  }
}
