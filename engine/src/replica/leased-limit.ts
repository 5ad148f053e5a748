import { type Instant, instantAt, type Milliseconds } from "../clock/clock.ts";
import type { Charge, LimitState } from "../limits/counters.ts";
import { LEASE_MAX, RETURNS_PER_LEASE } from "../limits/leases.ts";
import type { LeaseGrant, LeaseRequest, LeaseReturn } from "./home.ts";

/** Charges of a second from which on a lease pays. */
const BUSY = 10;
/** A lease is asked for what is used in this time. */
const AIM: Milliseconds = 5_000;
/** What is left is renewed below what is used in this time, and a lease that ends sooner than this. */
const RENEWAL: Milliseconds = 500;
/** Leases of one limit. */
const LEASES_MAX = 4;
/** For how long a return is repeated while home does not answer. */
const RETURN_TIME: Milliseconds = 60_000;
/** After home gave no lease: doubled each time, up to the longest, or to an eighth of a window. */
const QUIET_MIN: Milliseconds = 1_000;
const QUIET_MAX: Milliseconds = 8_000;
const SECOND: Milliseconds = 1_000;
/** What home can name a lease with. */
const ID_LENGTH_MAX = 512;

/** A stored limit, as home finds it. */
export interface LimitAtHome {
  readonly name: string;
  readonly owner: "key" | "identity";
  readonly limit: number;
  readonly duration: Milliseconds;
}

/** A moment by both clocks of this process. */
export interface BothClocks {
  readonly monotonic: Milliseconds;
  readonly wall: Instant;
}

interface Lease {
  readonly id: string;
  readonly amount: number;
  left: number;
  /** By each clock. What comes first ends it. */
  readonly endsAt: Milliseconds;
  readonly wallEndsAt: number;
}

/** A lease as explanations show it. */
export interface HeldLease {
  /** What is left of it. */
  readonly remaining: number;
  /** By the wall clock of this process. */
  readonly expiresAt: Instant;
}

/** An ended lease. Its numbers never change: home may have taken it although no answer came. */
interface EndedLease extends LeaseReturn {
  readonly endedAt: Milliseconds;
}

/**
 * One limit at a replica: how busy it is, and its leases. A lease is an amount that home has subtracted from the limit already.
 *
 * It counts from when it was asked for, by the monotonic clock, which is earlier than when home granted it. So it ends here
 * before its window ends at home, however long the answer was under way, and no clock is compared with another one. A wall clock
 * that advances more, as while a machine is suspended, ends it too.
 */
export class LeasedLimit {
  readonly at: LimitAtHome;
  /** The hash of a key that has it. */
  hash: string;
  /** Whether it is in a question, or waits for one. */
  isAsking = false;
  #leases: Lease[] = [];
  #ended: EndedLease[] = [];
  /** What is left in all leases. */
  #left = 0;
  /** The first end of a lease, by each clock. */
  #usableUntil = Number.NEGATIVE_INFINITY;
  #wallUsableUntil = Number.NEGATIVE_INFINITY;
  /** From when on a longer lease is asked for. */
  #renewsAt = Number.POSITIVE_INFINITY;
  /** What home said that remains besides its leases, and the end of its window by the clock of home. */
  #remaining = 0;
  #reset = 0;
  /** The charges of the present second, and of the one before. */
  #secondAt: Milliseconds;
  #inSecond = 0;
  #rate = 0;
  #usedAt: Milliseconds;
  #quiet: Milliseconds = 0;
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(at: LimitAtHome, hash: string, monotonic: Milliseconds) {
    this.at = at;
    this.hash = hash;
    this.#secondAt = monotonic;
    this.#usedAt = monotonic;
  }

  get leases(): number {
    return this.#leases.length;
  }

  /** The first end of a lease; infinity if there is none. */
  get endsAt(): Milliseconds {
    return this.#leases.length === 0 ? Number.POSITIVE_INFINITY : this.#usableUntil;
  }

  get hasReturns(): boolean {
    return this.#ended.length > 0;
  }

  /** Whether it is held for nothing. */
  isIdle(monotonic: Milliseconds): boolean {
    return this.isFree && monotonic - this.#usedAt > LEASE_MAX;
  }

  /** Whether it may be forgotten. */
  get isFree(): boolean {
    return this.#leases.length === 0 && this.#ended.length === 0 && !this.isAsking;
  }

  /** Whether home has refused a lease a short time ago. */
  isQuiet(monotonic: Milliseconds): boolean {
    return monotonic < this.#quietUntil;
  }

  /** Whether it is the limit of a charge, or of a key. */
  isOf({ limit, duration }: Pick<Charge, "limit" | "duration">): boolean {
    return limit === this.at.limit && duration === this.at.duration;
  }

  /** Whether the leases cover a charge. */
  covers(charge: Charge, monotonic: Milliseconds, wall: Instant): boolean {
    if (monotonic >= this.#usableUntil || wall >= this.#wallUsableUntil) {
      if (this.#leases.length === 0) return false;
      this.end(monotonic, wall);
    }
    const { cost, mode, force, shadow } = charge;
    if (mode === "strict" || force === true || shadow === true || !this.isOf(charge)) return false;
    return this.#left >= cost && this.#left > 0;
  }

  /** Spends what a charge consumes. The leases must cover it. */
  spend({ cost, commit }: Charge, monotonic: Milliseconds): LimitState {
    if (commit !== false && cost > 0) this.#take(cost, monotonic);
    return { allowed: true, remaining: this.#remaining + this.#left, reset: this.#reset, retryAfter: 0 };
  }

  #take(cost: number, monotonic: Milliseconds): void {
    this.#left -= cost;
    let rest = cost;
    for (const lease of this.#leases) {
      const part = Math.min(rest, lease.left);
      lease.left -= part;
      rest -= part;
      if (rest === 0) break;
    }
    this.use(cost, monotonic);
    if (this.#leases[0]?.left === 0) this.#endWhere((lease) => lease.left === 0, monotonic);
  }

  /** Counts a charge, wherever it was made. */
  use(cost: number, monotonic: Milliseconds): void {
    const elapsed = monotonic - this.#secondAt;
    if (elapsed >= SECOND) {
      this.#rate = Math.floor((this.#inSecond * SECOND) / elapsed);
      this.#secondAt = monotonic;
      this.#inSecond = 0;
    }
    this.#inSecond += cost;
    this.#usedAt = monotonic;
  }

  /** Whether a lease is to be asked for now. */
  needsLease(monotonic: Milliseconds): boolean {
    const rate = this.#rateAt(monotonic);
    if (rate < (this.#leases.length > 0 ? BUSY / 2 : BUSY) || monotonic < this.#quietUntil) return false;
    if (this.#leases.length >= LEASES_MAX || this.#ended.length > RETURNS_PER_LEASE) return false;
    return this.#left * SECOND < rate * RENEWAL || monotonic >= this.#renewsAt;
  }

  /** What is used per second. */
  #rateAt(monotonic: Milliseconds): number {
    return monotonic - this.#usedAt > SECOND ? 0 : Math.max(this.#rate, this.#inSecond);
  }

  /** The leases that may be used. */
  held({ monotonic, wall }: BothClocks): HeldLease[] {
    return this.#leases
      .map(({ left, endsAt, wallEndsAt }) => ({
        remaining: left,
        expiresAt: instantAt(Math.min(wallEndsAt, wall + endsAt - monotonic)),
      }))
      .filter(({ expiresAt }) => expiresAt > wall);
  }

  /** Ends what must not be used any longer. */
  end(monotonic: Milliseconds, wall: Instant): void {
    if (monotonic < this.#usableUntil && wall < this.#wallUsableUntil) return;
    this.#endWhere(({ endsAt, wallEndsAt }) => monotonic >= endsAt || wall >= wallEndsAt, monotonic);
  }

  /** Ends all leases. */
  endAll(monotonic: Milliseconds): void {
    this.#endWhere(() => true, monotonic);
  }

  /** Forgets all leases: home does not take them back. */
  forget(): void {
    this.#endWhere(() => true, 0);
    this.#ended = [];
  }

  #endWhere(hasEnded: (lease: Lease) => boolean, endedAt: Milliseconds): void {
    const usable: Lease[] = [];
    for (const lease of this.#leases) {
      const { id, amount, left } = lease;
      if (!hasEnded(lease)) usable.push(lease);
      else {
        this.#left -= left;
        this.#ended.push({ id, amount, spent: amount - left, endedAt });
      }
    }
    this.#setLeases(usable);
  }

  #setLeases(leases: Lease[]): void {
    this.#leases = leases;
    this.#usableUntil = this.#wallUsableUntil =
      leases.length === 0 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    for (const { endsAt, wallEndsAt } of leases) {
      this.#usableUntil = Math.min(this.#usableUntil, endsAt);
      this.#wallUsableUntil = Math.min(this.#wallUsableUntil, wallEndsAt);
    }
  }

  /** What home is asked, with leases that have ended. */
  request(monotonic: Milliseconds, mayGrow: boolean): LeaseRequest {
    this.#ended = this.#ended.filter(({ endedAt }) => monotonic - endedAt < RETURN_TIME);
    const { name, owner, limit, duration } = this.at;
    const want = mayGrow && this.needsLease(monotonic) ? Math.ceil((this.#rateAt(monotonic) * AIM) / SECOND) : 0;
    const returns = this.#ended.slice(0, RETURNS_PER_LEASE).map(({ id, amount, spent }) => ({ id, amount, spent }));
    return {
      key: { hash: this.hash, name, owner },
      limit,
      duration,
      want: Math.min(want, limit),
      ...(returns.length > 0 && { returns }),
    };
  }

  /** Takes home's answer to a request that was sent at this time. Home has what was returned. */
  answered(request: LeaseRequest, answer: LeaseGrant | null, sentAt: BothClocks, now: BothClocks): void {
    const { returns = [], want } = request;
    this.#ended = this.#ended.filter(({ id }) => !returns.some((one) => one.id === id));
    if (want === 0) return;
    const grant = answer !== null && this.#isPossible(answer, want) ? answer : null;
    if (grant === null) {
      const longest = Math.max(QUIET_MIN, Math.min(QUIET_MAX, this.at.duration / 8));
      this.#quiet = Math.min(longest, this.#quiet === 0 ? QUIET_MIN : this.#quiet * 2);
      this.#quietUntil = now.monotonic + this.#quiet;
      return;
    }
    const { id, amount, remaining, reset } = grant;
    const length = Math.min(grant.expiresIn, LEASE_MAX);
    const [endsAt, wallEndsAt] = [sentAt.monotonic + length, sentAt.wall + length];
    this.#quiet = 0;
    this.#remaining = remaining;
    this.#reset = reset;
    this.#renewsAt = length < LEASE_MAX ? Number.POSITIVE_INFINITY : endsAt - RENEWAL;
    this.#left += amount;
    this.#setLeases([...this.#leases, { id, amount, left: amount, endsAt, wallEndsAt }]);
    this.end(now.monotonic, now.wall);
  }

  /** Whether home can have meant it. Otherwise it stays subtracted there, which harms nobody but this limit. */
  #isPossible({ id, amount, remaining, reset, expiresIn }: LeaseGrant, want: number): boolean {
    const isNew = ![...this.#leases, ...this.#ended].some((one) => one.id === id);
    return (
      isNew &&
      typeof id === "string" &&
      id.length > 0 &&
      id.length <= ID_LENGTH_MAX &&
      isCount(amount) &&
      amount > 0 &&
      amount <= want &&
      isCount(remaining) &&
      remaining + amount <= this.at.limit &&
      isCount(reset) &&
      Number.isFinite(expiresIn)
    );
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
