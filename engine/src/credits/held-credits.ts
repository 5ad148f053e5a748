import { type Instant, instantAt } from "../clock/clock.ts";
import type {
  BalanceChange,
  ClosedHoldRow,
  EarlierHolds,
  ExtendedHoldRow,
  HoldWrites,
  OpenedHold,
  OpenedHoldRow,
  StoredHold,
  StoredHoldRow,
} from "./batch.ts";
import {
  type ChangedHold,
  type ChangeOutcome,
  HOLD_AGE_MAX,
  type HoldChange,
  type HoldRequest,
  type HoldState,
} from "./hold.ts";
import type { LockedBalance, Portion } from "./locked-balance.ts";

/** What opens a hold. */
interface HoldingCall {
  readonly workspaceId: string;
  readonly cost: number;
  readonly locked: readonly LockedBalance[];
  readonly limits: { readonly receipt?: object | undefined } | undefined;
  takesSlot(balance: LockedBalance): boolean;
  amountOf(balance: LockedBalance): number;
}

/** The state of a new hold. */
const OPEN = { state: "open", charged: 0, lacks: [], settlement: null } as const;

/** The holds of one batch, whose balances are locked. */
export class HeldCredits {
  /** The time by the clock of the holds. */
  readonly at: Instant;
  /** As they were before the batch. */
  readonly #former: Map<string, StoredHold>;
  /** Those that were changed so far, as they are now. */
  readonly #changed = new Map<string, StoredHold>();
  readonly opened: OpenedHold[] = [];

  /** `known`: holds that did not have to be read. */
  constructor({ at, stored }: EarlierHolds, known: readonly StoredHold[] = []) {
    this.at = at;
    this.#former = new Map(known.map((hold) => [hold.id, hold]));
    for (const row of stored) this.#former.set(row[0], storedHold(row));
  }

  /** The holds that were changed. */
  get changed(): Iterable<StoredHold> {
    return this.#changed.values();
  }

  /** Holds the cost of a call in all its balances, which cover it. Returns when the hold expires. */
  open(call: HoldingCall, { holdId, ttl, onExpiry, keyId, apiId, subject }: HoldRequest): Instant {
    const { workspaceId, cost, locked, limits } = call;
    const createdAt = this.at;
    const expiresAt = instantAt(createdAt + Math.min(ttl, HOLD_AGE_MAX));
    const balances = locked.flatMap((balance) => {
      if (!balance.hold(call.amountOf(balance), expiresAt)) return [];
      const { id, period } = balance;
      return call.takesSlot(balance) ? { id, period, slot: true as const } : { id, period };
    });
    this.opened.push({
      ...{ id: holdId, workspaceId, keyId, apiId, cost, balances, onExpiry, createdAt, expiresAt },
      ...OPEN,
      limits: limits?.receipt ? JSON.stringify(limits.receipt) : null,
      subject: subject ?? null,
    });
    return expiresAt;
  }

  /** What a hold has charged so far. */
  chargedOf(holdId: string): number {
    return this.#find(holdId)?.charged ?? 0;
  }

  /** Whether the balances of the change, which are locked, are those of the hold. */
  isLocked({ holdId, balances }: HoldChange): boolean {
    return (this.#find(holdId)?.balances ?? []).every(({ id }) => balances.includes(id));
  }

  change({ workspaceId, holdId, action }: HoldChange, balanceOf: (id: string) => LockedBalance): ChangeOutcome {
    const before = this.#find(holdId);
    const former = this.#former.get(holdId);
    if (!before || !former || before.workspaceId !== workspaceId) return { outcome: "gone" };
    const isDue = before.state === "open" && before.expiresAt <= this.at;
    const charge = before.onExpiry === "charge" ? before.cost : 0;
    const hold = isDue ? this.#put(closed(before, { state: "expired", amount: charge }, balanceOf)) : before;
    const close = (end: End) => this.#put(closed(hold, end, balanceOf));
    const { state, settlement } = hold;
    const conflict = { outcome: "conflict", state, settlement } as const;
    switch (action.kind) {
      case "expire":
        return changed(hold, former, !isDue);
      case "extend": {
        if (state !== "open") return conflict;
        const latest = hold.createdAt + HOLD_AGE_MAX;
        const expiresAt = instantAt(Math.max(hold.expiresAt, Math.min(this.at + action.ttl, latest)));
        return changed(expiresAt === hold.expiresAt ? hold : this.#put({ ...hold, expiresAt }), former, false);
      }
      case "release":
        if (state === "open") return changed(close({ state: "released", amount: 0 }), former, false);
        return state === "released" ? changed(hold, former, true) : conflict;
      case "settle":
        if (state === "open" || state === "expired") {
          return changed(close({ ...action, state: "settled" }), former, false);
        }
        return state === "settled" && settlement === action.settlement ? changed(hold, former, true) : conflict;
    }
  }

  /** What the batch writes; undefined: nothing. */
  writes(balances: readonly BalanceChange[]): HoldWrites | undefined {
    if (this.#changed.size === 0 && this.opened.length === 0) return undefined;
    const extended: ExtendedHoldRow[] = [];
    const closed: ClosedHoldRow[] = [];
    for (const { id, state, expiresAt, charged, lacks, settlement } of this.#changed.values()) {
      if (state === "open") extended.push([id, expiresAt]);
      else {
        const former = this.#former.get(id)?.state ?? state;
        closed.push([id, former, state, charged, largest(lacks), lacksText(lacks), settlement]);
      }
    }
    return { balances, opened: this.opened.map(openedRow), extended, closed, at: this.at };
  }

  #find(holdId: string): StoredHold | undefined {
    return this.#changed.get(holdId) ?? this.#former.get(holdId);
  }

  #put(hold: StoredHold): StoredHold {
    this.#changed.set(hold.id, hold);
    return hold;
  }
}

function storedHold(row: StoredHoldRow): StoredHold {
  const [id, workspaceId, cost, balances, onExpiry, state, charged, lacks, settlement, createdAt, expiresAt] = row;
  return {
    ...{ id, workspaceId, cost, onExpiry, state, charged, settlement },
    balances: JSON.parse(balances),
    lacks: lacks === null ? [] : JSON.parse(lacks),
    createdAt: instantAt(createdAt),
    expiresAt: instantAt(expiresAt),
  };
}

function openedRow({ id, workspaceId, keyId, apiId, cost, balances, ...hold }: OpenedHold): OpenedHoldRow {
  const { onExpiry, limits, subject, createdAt, expiresAt } = hold;
  const held = JSON.stringify(balances);
  return [id, workspaceId, keyId, apiId, cost, held, onExpiry, limits, subject, createdAt, expiresAt];
}

function lacksText(lacks: StoredHold["lacks"]): string | null {
  return lacks.length === 0 ? null : JSON.stringify(lacks);
}

/** How a hold ends. */
interface End {
  readonly state: HoldState;
  /** What it is to charge. */
  readonly amount: number;
  readonly settlement?: string | null;
}

/** A hold after it charged an amount instead of what it had taken, and gave back its slots. */
function closed(
  hold: StoredHold,
  { state, amount, settlement = null }: End,
  balanceOf: (id: string) => LockedBalance,
): StoredHold {
  const returned = hold.onExpiry === "charge" ? "spent" : "returned";
  const from: Portion["from"] = hold.state === "open" ? "held" : returned;
  let isCounted = false;
  const lacks = hold.balances.flatMap(({ id, period, slot }) => {
    const balance = balanceOf(id);
    if (slot) {
      // Every end gives it back, so a late settlement has none.
      balance.settle({ from: hold.state === "open" ? "held" : "returned", amount: 1, period }, 0);
      return [];
    }
    const portion = { from, amount: hold.cost, period };
    if (!balance.hasTaken(portion)) return [];
    isCounted = true;
    const lack = balance.settle(portion, amount);
    return lack > 0 ? [{ balanceId: id, lack }] : [];
  });
  // What is unlimited counts nothing, and what is gone keeps what it was charged.
  const charged = isCounted ? amount - largest(lacks) : hold.charged;
  return { ...hold, state, settlement, lacks, charged };
}

function changed(
  { state, charged, lacks, expiresAt }: StoredHold,
  { state: formerState, charged: formerCharged }: StoredHold,
  isRepeated: boolean,
): ChangedHold {
  const former = { state: formerState, charged: formerCharged };
  return { former, outcome: "changed", state, charged, uncovered: largest(lacks), lacks, expiresAt, isRepeated };
}

function largest(lacks: StoredHold["lacks"]): number {
  return lacks.reduce((most, { lack }) => Math.max(most, lack), 0);
}
