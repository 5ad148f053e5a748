import { LatchkeyError } from "./error.ts";
import { errorOf, print, safely } from "./on-error.ts";
import type {
  HoldsOperations,
  SettleHoldInput,
  SettleHoldOutput,
  VerifyKeyInput,
  VerifyKeyOutput,
} from "./operations.ts";
import { checkNames, type Names } from "./option-names.ts";
import { shareClass } from "./share-class.ts";

const TTL_DEFAULT = 60_000;
const TTL_MIN = 1_000;
const LIFETIME_DEFAULT = 3_600_000;
/** A hold ends at the latest 24 hours after it was made. */
const LIFETIME_MAX = 86_400_000;
/** An extension that fails can be tried once more before the hold expires. */
const EXTENSIONS_PER_TTL = 3;
/** With the waits between them, about half a minute. */
const ATTEMPTS = 8;
const WAIT_FIRST = 250;
const WAIT_MAX = 8_000;
const SETTLE_TIMEOUT = 30_000;

/** What work did cost, as `holds.settleHold` takes it: credits, and optionally limits and tags. */
export type Settlement = Omit<SettleHoldInput, "holdId">;

/** How long holds are kept open. */
export interface HoldTimes {
  /** Milliseconds until a hold expires unless it is extended, 1,000 to 24 hours. Default: 60,000. */
  readonly ttl?: number | undefined;
  /**
   * What happens to the credits if this program ends before it could settle. `release`: they are given back. `charge`: they
   * are spent. Default: `release`.
   */
  readonly onExpiry?: "release" | "charge" | undefined;
  /** The longest time in milliseconds for which a hold is extended, from `ttl` to 24 hours. Default: an hour. */
  readonly lifetimeMax?: number | undefined;
}

export const TIME_NAMES: Names<HoldTimes> = { ttl: true, onExpiry: true, lifetimeMax: true };

/** A hold whose work is under way. */
export interface OpenHold {
  readonly holdId: string;
  /** Unix time in milliseconds. It is extended until the work has ended. */
  readonly expiresAt: number;
  /**
   * Says what the work did cost so far. It replaces what was reported before. Work that breaks off is charged what was
   * reported.
   *
   * @returns Whether it counts. False: the hold has ended, because the end user hung up. Stop the work.
   * @throws {TypeError} for credits that are not an integer of at least 0.
   */
  report(settlement: Settlement): boolean;
}

/** A hold could not be settled or released. It expires; until a day after that, `holds.settleHold` can settle it. */
export class UnsettledHold extends Error {
  static {
    shareClass(UnsettledHold, "UnsettledHold");
  }

  override readonly name = "UnsettledHold";
  readonly holdId: string;
  /** What was to be charged. Undefined: it was to be released. */
  readonly settlement: Settlement | undefined;

  constructor(holdId: string, settlement: Settlement | undefined, cause: unknown) {
    const end = settlement ? `settled with ${settlement.credits} credits` : "released";
    super(`The hold ${holdId} could not be ${end}: ${cause instanceof Error ? cause.message : cause}`, { cause });
    this.holdId = holdId;
    this.settlement = settlement;
  }
}

/** The times with their defaults. */
export interface CheckedTimes {
  readonly ttl: number;
  readonly lifetimeMax: number;
  readonly onExpiry: "release" | "charge" | undefined;
}

/** @throws {TypeError} for a time that cannot be used. It names the option. */
export function timesOf({ ttl = TTL_DEFAULT, lifetimeMax, onExpiry }: HoldTimes, prefix: string): CheckedTimes {
  check(`${prefix}ttl`, ttl, TTL_MIN);
  const longest = lifetimeMax ?? Math.max(ttl, LIFETIME_DEFAULT);
  check(`${prefix}lifetimeMax`, longest, ttl);
  return { ttl, lifetimeMax: longest, onExpiry };
}

function check(name: string, value: number, minimum: number): void {
  if (Number.isInteger(value) && value >= minimum && value <= LIFETIME_MAX) return;
  throw new TypeError(`The option \`${name}\` must be an integer from ${minimum} to ${LIFETIME_MAX}: milliseconds.`);
}

/** Keeps a hold open while its work runs, and ends it. */
export class HoldKeeper {
  /** What the work gets. */
  readonly open: OpenHold;
  /** What the work has reported. */
  reported: Settlement | undefined;
  readonly #holds: HoldsOperations;
  readonly #cost: number;
  readonly #times: CheckedTimes;
  readonly #onError: (error: Error) => void;
  readonly #madeAt = performance.now();
  #expiresAt: number;
  #isEnded = false;
  #isClosing = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    holds: HoldsOperations,
    { holdId, expiresAt }: NonNullable<VerifyKeyOutput["hold"]>,
    cost: number,
    times: CheckedTimes,
    onError: (error: Error) => void,
  ) {
    this.#holds = holds;
    this.#cost = cost;
    this.#times = times;
    this.#onError = onError;
    this.#expiresAt = expiresAt;
    const now = () => this.#expiresAt;
    this.open = {
      holdId,
      get expiresAt() {
        return now();
      },
      report: (settlement) => {
        const checked = checkedSettlement(settlement);
        if (!this.#isEnded) this.reported = checked;
        return !this.#isEnded;
      },
    };
    this.#extendLater();
  }

  /**
   * Settles the hold with what `decide` returns, or releases it without one. What cannot be settled is reported to
   * `onError`. A hold that has ended stays as it is.
   */
  async end(decide?: () => Settlement | Promise<Settlement>): Promise<SettleHoldOutput | undefined> {
    if (this.#isEnded) return undefined;
    this.#isEnded = true;
    const settlement = decide && (await this.#settlementOf(decide));
    this.#isClosing = true;
    clearTimeout(this.#timer);
    return await this.#close(settlement);
  }

  async #settlementOf(decide: () => Settlement | Promise<Settlement>): Promise<Settlement> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<never>((_, reject) => {
      const late = new TypeError(`The function in the option \`settle\` took more than ${SETTLE_TIMEOUT} ms.`);
      timer = setTimeout(reject, SETTLE_TIMEOUT, late);
    });
    try {
      return checkedSettlement(await Promise.race([(async () => decide())(), timeout]));
    } catch (error) {
      this.#onError(errorOf(error));
      return { credits: this.#cost };
    } finally {
      clearTimeout(timer);
    }
  }

  async #close(settlement: Settlement | undefined): Promise<SettleHoldOutput | undefined> {
    const { holdId } = this.open;
    for (let attempt = 1; ; attempt++) {
      try {
        const once = { retries: 0 };
        const call = settlement
          ? this.#holds.settleHold({ ...settlement, holdId }, once)
          : this.#holds.releaseHold({ holdId }, once);
        return (await call).data;
      } catch (error) {
        const { status, retryAfter = 0 } = error instanceof LatchkeyError ? error : { status: 0 };
        // It has expired, which may have charged it.
        if (!settlement && status === 409) return await this.#close({ credits: 0 });
        const isRefused = status === 400 || status === 412;
        if (isRefused && (settlement?.ratelimits || settlement?.tags)) {
          this.#onError(errorOf(error));
          return await this.#close({ credits: settlement.credits });
        }
        if (attempt === ATTEMPTS || !mayPass(status)) {
          this.#onError(new UnsettledHold(holdId, settlement, error));
          return undefined;
        }
        const backoff = WAIT_FIRST * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
        await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(backoff, retryAfter), WAIT_MAX)));
      }
    }
  }

  #extendLater(): void {
    this.#timer = setTimeout(() => void this.#extend(), this.#times.ttl / EXTENSIONS_PER_TTL);
    // The timer is not what a process should live for. Browsers and Workers have numbers.
    (this.#timer as { unref?: () => void }).unref?.();
  }

  async #extend(): Promise<void> {
    const { ttl, lifetimeMax } = this.#times;
    const left = Math.floor(Math.min(ttl, lifetimeMax - (performance.now() - this.#madeAt)));
    if (left < TTL_MIN) return;
    try {
      const { data } = await this.#holds.extendHold({ holdId: this.open.holdId, ttl: left }, { retries: 0 });
      this.#expiresAt = data.expiresAt;
    } catch (error) {
      // It has expired. Its settlement will be a late one.
      if (!(error instanceof LatchkeyError && mayPass(error.status))) return;
    }
    if (!this.#isClosing) this.#extendLater();
  }
}

/** Whether the same call may succeed later. Undefined: there was no answer. */
function mayPass(status: number | undefined): boolean {
  return status === undefined || status === 429 || status >= 500;
}

function checkedSettlement(settlement: unknown): Settlement {
  const { credits } = Object(settlement) as Partial<Settlement>;
  if (credits === undefined || !Number.isSafeInteger(credits) || credits < 0) {
    throw new TypeError(`What work did cost must have \`credits\`, an integer of at least 0. It is ${credits}.`);
  }
  return { ...(settlement as Settlement) };
}

/** The input of `withHold`: that of `keys.verifyKey`. */
export type HeldInput = Omit<VerifyKeyInput, "hold"> & { readonly hold?: HoldTimes | undefined };

/** Options of `withHold`. */
export interface HeldOptions<Result> {
  /** What the work did cost, by its result. Default: what it reported, or else the cost that was held. */
  readonly settle?: ((result: Result) => Settlement | Promise<Settlement>) | undefined;
  /** Called if the hold cannot be settled or `settle` fails. Default: prints it with `console.error`. */
  readonly onError?: ((error: Error) => void) | undefined;
}

const HELD_NAMES: Names<HeldOptions<unknown>> = { settle: true, onError: true };

/** What `withHold` returns. Without a valid key, the work was not done. */
export type Held<Result> =
  | {
      readonly valid: true;
      readonly verified: VerifyKeyOutput;
      /** What the work returned. */
      readonly result: Result;
      /** What was charged. Undefined if the hold could not be settled. */
      readonly settled: SettleHoldOutput | undefined;
    }
  | {
      readonly valid: false;
      readonly verified: VerifyKeyOutput;
      readonly result?: undefined;
      readonly settled?: undefined;
    };

/** Does work between the verification of a key with a hold and its settlement. */
export async function withHold<Result>(
  verify: (input: VerifyKeyInput) => Promise<{ data: VerifyKeyOutput }>,
  holds: HoldsOperations,
  { hold = {}, ...input }: HeldInput,
  work: (hold: OpenHold) => Result | Promise<Result>,
  options: HeldOptions<Result>,
): Promise<Held<Result>> {
  checkNames(options, HELD_NAMES);
  checkNames(hold, TIME_NAMES, "hold.");
  const { settle, onError = print } = options;
  const times = timesOf(hold, "hold.");
  const { ttl, onExpiry } = times;
  const { data: verified } = await verify({ ...input, hold: { ttl, onExpiry } });
  if (!verified.valid) return { valid: false, verified };
  const cost = input.credits?.cost ?? 1;
  const keeper = new HoldKeeper(holds, madeHold(verified), cost, times, safely(onError));
  let result: Result;
  try {
    result = await work(keeper.open);
  } catch (error) {
    const { reported } = keeper;
    await keeper.end(reported && (() => reported));
    throw error;
  }
  const settled = await keeper.end(() => (settle ? settle(result) : (keeper.reported ?? { credits: cost })));
  return { valid: true, verified, result, settled };
}

/** The hold that a valid verification made. */
export function madeHold({ hold }: VerifyKeyOutput): NonNullable<VerifyKeyOutput["hold"]> {
  if (hold) return hold;
  throw new TypeError(
    "The service verified the key, but made no hold. It is an earlier release, which has none: update it.",
  );
}
