import { type Clock, type Instant, instantAt, type Milliseconds, type Timer } from "../clock/clock.ts";
import { startTimeout } from "../clock/timeout.ts";
import { CURRENT_AGE_MAX, hasJumped, isCurrentAt, LATE_WAIT_MAX, type Moment } from "../directory/changes-follower.ts";
import type { Random } from "../random/random.ts";
import {
  type ChangesAnswer,
  type Home,
  HomeUnavailable,
  OperationUnknown,
  PositionUnreadable,
  ReplicaRefused,
  type ReplicaStatus,
} from "./home.ts";
import type { KeyedGenerations } from "./keyed-tags.ts";

/** How long home may wait with an answer until there is a change. */
const HOLD_TIME: Milliseconds = 300;
/** A poll without an answer for this long counts as a failure. */
const ANSWER_TIME_MAX: Milliseconds = 1_000;
/** The shortest time between two polls, so that a busy workspace is asked about several changes at once. */
const POLL_PAUSE: Milliseconds = 20;
/** The same after a failure: doubled with each one, and half of it by chance. */
const RETRY_MIN: Milliseconds = 100;
const RETRY_MAX: Milliseconds = 2_000;
/**
 * The longest pause while calls are refused because home is away: they are decided soon after it is back. A thousand edges then
 * ask as often as while home answers.
 */
const RETRY_MAX_ASKED: Milliseconds = 400;
/** After a refusal. Root keys can be enabled again. */
const REFUSED_PAUSE: Milliseconds = 5_000;

export type StreamState = "current" | "unreachable" | "refused";

export interface ReplicaStreamOptions {
  clock: Clock;
  random: Random;
  home: Pick<Home, "listChanges">;
  generations: KeyedGenerations;
  tagKey: string;
  /** How long records are used after the last answer. 0: for a second, which is the age of records that are current. */
  staleMax: Milliseconds;
  status(): ReplicaStatus;
  /** Told a second time of an unreachable home if an earlier release answers in its place: the cause is `OperationUnknown` then. */
  onState(state: StreamState, cause?: unknown): void;
}

/** What an answer of the stream says about its workspace. */
export type ReplicaSettings = Pick<ChangesAnswer, "workspaceId" | "allowsAnonymous">;

/**
 * Follows the changes of home, and outdates the records that they affect: for a replica what `ChangesFollower` is for a node.
 *
 * The age of the records is the time since home read its own changes. It counts from when the question was *sent*, by the
 * monotonic clock: `age` in the answer is relative to the question's arrival, which was later. So the age is never
 * underestimated, however long question and answer were under way, and no clock is compared with another one.
 */
export class ReplicaStream {
  readonly #options: ReplicaStreamOptions;
  #position: string | undefined;
  /** The moment of home's last read of its changes, by each clock, or earlier. */
  #readAt: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: instantAt(0) };
  #state: StreamState = "current";
  /** Whether an earlier release has answered since home was last current. */
  #isUnsupported = false;
  #failures = 0;
  /** While home is away: when it is asked again if a call is refused. Infinity: it is being asked, or will be so by then. */
  #retryIfAsked = Number.POSITIVE_INFINITY;
  /** When the question of the last applied answer was sent. */
  #appliedSentAt = Number.NEGATIVE_INFINITY;
  #settings: ReplicaSettings | undefined;
  #timer: Timer | undefined;
  #urgent: Promise<boolean> | undefined;
  #closed = false;

  constructor(options: ReplicaStreamOptions) {
    this.#options = options;
  }

  /**
   * Asks for the present position. Nothing may be cached before.
   *
   * @throws what home's method throws.
   */
  async start(): Promise<void> {
    await this.#ask(0);
    this.#schedule(0);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }

  get state(): StreamState {
    return this.#state;
  }

  /** For `CallDirectories`: whether records that are a little older than a second may be used. */
  get reachable(): boolean {
    return this.#state === "current";
  }

  get position(): string | undefined {
    return this.#position;
  }

  get readAt(): Moment {
    return this.#readAt;
  }

  /** @throws before `start` has resolved. */
  get settings(): ReplicaSettings {
    if (this.#settings === undefined) throw new Error("The stream of changes has not started");
    return this.#settings;
  }

  age(): Milliseconds {
    return this.#options.clock.monotonic() - this.#readAt.monotonic;
  }

  recordOwn(): void {
    throw new Error("Only home changes records");
  }

  /** Whether calls may be decided by cached records now, by both clocks. A promise if home must be asked first. */
  mayServe(now: Instant, monotonic: Milliseconds): boolean | Promise<boolean> {
    if (this.#state === "refused") return false;
    const { monotonic: then, wall } = this.#readAt;
    if (isCurrentAt(then, wall, now, monotonic)) return true;
    if (this.#state === "current") return this.#askBeforeServing();
    if (monotonic - then <= this.#options.staleMax && !hasJumped(then, wall, now, monotonic)) return true;
    this.#retrySoon(monotonic);
    return false;
  }

  /** A call is refused because home is away. */
  #retrySoon(monotonic: Milliseconds): void {
    if (this.#retryIfAsked === Number.POSITIVE_INFINITY) return;
    this.#schedule(Math.max(0, this.#retryIfAsked - monotonic));
    this.#retryIfAsked = Number.POSITIVE_INFINITY;
  }

  /** All calls that find the records too old wait for one question, at most 250 ms. */
  async #askBeforeServing(): Promise<boolean> {
    this.#urgent ??= this.#ask(0).then(
      () => true,
      (error) => {
        this.#fail(error);
        return false;
      },
    );
    const urgent = this.#urgent;
    void urgent.finally(() => {
      this.#urgent = undefined;
    });
    const late = startTimeout(this.#options.clock, LATE_WAIT_MAX);
    const answered = await Promise.race([urgent, late.expired.then(() => undefined)]);
    late.cancel();
    if (answered === undefined) this.#setState("unreachable", new Error("Home did not answer in time"));
    if (this.#state === "refused") return false;
    return this.age() <= Math.max(CURRENT_AGE_MAX, this.#options.staleMax);
  }

  #schedule(pause: Milliseconds): void {
    if (this.#closed) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.schedule(pause, () => void this.#poll());
  }

  async #poll(): Promise<void> {
    this.#retryIfAsked = Number.POSITIVE_INFINITY;
    try {
      // An answer that follows a failure says at once that home is back.
      const hasMore = await this.#ask(this.#state === "current" ? HOLD_TIME : 0);
      this.#schedule(hasMore ? 0 : POLL_PAUSE);
    } catch (error) {
      this.#fail(error);
      this.#schedule(this.#pauseAfterFailure());
    }
  }

  #pauseAfterFailure(): Milliseconds {
    if (this.#state === "refused") return REFUSED_PAUSE;
    const { clock, random } = this.#options;
    const pause = Math.min(RETRY_MAX, RETRY_MIN * 2 ** Math.min(10, this.#failures - 1));
    const chance = random.below(RETRY_MAX) / RETRY_MAX;
    const within = (longest: Milliseconds) => (longest / 2) * (1 + chance);
    if (pause > RETRY_MAX_ASKED) this.#retryIfAsked = clock.monotonic() + within(RETRY_MAX_ASKED);
    return within(pause);
  }

  /** Asks once, and applies the answer. Returns whether there are further changes. */
  async #ask(wait: Milliseconds): Promise<boolean> {
    const { clock, home, tagKey, status } = this.#options;
    const sentAt = { monotonic: clock.monotonic(), wall: clock.now() };
    const position = this.#position;
    const deadline = startTimeout(clock, wait + ANSWER_TIME_MAX);
    const late = deadline.expired.then(() => {
      throw new HomeUnavailable("Home has not answered for a second");
    });
    try {
      const question = { tagKey, wait, edge: status(), ...(position !== undefined && { position }) };
      const answer = await Promise.race([home.listChanges(question), late]);
      return this.#apply(answer, sentAt, position === undefined);
    } catch (error) {
      if (error instanceof PositionUnreadable && position === this.#position) this.#position = undefined;
      throw error;
    } finally {
      deadline.cancel();
    }
  }

  /** @param isFirst whether the question had no position: changes before that of the answer are not known. */
  #apply(answer: ChangesAnswer, sentAt: Moment, isFirst: boolean): boolean {
    const { generations } = this.#options;
    if (answer.isLost || isFirst) generations.bumpAll();
    else if (answer.tags.length > 0) generations.bumpKeyed(answer.tags);
    // Two questions can be under way. What the later one has learned must stay.
    if (sentAt.monotonic < this.#appliedSentAt) return false;
    const { workspaceId, allowsAnonymous } = answer;
    this.#appliedSentAt = sentAt.monotonic;
    this.#position = answer.position;
    this.#settings = { workspaceId, allowsAnonymous };
    if (!answer.hasMore) {
      const age = Math.max(answer.age, sentAt.monotonic - this.#options.clock.monotonic());
      this.#readAt = { monotonic: sentAt.monotonic - age, wall: instantAt(sentAt.wall - age) };
    }
    this.#failures = 0;
    this.#setState("current");
    return answer.hasMore;
  }

  #fail(error: unknown): void {
    // The question under way ends with the connections.
    if (this.#closed) return;
    this.#failures++;
    if (error instanceof ReplicaRefused) {
      if (this.#state !== "refused") this.#options.generations.bumpAll();
      this.#setState("refused", error);
    } else if (this.#state !== "refused") this.#setState("unreachable", error);
  }

  #setState(state: StreamState, cause?: unknown): void {
    const isUnsupported = cause instanceof OperationUnknown;
    if (this.#state === state && (this.#isUnsupported || !isUnsupported)) return;
    this.#state = state;
    this.#isUnsupported = isUnsupported;
    this.#options.onState(state, cause);
  }
}
