import { TurnoverMap } from "../../../../../engine/src/collections/turnover-map.ts";
import type { Credentials } from "../../rpc/authenticate.ts";
import type { Operation } from "../../rpc/operation.ts";
import { HEAD_END, type PlainHead } from "./plain-head.ts";

/** Heads up to this length are kept to recognize their repetition. */
const BYTES_MAX = 2 * 1024;
/** Heads that all connections share. */
const SHARED_MAX = 256;

/** A head with what the lane derives from it once. */
export interface Head extends PlainHead {
  /** Bytes of the whole request. */
  bytes: number;
  operation: Operation;
  credentials: Credentials;
  /** The caller's address; undefined if the head names none, so that it is that of the connection. */
  address: string | undefined;
  /** Its bytes, if it is kept. */
  text?: Buffer;
}

/** A head with its bytes, to recognize its repetition. */
export type KeptHead = Head & { text: Buffer };

/**
 * The latest heads of all connections. The connections of a client, and its calls with bodies of the same length, repeat the
 * same few heads: so each is parsed once, and is in the caches of the processor when the next connection compares it.
 */
export class KeptHeads {
  readonly #shared = new TurnoverMap<string, KeptHead>();

  /** The kept head that starts at this place. */
  find(chunk: Buffer, start: number): KeptHead | undefined {
    const end = chunk.indexOf(HEAD_END, start, "latin1");
    if (end === -1 || end - start > BYTES_MAX) return undefined;
    return this.#shared.get(chunk.toString("latin1", start, end + HEAD_END.length));
  }

  /** The head with its bytes, which start at this place; undefined if it is too long. */
  keep(head: Head, chunk: Buffer, start: number): KeptHead | undefined {
    if (head.text !== undefined) return head as KeptHead;
    if (head.headBytes > BYTES_MAX) return undefined;
    const text = Buffer.from(chunk.subarray(start, start + head.headBytes));
    const kept = { ...head, text };
    // Others have a value that no other request repeats.
    if (head.idempotencyKey === undefined && head.address === undefined) this.#share(text.toString("latin1"), kept);
    return kept;
  }

  #share(text: string, head: KeptHead): void {
    const [oldest] = this.#shared.keys();
    if (oldest !== undefined && this.#shared.size >= SHARED_MAX) this.#shared.delete(oldest);
    this.#shared.set(text, head);
  }
}
