import type { Clock, Milliseconds } from "../../../../engine/src/clock/clock.ts";
import type { CallDirectories } from "../../../../engine/src/directory/directories.ts";
import { NegativeCache } from "../../../../engine/src/directory/negative-cache.ts";
import { Overloaded } from "../../../../engine/src/errors/overloaded.ts";
import type { UpstreamQuestion } from "../../../../engine/src/verification/unknown-keys.ts";
import { Histograms } from "../../metrics/histogram.ts";
import { OutboundFailure } from "../../platform/outbound/exchange.ts";

/** An HTTP endpoint that knows the keys of an API which are not here yet. */
export interface UpstreamVerifier {
  url: string;
  /** Headers of each question, such as `Authorization`. */
  headers: readonly { name: string; value: string }[];
  timeout: Milliseconds;
  /** The answer to a verification whose question gets none: 503, or NOT_FOUND. */
  onOutage: "unavailable" | "not_found";
}

/** What an upstream verifier says of a key. `attributes` are those that the key gets here. */
export type UpstreamAnswer<Attributes> = { valid: false } | { valid: true; attributes: Attributes };

export interface UpstreamsOptions<Attributes> {
  clock: Clock;
  directories: Pick<CallDirectories, "generations" | "keyLookups">;
  /** Rejects if the workspace has its maximum number of keys. */
  requireCapacity(workspaceId: string): Promise<void>;
  /** The verifier of an API; null: it has none. */
  find(apiId: string, workspaceId: string): Promise<UpstreamVerifier | null>;
  /** Asks for a workspace. Rejects unless the answer has the documented form. */
  send(
    verifier: UpstreamVerifier,
    question: { key: string; apiId: string },
    workspaceId: string,
  ): Promise<UpstreamAnswer<Attributes>>;
  /**
   * Creates the key, unless it exists, and invalidates what is cached of it. False if it was deleted here and stays dead,
   * or the API has no verifier any more.
   *
   * @throws {UnusableAnswer}
   */
  create(key: { key: string; workspaceId: string; apiId: string; attributes: Attributes }): Promise<boolean>;
  /** Reports that questions get no answer. Called for the first of several. */
  onOutage(apiId: string, cause: unknown): void;
}

/** Memory of the keys that a verifier did not know. */
const REFUSED_BYTES_MAX = 1024 * 1024;

/** Questions without an answer, one after the other, after which none is asked for a while. */
const FAILURES_MAX = 3;
const REST: Milliseconds = 1_000;

/** APIs whose failures are counted. Beyond it, the count begins again. */
const APIS_MAX = 10_000;

/** An upstream verifier does not answer, so that nobody knows whether the key is valid. */
export class UpstreamUnavailable extends Overloaded {
  constructor() {
    super("The key is unknown here, and the upstream verifier of its API does not answer");
    this.name = "UpstreamUnavailable";
  }
}

/** The key that an upstream verifier knows cannot be created, such as for the policy of its API. The message says why. */
export class UnusableAnswer extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "UnusableAnswer";
  }
}

interface Failures {
  count: number;
  /** Monotonic time before which no question is asked. */
  restsUntil: Milliseconds;
}

/**
 * Asks upstream verifiers about keys that are unknown here, and creates those that they know. Concurrent questions about a
 * key are one. A refusal is cached for 30 seconds, or until the settings of the API change.
 *
 * Each question counts against the look-up rate limit unless the key exists. After three failures in a row, a verifier is
 * not asked for a second, so that calls do not wait for one that is down.
 */
export class Upstreams<Attributes = unknown> {
  /**
   * Questions by outcome, for the metrics. `failed` got no answer; `skipped` were not sent, because the verifier rests or this
   * node has too many open questions.
   */
  readonly questions = { valid: 0, invalid: 0, failed: 0, skipped: 0 };
  /** How long questions took that were sent, as one series. */
  readonly durations = new Histograms(1);
  readonly #options: UpstreamsOptions<Attributes>;
  readonly #refused: NegativeCache;
  readonly #pending = new Map<string, Promise<boolean>>();
  readonly #failures = new Map<string, Failures>();

  constructor(options: UpstreamsOptions<Attributes>) {
    this.#options = options;
    const { clock, directories } = options;
    this.#refused = new NegativeCache({ clock, generations: directories.generations, bytesMax: REFUSED_BYTES_MAX });
  }

  /**
   * Whether the key exists now. At once if every verifier has refused it already.
   *
   * @throws {UpstreamUnavailable} if no verifier knows the key, and one of those that must be asked does not answer.
   * @throws {LookupsExhausted}
   */
  ask(question: UpstreamQuestion): boolean | Promise<boolean> {
    const asked = question.apiIds.filter((apiId) => !this.#refused.has(nameOf(apiId, question)));
    return asked.length > 0 && this.#askAll(asked, question);
  }

  async #askAll(apiIds: readonly string[], question: UpstreamQuestion): Promise<boolean> {
    let outage: UpstreamUnavailable | undefined;
    for (const apiId of apiIds) {
      try {
        if (await this.#askOnce(apiId, question)) return true;
      } catch (error) {
        if (!(error instanceof UpstreamUnavailable)) throw error;
        outage = error;
      }
    }
    if (outage) throw outage;
    return false;
  }

  #askOnce(apiId: string, question: UpstreamQuestion): Promise<boolean> {
    const name = nameOf(apiId, question);
    let pending = this.#pending.get(name);
    if (!pending) {
      pending = this.#askWithinBudget(apiId, question).finally(() => this.#pending.delete(name));
      this.#pending.set(name, pending);
    }
    return pending;
  }

  async #askWithinBudget(apiId: string, question: UpstreamQuestion): Promise<boolean> {
    const { keyLookups } = this.#options.directories;
    return (await keyLookups.spend(question.source, async () => (await this.#ask(apiId, question)) || null)) ?? false;
  }

  async #ask(apiId: string, { key, location, workspaceId }: UpstreamQuestion): Promise<boolean> {
    const { directories, requireCapacity, find, create } = this.#options;
    const { generations } = directories;
    await requireCapacity(workspaceId);
    const generation = generations.newest();
    const verifier = await find(apiId, workspaceId);
    if (verifier === null) return false;
    const answer = await this.#send(verifier, { key, apiId }, workspaceId);
    if (answer === undefined) {
      if (verifier.onOutage === "unavailable") throw new UpstreamUnavailable();
      return false;
    }
    try {
      if (answer.valid && (await create({ key, workspaceId, apiId, attributes: answer.attributes }))) return true;
    } catch (error) {
      if (!(error instanceof UnusableAnswer)) throw error;
      this.#options.onOutage(apiId, error);
      if (verifier.onOutage === "unavailable") throw new UpstreamUnavailable();
      return false;
    }
    this.#refused.add(nameOf(apiId, { location }), generation, [generations.slot(apiId)]);
    return false;
  }

  /** The answer of a verifier; undefined if it gives none, or rests. */
  async #send(verifier: UpstreamVerifier, question: { key: string; apiId: string }, workspaceId: string) {
    const { clock, send, onOutage } = this.#options;
    const { apiId } = question;
    const failures = this.#failuresOf(apiId);
    const sentAt = clock.monotonic();
    if (sentAt < failures.restsUntil) {
      this.questions.skipped++;
      return undefined;
    }
    try {
      const answer = await send(verifier, question, workspaceId);
      this.#record(answer.valid ? "valid" : "invalid", sentAt);
      failures.count = 0;
      return answer;
    } catch (error) {
      onOutage(apiId, error);
      // Too many questions of this node are no failure of the verifier.
      if (error instanceof OutboundFailure && error.reason === "busy") {
        this.questions.skipped++;
        return undefined;
      }
      this.#record("failed", sentAt);
      failures.count++;
      if (failures.count >= FAILURES_MAX) failures.restsUntil = clock.monotonic() + REST;
      return undefined;
    }
  }

  #record(outcome: "valid" | "invalid" | "failed", sentAt: Milliseconds): void {
    this.questions[outcome]++;
    this.durations.observe(0, this.#options.clock.monotonic() - sentAt);
  }

  #failuresOf(apiId: string): Failures {
    let failures = this.#failures.get(apiId);
    if (!failures) {
      if (this.#failures.size >= APIS_MAX) this.#failures.clear();
      failures = { count: 0, restsUntil: 0 };
      this.#failures.set(apiId, failures);
    }
    return failures;
  }
}

function nameOf(apiId: string, { location }: Pick<UpstreamQuestion, "location">): string {
  return `${apiId} ${location}`;
}
