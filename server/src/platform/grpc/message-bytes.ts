/** The flag and the length before a message (grpc/doc/PROTOCOL-HTTP2.md). */
export const PREFIX_BYTES = 5;

const CAPACITY_MIN = 256;

/** A call whose message has not arrived whole. */
export interface IncompleteMessage {
  /** Ends the call, and gives back what it holds. */
  drop(): void;
}

/**
 * Memory for messages that have not been answered, over all connections. When it is full, a message replaces the one that has been
 * incomplete for the longest, so peers that never end theirs keep nobody from calling.
 */
export class MessageBudget {
  used = 0;
  readonly #max: number;
  /** The oldest first. */
  readonly #incomplete = new Set<IncompleteMessage>();

  constructor(max: number) {
    this.#max = max;
  }

  /** It has arrived whole, so it is not dropped for another one; or it has ended. */
  complete(message: IncompleteMessage): void {
    this.#incomplete.delete(message);
  }

  /** Takes memory for an incomplete message. */
  take(bytes: number, message: IncompleteMessage): boolean {
    while (this.used + bytes > this.#max) {
      const [oldest] = this.#incomplete;
      if (oldest === undefined || oldest === message) return false;
      this.#incomplete.delete(oldest);
      oldest.drop();
    }
    this.used += bytes;
    this.#incomplete.add(message);
    return true;
  }
}

export type Rejection = "too long" | "no memory" | "compressed" | "more than one";

/**
 * The bytes of one message with its prefix, as they arrive. They are copied, because a chunk of a few bytes would keep the
 * whole buffer that was read from the socket. The memory grows with what has arrived, not with what the prefix promises.
 */
export class MessageBytes {
  #bytes = Buffer.alloc(0);
  #size = 0;
  readonly #max: number;
  readonly #budget: MessageBudget;
  readonly #owner: IncompleteMessage;

  constructor(max: number, budget: MessageBudget, owner: IncompleteMessage) {
    this.#max = max;
    this.#budget = budget;
    this.#owner = owner;
  }

  /** Adds a chunk, or says why the message is rejected. */
  add(chunk: Buffer): Rejection | undefined {
    const size = this.#size + chunk.length;
    if (size > PREFIX_BYTES + this.#max) return "too long";
    if (size > this.#bytes.length && !this.#grow(Math.max(size, 2 * this.#bytes.length, CAPACITY_MIN))) {
      return "no memory";
    }
    this.#bytes.set(chunk, this.#size);
    this.#size = size;
    if (size < PREFIX_BYTES) return undefined;
    const length = this.#bytes.readUInt32BE(1);
    if (length > this.#max) return "too long";
    if (this.#bytes[0] !== 0) return "compressed";
    return size > PREFIX_BYTES + length ? "more than one" : undefined;
  }

  /** The message, once all of it has arrived. */
  get message(): Buffer | undefined {
    if (this.#size < PREFIX_BYTES || this.#size !== PREFIX_BYTES + this.#bytes.readUInt32BE(1)) return undefined;
    return this.#bytes.subarray(PREFIX_BYTES, this.#size);
  }

  /** Gives the memory back. */
  release(): void {
    this.#budget.used -= this.#bytes.length;
    this.#bytes = Buffer.alloc(0);
    this.#size = 0;
  }

  #grow(capacity: number): boolean {
    if (!this.#budget.take(capacity - this.#bytes.length, this.#owner)) return false;
    const grown = Buffer.allocUnsafe(capacity);
    grown.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = grown;
    return true;
  }
}
