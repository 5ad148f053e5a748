import type { KeyRecord } from "../../../../engine/src/directory/records.ts";
import { StoreUnavailable } from "../../../../engine/src/errors/store-unavailable.ts";

/** Locations that are remembered: some 200 bytes each. */
const LOCATIONS_MAX = 10_000;

interface KeyQuestion {
  readonly workspaceId: string;
  readonly keyId: string;
}

export interface KeyFactsOptions {
  findLocation(question: KeyQuestion): Promise<string | undefined>;
  findCreation(question: KeyQuestion): Promise<number | undefined>;
}

/** What introspection needs of keys and their cached records do not have. It never changes, so each is read once. */
export class KeyFacts {
  readonly #options: KeyFactsOptions;
  /** Least recently read first. */
  readonly #locations = new Map<string, string>();
  readonly #creations = new WeakMap<KeyRecord, number>();

  constructor(options: KeyFactsOptions) {
    this.#options = options;
  }

  /** Where the cache of keys has the key with this id. */
  async location(workspaceId: string, keyId: string): Promise<string | undefined> {
    const known = this.#locations.get(keyId);
    if (known !== undefined) return known;
    const found = await this.#options.findLocation({ workspaceId, keyId });
    if (found === undefined) return undefined;
    for (const first of this.#locations.keys()) {
      if (this.#locations.size < LOCATIONS_MAX) break;
      this.#locations.delete(first);
    }
    this.#locations.set(keyId, found);
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
