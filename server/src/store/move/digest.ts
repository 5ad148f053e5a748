import { sha256 } from "../../crypto/digest.ts";
import type { Row } from "./database.ts";

const LANES = 8;

/**
 * The digest of a set of rows: the SHA-256 digests of all rows, added in eight lanes modulo 2^32. It does not depend on
 * the order of rows, and rows can be added and removed, so a table is read once and its digest then follows the changes.
 */
export class TableDigest {
  readonly #lanes = new Uint32Array(LANES);
  rows = 0;

  add(row: Row): void {
    this.#mix(row, 1);
  }

  remove(row: Row): void {
    this.#mix(row, -1);
  }

  /** Hexadecimal, 64 characters. */
  toString(): string {
    return Buffer.from(this.#lanes.buffer).toString("hex");
  }

  equals(other: TableDigest): boolean {
    return this.rows === other.rows && this.toString() === other.toString();
  }

  #mix(row: Row, sign: 1 | -1): void {
    // JSON separates the values: no two rows have the same text.
    const bytes = sha256(JSON.stringify(row));
    for (let lane = 0; lane < LANES; lane++) this.#lanes[lane]! += sign * bytes.readUInt32LE(4 * lane);
    this.rows += sign;
  }
}
