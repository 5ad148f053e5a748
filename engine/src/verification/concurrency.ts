import type { Milliseconds } from "../clock/clock.ts";
import type { SlotLimit } from "../credits/spend.ts";
import type { KeyConcurrency, KeyRecord } from "../directory/records.ts";
import type { BalancesLeft } from "./balances.ts";
import type { KeyOrigins } from "./stored.ts";

/** What a hold of the key takes a slot of; undefined: of nothing. */
export function slotsOf({ concurrency }: KeyRecord): readonly SlotLimit[] | undefined {
  return concurrency.length === 0 ? undefined : concurrency;
}

/** A limit of concurrency after a call. */
export interface ConcurrencyState extends Pick<KeyConcurrency, "name" | "limit"> {
  readonly from: KeyConcurrency["owner"];
  /** How many holds are open, with that of the call. */
  readonly inUse: number;
  /** Whether it denies the call. */
  readonly exceeded: boolean;
  /** If it is exceeded: the time until the first of these holds expires, or less. Any of them can end earlier. */
  readonly retryAfter?: Milliseconds;
}

/** What the slots of a key say to a call. */
export interface ConcurrencyDecision {
  readonly states: ConcurrencyState[];
  /** The first limit that denies the call; undefined: none does. */
  readonly exceeded: ConcurrencyState | undefined;
  /** The longest wait of those that deny the call; 0: none does. */
  readonly retryAfter: Milliseconds;
}

/** How many slots of a limit are in use. */
interface SlotUse {
  readonly inUse: number;
  readonly exceeded: boolean;
  /** The time until the first open hold expires, or less. */
  readonly retryAfter: Milliseconds;
}

/** The limits of concurrency of a key with the use of each. */
export function decideConcurrency(
  { concurrency }: KeyRecord,
  useOf: (limit: KeyConcurrency, index: number) => SlotUse,
): ConcurrencyDecision {
  const states = concurrency.map((limit, i) => {
    const { name, limit: most, owner: from } = limit;
    const { inUse, exceeded, retryAfter } = useOf(limit, i);
    return { name, limit: most, from, inUse, exceeded, ...(exceeded && { retryAfter }) };
  });
  return {
    states,
    exceeded: states.find(({ exceeded }) => exceeded),
    retryAfter: Math.max(0, ...states.map(({ retryAfter = 0 }) => retryAfter)),
  };
}

/** The use of slots as the ledger answers it, of a call with a number of other balances. */
export function slotUseOf(
  { held = [], lacks = [] }: Pick<BalancesLeft, "held" | "lacks">,
  otherBalances: number,
): (limit: KeyConcurrency, index: number) => SlotUse {
  return ({ balanceId }, i) => {
    const lack = lacks.find((one) => one.balanceId === balanceId);
    return {
      inUse: held[otherBalances + i] ?? 0,
      exceeded: lack !== undefined,
      retryAfter: lack?.retryAfter ?? 0,
    };
  };
}

/** The use of slots as they are stored. */
export function storedSlotUse(slots: KeyOrigins["slots"]): (limit: KeyConcurrency) => SlotUse {
  return ({ balanceId, limit }) => {
    const stored = slots.find(({ pool_id }) => pool_id === balanceId);
    const inUse = stored?.held ?? 0;
    return { inUse, exceeded: inUse >= limit, retryAfter: Math.max(1, stored?.expiresIn ?? 0) };
  };
}

/** The states as a JSON member; empty if there is none. */
export function concurrencyText({ states }: ConcurrencyDecision): string {
  return states.length === 0 ? "" : `,"concurrency":${JSON.stringify(states)}`;
}
