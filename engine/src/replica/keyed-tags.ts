import { hmacSha256 } from "../crypto/hash.ts";
import { Generations } from "../directory/generations.ts";

/** A tag as home names it to one replica: 64 bits of an HMAC, so that the stream says nothing about what is not known already. */
export function keyedTag(tagKey: string, tag: string): string {
  return Buffer.from(hmacSha256(tagKey, tag).subarray(0, 8)).toString("base64url");
}

/** The generations of a replica. Records have plain tags; changes arrive with keyed ones, and both lead to the same slot. */
export class KeyedGenerations extends Generations {
  readonly #tagKey: string;

  constructor(tagKey: string, buffer: SharedArrayBuffer) {
    super(buffer);
    this.#tagKey = tagKey;
  }

  override slot(tag: string): number {
    return super.slot(keyedTag(this.#tagKey, tag));
  }

  /** Outdates all records with one of these keyed tags. */
  bumpKeyed(tags: readonly string[]): void {
    this.bumpSlots(tags.map((tag) => super.slot(tag)));
  }
}
