import type { DerivationBounds } from "./keys/derivation.ts";

/** What handlers of mutations use beside the store, in the thread of the database. */
export interface DatabaseServices {
  readonly portal: {
    /** Keys of an owner that expired and are not deleted yet. */
    readonly endedKeysMax: number;
  };
  /** What the owner of keys may derive. */
  readonly derivedKeys: DerivationBounds;
  readonly webhooks: {
    /** Why no webhook can have this URL; undefined if it can. */
    findUrlFault(url: string): string | undefined;
  };
  readonly upstreams: {
    /** Why no upstream verifier can have this URL; undefined if it can. */
    findUrlFault(url: string): string | undefined;
  };
}
