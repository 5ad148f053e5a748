import type { Clock, Milliseconds, Timer } from "../clock/clock.ts";
import { startTimeout } from "../clock/timeout.ts";
import type { KeyLimit, KeyRecord } from "../directory/records.ts";
import type { Charge, LimitDecision, LimitState } from "../limits/counters.ts";
import { isLeasable, LEASES_PER_QUESTION } from "../limits/leases.ts";
import type { Random } from "../random/random.ts";
import { chargesOnlyLimits } from "../verification/balances.ts";
import type { SelectedLimits } from "../verification/limits.ts";
import {
  type Home,
  HomeUnavailable,
  type LeaseQuestion,
  type LeaseRequest,
  OperationUnknown,
  ReplicaRefused,
} from "./home.ts";
import { type BothClocks, type HeldLease, LeasedLimit, type LimitAtHome } from "./leased-limit.ts";

/** Limits that are watched. */
const LIMITS_MAX = 10_000;
/** Limits that are looked at to make room for another one. */
const LOOKED_AT_MAX = 16;
/** Bytes of a question as JSON: home reads short bodies only. */
const BYTES_MAX = 48 * 1024;
/** The shortest time between two questions, and how long the first request waits for others. */
const QUESTION_PAUSE: Milliseconds = 20;
const GATHERING: Milliseconds = 3;
/** How often ended leases are looked for, at least and at most. */
const SWEEP_INTERVAL: Milliseconds = 100;
const SWEEP_PAUSE: Milliseconds = 10;
/** After a question without an answer: doubled each time, and half of it by chance. */
const RETRY_MIN: Milliseconds = 100;
const RETRY_MAX: Milliseconds = 2_000;
/** After home has said that it does not know leases, or this replica. */
const UNKNOWN_PAUSE: Milliseconds = 60_000;
const REFUSED_PAUSE: Milliseconds = 5_000;
/** How long `close` waits for home. */
const CLOSE_TIME: Milliseconds = 2_000;
const CLOSE_ATTEMPTS = 3;

export interface LeasesOptions {
  clock: Clock;
  random: Random;
  home: Pick<Home, "lease">;
  position(): string | undefined;
}

/** What a call at home says about one of its limits. */
interface Demand {
  readonly charge: Charge;
  readonly at: LimitAtHome;
}

/**
 * Amounts of busy limits that home has granted, and that calls spend here. A call is decided by them entirely or not at all: if
 * one of its limits is not covered, nothing is spent, and home decides. So they never deny a call.
 */
export class Leases {
  readonly #options: LeasesOptions;
  /** By the names of their counters. The first ones have waited longest for a lease. */
  readonly #limits = new Map<string, LeasedLimit>();
  /** Those that are in the next question. */
  #asking = new Set<LeasedLimit>();
  /** Those whose owners have another limit now. They only return leases. */
  #former = new Set<LeasedLimit>();
  /** The limits of the call that is being decided. */
  readonly #found: LeasedLimit[] = [];
  #question: Promise<void> | undefined;
  #sentAt = Number.NEGATIVE_INFINITY;
  #sweepAt = Number.POSITIVE_INFINITY;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #closed = false;
  /** Charges that were decided here, and questions, for the metrics. */
  readonly counts = { charges: 0, questions: 0, failures: 0 };

  constructor(options: LeasesOptions) {
    this.#options = options;
  }

  /** Leases that are held. */
  get held(): number {
    let held = 0;
    for (const limit of this.#limits.values()) held += limit.leases;
    return held;
  }

  /** Limits that are watched. */
  get watched(): number {
    return this.#limits.size;
  }

  /** The leases of a limit of a key. */
  heldOf(limit: KeyLimit): HeldLease[] {
    const { clock } = this.#options;
    const watched = this.#limits.get(limit.counter);
    if (watched === undefined || !watched.isOf(limit)) return [];
    return watched.held({ monotonic: clock.monotonic(), wall: clock.now() });
  }

  /** Decides a call, and spends what it charges. Undefined: home must decide, and nothing was spent. */
  spend(charges: readonly Charge[]): LimitDecision | undefined {
    if (this.#limits.size === 0) return undefined;
    const { clock } = this.#options;
    const monotonic = clock.monotonic();
    const now = clock.now();
    const found = this.#found;
    let count = 0;
    for (const charge of charges) {
      const limit = this.#limits.get(charge.counter);
      if (limit === undefined || !limit.covers(charge, monotonic, now)) return undefined;
      // Several charges of one counter add up. Home knows how.
      for (let i = 0; i < count; i++) if (found[i] === limit) return undefined;
      found[count++] = limit;
    }
    const limits: LimitState[] = [];
    for (const charge of charges) {
      const limit = found[limits.length];
      if (limit === undefined) return undefined;
      limits.push(limit.spend(charge, monotonic));
      if (!limit.isAsking && (limit.needsLease(monotonic) || limit.hasReturns)) this.#ask(limit);
    }
    this.counts.charges += charges.length;
    return { outcome: "decided", at: now, allowed: true, retryAfter: 0, limits };
  }

  /** Says that home has to decide a call of a key, and which limits it charges. */
  note(hash: string, key: KeyRecord, selected: SelectedLimits): void {
    if (this.#closed || !chargesOnlyLimits(key)) return;
    const demands: Demand[] = [];
    for (const [i, charge] of selected.charges.entries()) {
      const checked = selected.limits[i];
      const at = checked && limitAtHome(checked);
      // Without a lease of one of them the call goes home whatever the others have.
      if (at === undefined) return;
      demands.push({ charge, at });
    }
    const monotonic = this.#options.clock.monotonic();
    const watched = demands.flatMap(({ charge, at }) => {
      const limit = this.#watch(hash, charge, at, monotonic);
      return limit === undefined ? [] : [{ charge, limit }];
    });
    const isAnyQuiet = watched.some(({ limit }) => limit.isQuiet(monotonic));
    for (const { charge, limit } of watched) {
      if (charge.commit !== false) limit.use(charge.cost, monotonic);
      if (!limit.isAsking && !isAnyQuiet && limit.needsLease(monotonic)) this.#ask(limit);
    }
  }

  /** Forgets all leases, and asks for none for a while: home does not accept this replica. */
  drop(): void {
    for (const limit of [...this.#limits.values(), ...this.#former]) limit.forget();
    this.#limits.clear();
    this.#former.clear();
    this.#asking.clear();
    this.#pausedUntil = this.#options.clock.monotonic() + REFUSED_PAUSE;
  }

  /** Ends all leases, and returns what is left of them. Nothing is decided here any more. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.cancel();
    const { clock } = this.#options;
    const deadline = startTimeout(clock, CLOSE_TIME);
    const returned = async () => {
      this.#endAll();
      await this.#question;
      this.#failures = 0;
      while (this.#asking.size > 0 && this.#failures < CLOSE_ATTEMPTS) await this.#askHome();
    };
    await Promise.race([returned(), deadline.expired]);
    deadline.cancel();
    this.#limits.clear();
    this.#former.clear();
    this.#asking.clear();
  }

  #endAll(): void {
    const monotonic = this.#options.clock.monotonic();
    for (const limit of [...this.#limits.values(), ...this.#former]) {
      limit.endAll(monotonic);
      if (limit.hasReturns) this.#asking.add(limit);
    }
  }

  /** The limit of a charge; undefined if no further one can be watched. */
  #watch(hash: string, { counter }: Charge, at: LimitAtHome, monotonic: Milliseconds): LeasedLimit | undefined {
    let limit = this.#limits.get(counter);
    if (limit?.isOf(at)) {
      limit.hash = hash;
      return limit;
    }
    if (limit === undefined && this.#limits.size >= LIMITS_MAX && !this.#makeRoom()) return undefined;
    if (limit !== undefined) this.#retire(limit, monotonic);
    limit = new LeasedLimit(at, hash, monotonic);
    this.#limits.set(counter, limit);
    this.#sweepAt = Math.min(this.#sweepAt, monotonic + SWEEP_INTERVAL);
    this.#wakeAt(this.#sweepAt);
    return limit;
  }

  /** Its owner has another limit. */
  #retire(limit: LeasedLimit, monotonic: Milliseconds): void {
    limit.endAll(monotonic);
    if (limit.isFree) return;
    this.#former.add(limit);
    if (limit.hasReturns) this.#ask(limit);
  }

  /** Forgets a limit that has no lease, of those that were watched for longest. */
  #makeRoom(): boolean {
    let looked = 0;
    for (const [counter, limit] of this.#limits) {
      if (looked++ === LOOKED_AT_MAX) return false;
      this.#limits.delete(counter);
      if (limit.isFree) return true;
      this.#limits.set(counter, limit);
    }
    return false;
  }

  #ask(limit: LeasedLimit): void {
    limit.isAsking = true;
    this.#asking.add(limit);
    this.#wakeSoon();
  }

  #wakeAt(at: Milliseconds): void {
    if (this.#closed || at >= this.#timerAt) return;
    const { clock } = this.#options;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = clock.schedule(Math.max(0, at - clock.monotonic()), () => this.#wake());
  }

  #wake(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const monotonic = this.#options.clock.monotonic();
    if (monotonic >= this.#sweepAt) this.#sweep(monotonic);
    const mayAsk =
      this.#question === undefined && monotonic >= Math.max(this.#pausedUntil, this.#sentAt + QUESTION_PAUSE);
    if (this.#asking.size > 0 && mayAsk) {
      this.#question = this.#askHome().finally(() => {
        this.#question = undefined;
        this.#wakeSoon();
      });
    }
    this.#wakeSoon();
  }

  /** Wakes for the next sweep or question. An answer wakes for the question after it. */
  #wakeSoon(): void {
    this.#wakeAt(this.#sweepAt);
    if (this.#asking.size === 0 || this.#question !== undefined) return;
    const soon = this.#options.clock.monotonic() + GATHERING;
    this.#wakeAt(Math.max(soon, this.#sentAt + QUESTION_PAUSE, this.#pausedUntil));
  }

  /** Ends leases whose time is over, and forgets limits that are not used. */
  #sweep(monotonic: Milliseconds): void {
    const now = this.#options.clock.now();
    let next = monotonic + SWEEP_INTERVAL;
    for (const [counter, limit] of this.#limits) {
      if (limit.isIdle(monotonic)) {
        this.#limits.delete(counter);
        continue;
      }
      if (limit.leases > 0) limit.end(monotonic, now);
      next = Math.min(next, Math.max(monotonic + SWEEP_PAUSE, limit.endsAt));
      if (!limit.isAsking && (limit.hasReturns || limit.needsLease(monotonic))) this.#ask(limit);
    }
    for (const limit of this.#former) if (limit.isFree) this.#former.delete(limit);
    const isIdle = this.#limits.size === 0 && this.#former.size === 0;
    this.#sweepAt = isIdle ? Number.POSITIVE_INFINITY : next;
  }

  async #askHome(): Promise<void> {
    const { clock, home, position } = this.#options;
    const sentAt: BothClocks = { monotonic: clock.monotonic(), wall: clock.now() };
    const asked = this.#takeRequests(sentAt.monotonic);
    if (asked.length === 0) return;
    this.#sentAt = sentAt.monotonic;
    this.counts.questions++;
    const known = position();
    const question: LeaseQuestion = {
      leases: asked.map(({ request }) => request),
      ...(known !== undefined && { position: known }),
    };
    try {
      const { leases } = await home.lease(question);
      if (!Array.isArray(leases) || leases.length < asked.length) {
        throw new HomeUnavailable("Home has not answered each request for a lease");
      }
      this.#failures = 0;
      const now: BothClocks = { monotonic: clock.monotonic(), wall: clock.now() };
      for (const [i, { limit, request }] of asked.entries()) {
        limit.isAsking = false;
        limit.answered(request, leases[i] ?? null, sentAt, now);
        if (this.#closed || this.#former.has(limit)) limit.endAll(now.monotonic);
        if (limit.hasReturns) this.#ask(limit);
      }
    } catch (error) {
      this.#fail(error);
      for (const { limit } of asked) {
        limit.isAsking = false;
        if (limit.hasReturns) this.#ask(limit);
      }
    }
  }

  /** The requests of a question, with those that waited longest. */
  #takeRequests(monotonic: Milliseconds): { limit: LeasedLimit; request: LeaseRequest }[] {
    const taken: { limit: LeasedLimit; request: LeaseRequest }[] = [];
    let bytes = 0;
    for (const limit of this.#asking) {
      const request = limit.request(monotonic, !this.#closed && !this.#former.has(limit));
      const isEmpty = request.want === 0 && request.returns === undefined;
      const length = isEmpty ? 0 : JSON.stringify(request).length + 1;
      if (taken.length === LEASES_PER_QUESTION || (taken.length > 0 && bytes + length > BYTES_MAX)) break;
      this.#asking.delete(limit);
      bytes += length;
      if (isEmpty) limit.isAsking = false;
      else {
        limit.isAsking = true;
        taken.push({ limit, request });
      }
    }
    return taken;
  }

  #fail(error: unknown): void {
    this.counts.failures++;
    this.#failures++;
    const monotonic = this.#options.clock.monotonic();
    if (error instanceof ReplicaRefused) this.drop();
    else if (error instanceof OperationUnknown) this.#pausedUntil = monotonic + UNKNOWN_PAUSE;
    else {
      const pause = Math.min(RETRY_MAX, RETRY_MIN * 2 ** Math.min(10, this.#failures - 1));
      this.#pausedUntil = monotonic + pause / 2 + this.#options.random.below(pause / 2);
    }
  }
}

/** The stored limit that a call charges; undefined for one that is never leased. */
function limitAtHome(checked: SelectedLimits["limits"][number]): LimitAtHome | undefined {
  if (!("owner" in checked) || checked.owner === "derived" || checked.plan !== undefined || !isLeasable(checked)) {
    return undefined;
  }
  const { name, owner, limit, duration } = checked;
  return { name, owner, limit, duration };
}
