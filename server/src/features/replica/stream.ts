import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import { pause } from "../../../../engine/src/clock/pause.ts";
import type { ChangesFeed } from "../../../../engine/src/directory/changes-feed.ts";
import type { ChangesFollower } from "../../../../engine/src/directory/changes-follower.ts";
import { FairQueue } from "../../platform/rpc/fair-queue.ts";
import { Problem } from "../../platform/rpc/problems.ts";

/**
 * Edges that are told to invalidate everything. Each asks for its records then, so a slot stays taken for a moment after the
 * answer. Hence the bound of a line: an edge waits for a second, and its records are valid for as long.
 */
const LOST = { runningMax: 2, runningPerWorkspaceMax: 2, waitingPerWorkspaceMax: 1_000 };
const LOST_PAUSE: Milliseconds = 1;

/** What an edge asks for. */
export interface ChangesQuestion {
  readonly workspaceId: string;
  readonly position: string | undefined;
  /** How long the answer may wait for a change. */
  readonly wait: Milliseconds;
  /** When the question arrived, by the monotonic clock. */
  readonly arrivedAt: Milliseconds;
}

export interface ChangesAnswer {
  readonly position: string;
  /** The time from the last read of `changes` to the arrival of the question; negative if it was read after that. */
  readonly age: Milliseconds;
  readonly isLost: boolean;
  readonly tags: readonly string[];
  readonly hasMore: boolean;
}

export interface ReplicaStreamParts {
  clock: Clock;
  feed: ChangesFeed;
  follower: Pick<ChangesFollower, "attend" | "catchUp" | "isCurrent" | "readAt">;
}

/** Answers what edges ask about changes, and keeps a node that lags from answering anything. */
export class ReplicaStream {
  readonly #parts: ReplicaStreamParts;
  readonly #lost = new FairQueue(LOST);

  constructor(parts: ReplicaStreamParts) {
    this.#parts = parts;
  }

  /**
   * Waits until this node is current and has read everything that the position has. Returns whether it knows the position.
   *
   * @throws {Problem} if it cannot become current in a short time, whatever it may serve to other callers.
   */
  async reach(position: string | undefined): Promise<boolean> {
    const { feed } = this.#parts;
    const hasRead = await this.#requireCurrent();
    if (position === undefined) return false;
    const state = feed.compare(position, hasRead);
    if (state === "held") return true;
    // The position of another server can be newer than all that this node knows.
    if (!hasRead) await this.#read();
    return feed.compare(position, true) === "held";
  }

  /** The changes after a position, as soon as there are some. */
  async follow(question: ChangesQuestion): Promise<ChangesAnswer> {
    const { feed, follower } = this.#parts;
    const { workspaceId, position, wait } = question;
    follower.attend();
    const isKnown = await this.reach(position);
    if (position === undefined || !isKnown) return this.#startAgain(question);
    const found = feed.take(position, workspaceId);
    if (found.tags.length > 0 || wait === 0) return { ...found, isLost: false, age: this.#age(question) };
    await feed.wait(workspaceId, wait);
    await this.#requireCurrent();
    // Everything may have been lost meanwhile.
    if (feed.compare(position, true) !== "held") return this.#startAgain(question);
    return { ...feed.take(position, workspaceId), isLost: false, age: this.#age(question) };
  }

  /** The answer to an edge that must invalidate everything. One without a position has nothing yet. */
  async #startAgain(question: ChangesQuestion): Promise<ChangesAnswer> {
    const isLost = question.position !== undefined;
    if (isLost) await this.#waitForTurn(question.workspaceId);
    const position = this.#parts.feed.present();
    return { position, age: this.#age(question), isLost, tags: [], hasMore: false };
  }

  /**
   * After a restart or an outage every edge has lost its position. They are told one after another, so that direct callers do
   * not wait behind the questions of all of them.
   */
  async #waitForTurn(workspaceId: string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const answerAndPause = () => {
        resolve();
        return pause(this.#parts.clock, LOST_PAUSE);
      };
      this.#lost.run(workspaceId, answerAndPause).catch(reject);
    });
    await this.#requireCurrent();
  }

  #age({ arrivedAt }: ChangesQuestion): Milliseconds {
    return Math.ceil(arrivedAt - this.#parts.follower.readAt.monotonic);
  }

  /** Returns whether that needed a read. */
  async #requireCurrent(): Promise<boolean> {
    const { clock, follower } = this.#parts;
    if (follower.isCurrent(clock.now(), clock.monotonic())) return false;
    await this.#read();
    return true;
  }

  async #read(): Promise<void> {
    if (!(await this.#parts.follower.catchUp())) throw notCurrent();
  }
}

function notCurrent(): Problem {
  return new Problem("service_unavailable", "This node is not current: it cannot read what changed. Ask another one.", {
    headers: { "retry-after": "1" },
  });
}
