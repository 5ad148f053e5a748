import type { Milliseconds } from "../clock/clock.ts";
import { Overloaded } from "../errors/overloaded.ts";

/** Identifies an idempotent call by hashes. */
export interface ReplayableCall {
  scope: string;
  /** Hash of the body. */
  fingerprint: string;
  workspaceId: string;
  /** Whether the workspace has used up its quota of records in the database. */
  isOverQuota?: boolean | undefined;
}

/** The stored outcome of a call: its text, and the longest duration of its limits. */
export interface Outcome {
  text: string;
  windowMax: Milliseconds;
}

/** The result of a repeated call: the first outcome, or the reason why there is none. */
export type Replay =
  | { readonly replay: "completed"; readonly text: string }
  /** The first call had another body. */
  | { readonly replay: "mismatched" }
  /** The first call is still running. */
  | { readonly replay: "running" };

/** There is no room for another outcome. Nothing was charged. */
export class ReplayStoreFull extends Overloaded {
  constructor() {
    super("There is no room for another idempotency record");
    this.name = "ReplayStoreFull";
  }
}

/** Stores the outcomes of calls that charge limits only, so that a repeated call gets the same outcome without a charge. */
export interface ReplayStore {
  /** Whether outcomes are stored in the database, in the table of those that the ledger records. */
  readonly isInDatabase: boolean;

  /** The earlier call, if this store has it in memory. */
  find(call: ReplayableCall): Replay | undefined;

  /**
   * Runs `make` unless the call was made before, and stores `outcomeOf(result)`; undefined: nothing was charged.
   *
   * @throws {ReplayStoreFull} or rejects with it, before anything is charged.
   */
  once<T extends object>(
    call: ReplayableCall,
    make: () => T | Promise<T>,
    outcomeOf: (made: T) => Outcome | undefined,
  ): T | Replay | Promise<T | Replay>;
}
