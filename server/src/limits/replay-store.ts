import type { Milliseconds } from "../clock/clock.ts";

/** A call that its caller may repeat, by hashes. */
export interface IdempotentCall {
  scope: string;
  /** Hash of the body. */
  fingerprint: string;
  workspaceId: string;
  /** The workspace has as many records in the database as it may have. */
  isOverQuota?: boolean | undefined;
}

/** What is remembered of a call, and the longest window that it was charged in, in milliseconds. */
export interface Outcome {
  text: string;
  windowMax: Milliseconds;
}

/** What a repetition is told, or why it is told nothing. */
export type Replay =
  | { readonly replay: "completed"; readonly text: string }
  /** The scope belongs to another body. */
  | { readonly replay: "mismatched" }
  /** The first call is still under way. */
  | { readonly replay: "running" };

/** There is no room to remember another outcome: nothing was charged. */
export class ReplayStoreFull extends Error {
  constructor() {
    super("There is no room to remember another Idempotency-Key");
    this.name = "ReplayStoreFull";
  }
}

/** What came of calls that limits alone were charged for, so that a repetition is told the same and charged nothing. */
export interface ReplayStore {
  /**
   * Makes a call unless it was made before. `outcomeOf` says what is to be remembered of it, undefined when it charged
   * nothing.
   *
   * @throws {OutcomesFull} or rejects with it, before anything was charged.
   */
  once<T extends object>(
    call: IdempotentCall,
    make: () => T | Promise<T>,
    outcomeOf: (made: T) => Outcome | undefined,
  ): T | Replay | Promise<T | Replay>;
}
