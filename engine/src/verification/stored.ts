import type { StoredBalance } from "../rules/refill.ts";

/** The key whose permissions and credits to explain. */
export interface KeyOriginsQuestion {
  workspaceId: string;
  keyId: string;
  poolId: string;
  /** The permissions to look for. */
  slugs: readonly string[];
}

/** What the record of a key for verifications leaves out. */
export interface KeyOrigins {
  /** One entry for each way in which the key has a permission. `role` is null for a direct one. */
  grants: { slug: string; role: string | null }[];
  /** Null: unlimited. */
  balance: StoredBalance | null;
}

/** What the first verification of an imported key reveals: the import contained only a hash. */
export interface ImportedKeyUse {
  keyId: string;
  /** The part of the key string that may be shown. */
  start: string;
  /** The hash of the whole string, under which later look-ups find the key; null: its hash is already that. */
  hash: string | null;
}
