import { createReadStream } from "node:fs";
import type { Clock } from "../../../engine/src/clock/clock.ts";
import { digestOf } from "../../../engine/src/crypto/digest.ts";

/** Bounds the bytes per second of work that may block its thread. */
export class Throttle {
  static readonly #nothing = new Int32Array(new SharedArrayBuffer(4));
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #startedAt: number;
  #bytes = 0;

  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
    this.#startedAt = clock.monotonic();
  }

  /** Counts the bytes, and blocks the thread for as long as they come too early. */
  spend(bytes: number): void {
    this.#bytes += bytes;
    const waitMs = this.#startedAt + (this.#bytes / this.#bytesPerSecond) * 1_000 - this.#clock.monotonic();
    if (waitMs >= 1) Atomics.wait(Throttle.#nothing, 0, 0, waitMs);
  }
}

/** The SHA-256 digest of a file, hexadecimal as `sha256sum` prints it. */
export async function fileDigest(file: string): Promise<string> {
  return Buffer.from(await digestOf(createReadStream(file)), "base64url").toString("hex");
}
