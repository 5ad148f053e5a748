import type { Milliseconds } from "../clock/clock.ts";
import type { ChangeOutcome, HoldAction, HoldChange } from "./hold.ts";

/** A change of a hold in the ledger, and its result when it has been decided. */
export class Change implements HoldChange {
  readonly workspaceId: string;
  readonly holdId: string;
  readonly balances: readonly string[];
  readonly action: HoldAction;
  readonly isCurrent: HoldChange["isCurrent"];
  readonly lane: string;
  readonly scope = undefined;
  readonly arrivedAt: Milliseconds;
  readonly sequence: number;
  readonly weight = 1;
  result: ChangeOutcome | undefined = undefined;
  failure: unknown = undefined;
  readonly #answer: PromiseWithResolvers<ChangeOutcome>;

  constructor(
    change: HoldChange,
    arrival: { readonly arrivedAt: Milliseconds; readonly sequence: number },
    answer: PromiseWithResolvers<ChangeOutcome>,
  ) {
    this.workspaceId = change.workspaceId;
    this.holdId = change.holdId;
    this.balances = change.balances;
    this.action = change.action;
    this.isCurrent = change.isCurrent;
    // Never that of calls, which have another room.
    this.lane = `changes of ${[change.workspaceId, ...change.balances].join(" ")}`;
    this.arrivedAt = arrival.arrivedAt;
    this.sequence = arrival.sequence;
    this.#answer = answer;
  }

  get isChange(): true {
    return true;
  }

  answer(): void {
    if (this.failure === undefined && this.result) this.#answer.resolve(this.result);
    else this.#answer.reject(this.failure);
  }
}
