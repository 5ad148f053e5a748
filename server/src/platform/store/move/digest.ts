import { sha256 } from "../../../../../engine/src/crypto/digest.ts";
import type { Row } from "./database.ts";

const WORDS = 8;

/**
 * The digest of a set of rows: the SHA-256 digests of all rows, added in eight words modulo 2^32. It does not depend on
 * the order of rows, and rows can be added and removed, so a table is read once and its digest then follows the changes.
 */
export class TableDigest {
  readonly #words = new Uint32Array(WORDS);
  rows = 0;

  add(row: Row): void {
    this.#mix(row, 1);
  }

  remove(row: Row): void {
    this.#mix(row, -1);
  }

  /** Hexadecimal, 64 characters. */
  toString(): string {
    return Buffer.from(this.#words.buffer).toString("hex");
  }

  equals(other: TableDigest): boolean {
    return this.rows === other.rows && this.toString() === other.toString();
  }

  #mix(row: Row, sign: 1 | -1): void {
    // JSON separates the values: no two rows have the same text.
    const bytes = sha256(JSON.stringify(row));
    for (let word = 0; word < WORDS; word++) this.#words[word]! += sign * bytes.readUInt32LE(4 * word);
    this.rows += sign;
  }
}
