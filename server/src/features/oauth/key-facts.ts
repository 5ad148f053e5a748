import type { KeyRecord } from "../../../../engine/src/directory/records.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";
import type { KeyPlace } from "../../../../engine/src/verification/request.ts";

/** Places that are remembered: some 300 bytes each. */
const PLACES_MAX = 10_000;

interface KeyQuestion {
  readonly workspaceId: string;
  readonly keyId: string;
}

export interface KeyFactsOptions {
  findPlace(question: KeyQuestion): Promise<KeyPlace | undefined>;
  findCreation(question: KeyQuestion): Promise<number | undefined>;
}

/** What introspection needs of keys and their cached records do not have. It never changes, so each is read once. */
export class KeyFacts {
  readonly #options: KeyFactsOptions;
  /** Least recently read first. */
  readonly #places = new Map<string, KeyPlace>();
  readonly #creations = new WeakMap<KeyRecord, number>();

  constructor(options: KeyFactsOptions) {
    this.#options = options;
  }

  /** Where the key, or the derived key, with this id is stored. */
  async place(workspaceId: string, keyId: string): Promise<KeyPlace | undefined> {
    const known = this.#places.get(keyId);
    if (known !== undefined) return known;
    const found = await this.#options.findPlace({ workspaceId, keyId });
    if (found === undefined) return undefined;
    for (const first of this.#places.keys()) {
      if (this.#places.size < PLACES_MAX) break;
      this.#places.delete(first);
    }
    this.#places.set(keyId, found);
    return found;
  }

  /** When a key was created; undefined while the database does not answer, because an answer can do without. */
  async createdAt(key: KeyRecord): Promise<number | undefined> {
    const known = this.#creations.get(key);
    if (known !== undefined) return known;
    const { workspaceId, keyId } = key;
    try {
      const found = await this.#options.findCreation({ workspaceId, keyId });
      if (found !== undefined) this.#creations.set(key, found);
      return found;
    } catch (error) {
      // The embedded database returns errors of its thread by name.
      if ((error as Error).name !== StoreUnavailable.name) throw error;
      return undefined;
    }
  }
}
