import type { Clock } from "../clock/clock.ts";
import { covers } from "../credits/locked-balance.ts";
import type { CallDirectories } from "../directory/directories.ts";
import type { KeyRecord } from "../directory/records.ts";
import type { Limiter } from "../limits/limiter.ts";
import { codeOfCharge, codeOfState, codeOfVisibility, hasFailed, type Trace } from "./checks.ts";
import { decideConcurrency, storedSlotUse } from "./concurrency.ts";
import {
  balanceAt,
  budgetsAt,
  type DecidedKey,
  derivedAt,
  type ExplainedRecord,
  explainKey,
  explainMissing,
  listedPermissions,
  type VerificationExplanation,
} from "./explanation.ts";
import { KeyLookup } from "./key-lookup.ts";
import { KeyWatch } from "./key-watch.ts";
import { chargeOf, readingOf, selectLimits, usedIn } from "./limits.ts";
import { excessiveHold, missingHold, mixedUnits, unknownLimit } from "./mistakes.ts";
import { PermissionQueries } from "./queries.ts";
import { readUntilCurrent } from "./read-again.ts";
import { COST_DEFAULT, type KeyPlace, type VerificationMistake, type VerificationRequest } from "./request.ts";
import type { KeyOrigins, KeyOriginsQuestion } from "./stored.ts";

/** Explains verifications by the caches and the counters of this node. */
export class Explainer {
  readonly #directories: CallDirectories;
  readonly #limiter: Pick<Limiter, "peek">;
  readonly #lookup: KeyLookup;
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #watch: KeyWatch;
  readonly #queries = new PermissionQueries();

  constructor(clock: Pick<Clock, "now" | "monotonic">, directories: CallDirectories, limiter: Pick<Limiter, "peek">) {
    this.#clock = clock;
    this.#watch = new KeyWatch(clock, directories);
    this.#directories = directories;
    this.#limiter = limiter;
    this.#lookup = new KeyLookup(directories);
  }

  /**
   * How a verification would be answered now, and why. It runs the steps of a verification, but charges nothing and
   * records nothing. A key whose API the caller may not read looks missing. A key that changed meanwhile is explained again.
   *
   * @param stored where the key is stored, if the caller gave its id; otherwise it is looked up by its string.
   */
  async explain(
    request: VerificationRequest,
    stored: KeyPlace | undefined,
    readOrigins: (question: KeyOriginsQuestion) => Promise<KeyOrigins>,
  ): Promise<VerificationExplanation | VerificationMistake> {
    const asked = { ...request, now: this.#clock.now(), startedAt: this.#clock.monotonic() };
    return readUntilCurrent(this.#clock, asked, (current) => this.#explain(current, stored, readOrigins));
  }

  /** Undefined: the key has changed meanwhile. */
  async #explain(
    request: VerificationRequest,
    stored: KeyPlace | undefined,
    readOrigins: (question: KeyOriginsQuestion) => Promise<KeyOrigins>,
  ): Promise<VerificationExplanation | VerificationMistake | undefined> {
    await this.#lookup.requireCurrent(request);
    const generation = this.#watch.generation();
    const record: ExplainedRecord = { source: "cache", currentAt: this.#directories.changes.readAt.wall };
    const onRead = () => {
      record.source = "database";
    };
    const cached = stored ? undefined : this.#lookup.findCached(request);
    const found = stored
      ? await this.#lookup.findAt(stored, request, onRead)
      : cached === undefined
        ? await this.#lookup.find(request, onRead)
        : cached;
    if (found !== null && "kind" in found) return found;
    if (found === null || !request.principal!.may(`apis.${found.apiId}.read_key`)) {
      return explainMissing(stored ? undefined : request.key, request.now);
    }
    if (record.source === "database") record.currentAt = request.now;
    const explained = await this.#explainKey(found, request, { isById: stored !== undefined, record, readOrigins });
    return this.#watch.isCurrentSince(generation, found, request) ? explained : undefined;
  }

  async #explainKey(
    key: KeyRecord,
    request: VerificationRequest,
    {
      readOrigins,
      ...found
    }: Pick<DecidedKey, "isById" | "record"> & {
      readOrigins: (question: KeyOriginsQuestion) => Promise<KeyOrigins>;
    },
  ): Promise<VerificationExplanation | VerificationMistake> {
    const trace: Trace = [{ step: "lookup", code: "NOT_FOUND", isFailed: false }];
    codeOfVisibility(key, request, trace);
    if (hasFailed(trace)) return explainKey({ key, request, trace, ...found });
    const query = request.permissions === undefined ? undefined : this.#queries.parse(request.permissions);
    if (query && query.kind !== "query") return { kind: "query_unreadable", message: query.message };
    codeOfState(key, request, query, trace);
    const requested = selectLimits(key, request.ratelimits);
    // Verifications that fail earlier do not look at their limits.
    if (requested && "unknown" in requested && !hasFailed(trace)) return unknownLimit(key, requested.unknown);
    const selected = requested && "unknown" in requested ? undefined : requested;
    const mistake = hasFailed(trace)
      ? undefined
      : (missingHold(key, request) ?? mixedUnits(key, request) ?? excessiveHold(selected, request));
    if (mistake) return mistake;
    const others = key.limits.filter((limit) => !selected?.limits.includes(limit));
    const readings = [...(selected?.charges ?? []), ...others.map((limit) => chargeOf(limit, key))].map(readingOf);
    const { poolId, workspaceId } = key;
    const { keyId } = key.top;
    const budgetIds = [...key.budgets.map(({ budgetId }) => budgetId), ...(key.derivation?.balanceIds ?? [])];
    const slotIds = key.concurrency.map(({ balanceId }) => balanceId);
    const [decided, read, origins] = await Promise.all([
      selected && this.#limiter.peek(selected.charges),
      readings.length > 0 ? this.#limiter.peek(readings) : undefined,
      readOrigins({
        workspaceId,
        keyId,
        poolId,
        budgetIds,
        slotIds,
        slugs: listedPermissions(key, query),
        now: request.now,
      }),
    ]);
    const balance = balanceAt(key, origins, request.now);
    const cost = request.credits?.cost ?? COST_DEFAULT;
    const budgets = budgetsAt(key, origins, cost, request.now);
    const derived = derivedAt(key, origins);
    const isCovered =
      covers(balance?.remaining, cost) &&
      budgets.every(({ exceeded }) => !exceeded) &&
      derived.every(({ credits }) => covers(credits?.remaining, cost));
    const concurrency = decideConcurrency(key, storedSlotUse(origins.slots));
    codeOfCharge({ areSlotsFree: !concurrency.exceeded, limits: decided, isCovered }, trace);
    const counted = [...(selected?.limits ?? []), ...others].map((limit, i) => {
      const state = read!.limits[i]!;
      return { limit, used: usedIn(state), reset: state.reset };
    });
    return explainKey({
      key,
      request,
      trace,
      ...found,
      decision: { query, selected, decided, counted, origins, balance, budgets, concurrency, derived, cost },
    });
  }
}
