import type { Instant, Milliseconds } from "../clock/clock.ts";
import type { StoredBalance } from "../rules/refill.ts";

/** The key whose permissions and credits to explain. */
export interface KeyOriginsQuestion {
  workspaceId: string;
  keyId: string;
  poolId: string;
  budgetIds: readonly string[];
  /** The balances of the slots of its limits of concurrency. */
  slotIds: readonly string[];
  now: Instant;
  /** The permissions to look for. */
  slugs: readonly string[];
}

/** What the record of a key for verifications leaves out. */
export interface KeyOrigins {
  /** One entry for each way in which the key has a permission. `role` is null for a direct one. */
  grants: { slug: string; role: string | null }[];
  /** Null: unlimited. */
  balance: HeldBalance | null;
  /** Those of the budgets. `watched` is 1 if it never denies. */
  budgets: (HeldBalance & { pool_id: string; watched: number | null })[];
  /** `expiresIn`: the time until the first open hold that has one of these slots expires, or less. */
  slots: { pool_id: string; held: number | null; expiresIn: Milliseconds }[];
}

/** A balance with the credits that open holds have taken from it; null: none. */
export type HeldBalance = StoredBalance & { held: number | null };

/** What the first verification of an imported key reveals: the import contained only a hash. */
export interface ImportedKeyUse {
  keyId: string;
  /** The part of the key string that may be shown. */
  start: string;
  /** The hash of the whole string, under which later look-ups find the key; null: its hash is already that. */
  hash: string | null;
}
