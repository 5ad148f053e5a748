import type { Clock, Instant, Milliseconds } from "../clock/clock.ts";
import type { BalanceReader, ReadBalance } from "../credits/balance-reader.ts";
import type { HoldRequest } from "../credits/hold.ts";
import type { Ledger } from "../credits/ledger.ts";
import type { Spent } from "../credits/spend.ts";
import { hashSecret } from "../crypto/hash.ts";
import type { CallDirectories } from "../directory/directories.ts";
import { PlannedKey } from "../directory/planned-key.ts";
import type { KeyRecord } from "../directory/records.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { Charge, LimitDecision } from "../limits/counters.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { Replay, ReplayableCall } from "../limits/replay-store.ts";
import { newTimedId, type Random } from "../random/random.ts";
import { startOf, startOfToken } from "../rules/imported-keys.ts";
import type { AnswerForm, ChargedLimits } from "./answers.ts";
import { type BalancesLeft, balancesOf, balancesText, hasBalances } from "./balances.ts";
import { codeOfCharge, codeOfState, codeOfVisibility } from "./checks.ts";
import { concurrencyText, decideConcurrency, slotsOf, slotUseOf } from "./concurrency.ts";
import type { DecisionRecorder } from "./event.ts";
import { FirstUseWriter } from "./first-uses.ts";
import { KeyLookup, type SoughtKey, tooStale } from "./key-lookup.ts";
import { KeyWatch } from "./key-watch.ts";
import { exceededLimit, limitsText, type SelectedLimits, selectLimits, waitText } from "./limits.ts";
import { excessiveHold, missingHold, mixedUnits, unknownLimit } from "./mistakes.ts";
import { PermissionQueries } from "./queries.ts";
import {
  COST_DEFAULT,
  isMistake,
  type KeyPlace,
  type SoughtHash,
  type VerificationAnswer,
  type VerificationCode,
  type VerificationRequest,
  verificationCodes,
} from "./request.ts";
import type { SingleCalls } from "./single-calls.ts";
import type { ImportedKeyUse } from "./stored.ts";
import { UnknownKeys, type UpstreamVerifiers } from "./unknown-keys.ts";

/** For how long a call is decided again because its key or its caller changed while it waited for its charge. */
const DECISION_TIME_MAX: Milliseconds = 5_000;

/** The parts that a verification uses. */
export interface VerificationParts<Answer> {
  form: AnswerForm<Answer>;
  clock: Clock;
  directories: CallDirectories;
  limiter: Limiter;
  ledger: Pick<Ledger<readonly Charge[], LimitDecision>, "spend">;
  balances: Pick<BalanceReader, "read">;
  /** Bounds the open holds of a key. `add` rejects if there is no room for another one. */
  openHolds: { add(key: KeyRecord): void | Promise<void>; remove(key: KeyRecord): void };
  /** For the ids of holds. */
  random: Random;
  /** Makes calls with an Idempotency-Key once. */
  singleCalls: Pick<SingleCalls, "chargeOnce" | "spendOnce" | "find">;
  /** Asks other systems about keys that are unknown here. */
  upstreams: UpstreamVerifiers;
  /** Counts every answer for the analytics; null without analytics. */
  recorder: Pick<DecisionRecorder, "verification"> | null;
  /**
   * Makes the balances, budgets and slots that the plans of a key give and that do not exist yet. Returns the ids of those that exist
   * then.
   */
  prepareBalances(key: {
    workspaceId: string;
    keyId: string;
    poolId: string;
    identityId: string | null;
  }): Promise<readonly string[]>;
  /** Stores the first uses of imported keys, and invalidates the cached keys. */
  recordFirstUses(uses: readonly ImportedKeyUse[]): Promise<void>;
}

/**
 * Verifies keys. A cached key without credits and budgets is verified in memory; otherwise the database is queried.
 *
 * Steps: look up the key (`KeyLookup`), check it in the order of the API contract (`#decide`), charge its limits
 * (`#chargeOnce`) or its limits and credits together (`#spend`), and build the answer (`#answer`).
 */
export class Verification<Answer = string> {
  readonly #form: AnswerForm<Answer>;
  readonly #clock: Clock;
  readonly #directories: CallDirectories;
  readonly #limiter: Limiter;
  readonly #ledger: VerificationParts<Answer>["ledger"];
  readonly #balances: VerificationParts<Answer>["balances"];
  readonly #openHolds: VerificationParts<Answer>["openHolds"];
  readonly #random: Random;
  readonly #singleCalls: VerificationParts<Answer>["singleCalls"];
  readonly #lookup: KeyLookup;
  readonly #unknownKeys: UnknownKeys;
  readonly #recorder: Pick<DecisionRecorder, "verification"> | null;
  readonly #firstUses: FirstUseWriter;
  readonly #prepare: VerificationParts<Answer>["prepareBalances"];
  readonly #queries = new PermissionQueries();
  readonly #watch: KeyWatch;
  /** Answers by code, for the metrics. */
  readonly counts = Object.fromEntries(verificationCodes.map((code) => [code, 0])) as Record<VerificationCode, number>;

  constructor({
    form,
    clock,
    directories,
    limiter,
    ledger,
    balances,
    openHolds,
    random,
    singleCalls,
    upstreams,
    recorder,
    prepareBalances,
    recordFirstUses,
  }: VerificationParts<Answer>) {
    this.#form = form;
    this.#clock = clock;
    this.#directories = directories;
    this.#limiter = limiter;
    this.#ledger = ledger;
    this.#balances = balances;
    this.#openHolds = openHolds;
    this.#random = random;
    this.#singleCalls = singleCalls;
    this.#lookup = new KeyLookup(directories);
    this.#watch = new KeyWatch(clock, directories);
    this.#unknownKeys = new UnknownKeys(this.#lookup, upstreams);
    this.#recorder = recorder;
    this.#prepare = prepareBalances;
    this.#firstUses = new FirstUseWriter(clock, recordFirstUses);
  }

  /** Answers synchronously if all records are cached, else after a look-up. Rejects if the look-up fails. */
  verify(
    request: VerificationRequest,
    monotonic = request.startedAt,
  ): VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>> {
    const mayServe = this.#directories.changes.mayServe(request.now, monotonic);
    if (mayServe !== true) return this.#verifyLate(mayServe, request);
    return this.#verify(request);
  }

  /**
   * The key, if a verification of it could be valid at this moment and from this address; null otherwise. Limits, credits and
   * slots are neither charged nor read. It counts as a verification that costs nothing, so a refusal has its reason there.
   *
   * @param sought what identifies the key besides its string, or instead of it.
   */
  async inspect(
    request: VerificationRequest,
    sought: SoughtKey = {},
    monotonic = request.startedAt,
  ): Promise<KeyRecord | null> {
    await this.#lookup.requireCurrent({ now: request.now, startedAt: monotonic });
    const generation = this.#watch.generation();
    const found = await this.#find(request, sought.place);
    if (found && !this.#watch.isCurrentSince(generation, found, request)) {
      return this.inspect(await this.#renewed(request), sought, this.#clock.monotonic());
    }
    if (found === null) {
      if (sought.place !== undefined || !(await this.#unknownKeys.ask(request))) return this.#notInspected(request);
      const now = this.#clock.now();
      const principal = request.principal && (await request.principal.renew(now));
      const startedAt = this.#clock.monotonic();
      return this.inspect({ ...request, now, principal, startedAt, isKnownUpstream: true }, sought);
    }
    const { keyId = found.keyId } = sought;
    if (keyId !== found.keyId || codeOfVisibility(found, request) !== undefined)
      return this.#notInspected(request, found);
    const code = codeOfState(found, request, undefined) ?? "VALID";
    this.#record(found, code, request, 0);
    if (code !== "VALID") return null;
    if (found.isUnused && sought.place === undefined) {
      if (found.isTokenPending) await this.#recordToken(found, request);
      else this.#recordStart(found, request);
    }
    return found;
  }

  /** Returns a check that a key of `inspect` has not changed since this call. */
  watch(key: KeyRecord, request: VerificationRequest): (now: Instant) => boolean {
    return this.#watch.watch(key, request);
  }

  async #find(request: VerificationRequest, place: KeyPlace | undefined): Promise<KeyRecord | null> {
    if (place !== undefined) return this.#lookup.findAt(place, request);
    const cached = this.#lookup.findCached(request);
    const found = cached === undefined ? await this.#lookup.find(request) : cached;
    return found === null || "kind" in found ? null : found;
  }

  #notInspected(request: VerificationRequest, key: KeyRecord | null = null): null {
    this.#notFound(request, key);
    return null;
  }

  #verify(request: VerificationRequest): VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>> {
    if (request.sought !== undefined) return this.#verifySought(request, request.sought);
    const cached = this.#lookup.findCached(request);
    if (cached === undefined) return this.#verifyUncached(request);
    return cached === null ? this.#unknown(request) : this.#decide(cached, request);
  }

  async #verifyUncached(request: VerificationRequest): Promise<VerificationAnswer<Answer>> {
    const generation = this.#watch.generation();
    const found = await this.#lookup.find(request);
    if (found === null) return this.#unknown(request);
    return "kind" in found ? found : this.#decideFound(found, request, generation);
  }

  /** Verifies a key by its hash. No upstream verifier is asked: it would need the string. */
  async #verifySought(request: VerificationRequest, sought: SoughtHash): Promise<VerificationAnswer<Answer>> {
    const generation = this.#watch.generation();
    const found = await this.#lookup.findSought(sought, request.workspaceId);
    return found === null ? this.#notFound(request) : this.#decideFound(found, request, generation);
  }

  /** Decides after a look-up that began at this generation. */
  #decideFound(
    key: KeyRecord,
    request: VerificationRequest,
    generation: number,
  ): VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>> {
    return this.#watch.isCurrentSince(generation, key, request) ? this.#decide(key, request) : this.#retry(request);
  }

  /** Verifies on a node whose caches are not current: see the states of `ChangesFollower`. */
  async #verifyLate(
    mayServe: false | Promise<boolean>,
    request: VerificationRequest,
  ): Promise<VerificationAnswer<Answer>> {
    if (!(await mayServe)) throw tooStale();
    return this.#verify(request);
  }

  /** A key that does not exist here. The upstream verifiers of the workspace may know it. */
  #unknown(request: VerificationRequest): VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>> {
    const isKnown = this.#unknownKeys.ask(request);
    return isKnown instanceof Promise
      ? isKnown.then((settled) => (settled ? this.#verifyCreated(request) : this.#notFound(request)))
      : this.#notFound(request);
  }

  /** Verifies a key that was created during the call. */
  async #verifyCreated(request: VerificationRequest): Promise<VerificationAnswer<Answer>> {
    const now = this.#clock.now();
    const principal = request.principal && (await request.principal.renew(now));
    return this.verify({ ...request, now, principal, isKnownUpstream: true }, this.#clock.monotonic());
  }

  /** The answer NOT_FOUND. A key that exists but must look missing is given, so that the attempt counts for its owner. */
  #notFound(request: VerificationRequest, key: KeyRecord | null = null): Answer {
    this.#record(key, "NOT_FOUND", request, 0);
    return this.#form.notFound();
  }

  #record(
    key: KeyRecord | null,
    code: VerificationCode,
    request: VerificationRequest,
    creditsSpent: number,
    limit: string | undefined = undefined,
  ): void {
    this.counts[code]++;
    const { now, startedAt, workspaceId, tags, credits, address, requestId } = request;
    this.#recorder?.verification({
      at: now,
      startedAt,
      workspaceId,
      key: key?.top ?? null,
      code,
      tags,
      creditsSpent,
      cost: credits?.cost,
      limit,
      address,
      requestId,
    });
  }

  #decide(
    key: KeyRecord,
    request: VerificationRequest,
  ): VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>> {
    const answer = this.#check(key, request);
    // The first use is recorded with the string.
    if (!key.isUnused || request.sought !== undefined) return answer;
    if (key.isTokenPending || answer instanceof Promise) return this.#recordUse(key, request, answer);
    if (this.#isValid(answer)) this.#recordStart(key, request);
    return answer;
  }

  async #recordUse(
    key: KeyRecord,
    request: VerificationRequest,
    answer: VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>>,
  ): Promise<VerificationAnswer<Answer>> {
    const settled = await answer;
    if (!this.#isValid(settled)) return settled;
    if (key.isTokenPending) await this.#recordToken(key, request);
    else this.#recordStart(key, request);
    return settled;
  }

  /**
   * Stores the start of an imported key, whose string is available for the first time. Nothing that is cached contains it,
   * so the answer does not wait, and no record is outdated. A use that cannot be written is recorded again by the next one.
   */
  #recordStart(key: KeyRecord, { key: secret }: VerificationRequest): void {
    if (!key.isUnused) return;
    const undo = key.markUsed();
    void this.#firstUses.record({ keyId: key.keyId, start: startOf(secret), hash: null }).then((isWritten) => {
      if (!isWritten) undo();
    });
  }

  /** Stores the start and the hash of a key that was imported with the hash of a part: later look-ups find it by its own. */
  async #recordToken(key: KeyRecord, { key: secret }: VerificationRequest): Promise<void> {
    // The answer does not wait for an unreachable database: the next verification records the first use again.
    if (!this.#directories.changes.reachable) return;
    const use = { keyId: key.keyId, start: startOfToken(secret), hash: hashSecret(secret) };
    await this.#firstUses.record(use, true);
  }

  #check(
    key: KeyRecord,
    request: VerificationRequest,
  ): VerificationAnswer<Answer> | Promise<VerificationAnswer<Answer>> {
    if (codeOfVisibility(key, request) !== undefined) return this.#notFound(request, key);

    // An invalid query is an error in the request, independently of the state of the key.
    const query = request.permissions === undefined ? undefined : this.#queries.parse(request.permissions);
    if (query && query.kind !== "query") return { kind: "query_unreadable", message: query.message };

    const rejection = codeOfState(key, request, query);
    if (rejection)
      return hasBalances(key) ? this.#withBalances(key, rejection, request) : this.#answer(key, rejection, request);

    const { charged } = request;
    if (charged) return this.#answerLimited(key, charged.selected, charged.decided, request);
    const selected = selectLimits(key, request.ratelimits);
    if (selected && "unknown" in selected) return unknownLimit(key, selected.unknown);
    const withoutHold = missingHold(key, request);
    if (withoutHold) return withoutHold;
    if (hasBalances(key) || request.hold) {
      const mistake = mixedUnits(key, request) ?? excessiveHold(selected, request);
      return mistake ?? this.#spend(key, selected, request);
    }
    if (!selected) return request.idempotent ? this.#answerFree(key, request) : this.#answer(key, "VALID", request);
    const decided = request.idempotent
      ? this.#chargeOnce(selected, request.idempotent)
      : this.#limiter.charge(selected.charges);
    return decided instanceof Promise
      ? this.#answerLate(key, selected, decided, request)
      : this.#answerLimited(key, selected, decided, request);
  }

  /** Answers after a wait for Redis or for an earlier call. */
  async #answerLate(
    key: KeyRecord,
    selected: SelectedLimits,
    deciding: Promise<LimitDecision | Replay>,
    request: VerificationRequest,
  ): Promise<VerificationAnswer<Answer>> {
    const isCurrent = this.#watch.watch(key, request);
    const decided = await deciding;
    return isCurrent(this.#clock.now())
      ? this.#answerLimited(key, selected, decided, request)
      : this.#retry({ ...request, charged: { selected, decided } });
  }

  /** Charges the limits of an idempotent call, unless it repeats a call that was already charged. */
  #chargeOnce(selected: SelectedLimits, call: ReplayableCall): Promise<LimitDecision | Replay> {
    return this.#singleCalls.chargeOnce(
      call,
      () => this.#limiter.charge(selected.charges),
      (decided) =>
        decided.allowed
          ? {
              text: limitsText(selected, decided),
              windowMax: Math.max(...selected.charges.map(({ duration }) => duration)),
            }
          : undefined,
    );
  }

  #answerLimited(
    key: KeyRecord,
    selected: SelectedLimits,
    decided: LimitDecision | Replay,
    request: VerificationRequest,
  ): VerificationAnswer<Answer> {
    if ("replay" in decided) return this.#answerReplay(key, decided, request);
    this.#reportExceeded(key, selected, decided);
    const code = codeOfCharge({ limits: decided }) ?? "VALID";
    return this.#answer(key, code, request, { selected, decided }, 0, exceededLimit(selected, decided));
  }

  #reportExceeded(key: KeyRecord, selected: SelectedLimits | undefined, decided: LimitDecision | undefined): void {
    if (selected === undefined || decided === undefined) return;
    this.#limiter.exceeded.add(key.workspaceId, selected.charges, decided, key.top);
  }

  /** A valid key that has nothing to charge. Its Idempotency-Key can belong to another call. */
  async #answerFree(key: KeyRecord, request: VerificationRequest): Promise<VerificationAnswer<Answer>> {
    const isCurrent = this.#watch.watch(key, request);
    const before = await this.#singleCalls.find(request.idempotent!);
    if (!isCurrent(this.#clock.now())) return this.#retry(request);
    return before ? this.#answerReplay(key, before, request) : this.#answer(key, "VALID", request);
  }

  #answerReplay(key: KeyRecord, before: Replay, request: VerificationRequest): VerificationAnswer<Answer> {
    return before.replay === "completed"
      ? this.#answer(key, "VALID", request, before.text)
      : { kind: `replay_${before.replay}` };
  }

  /**
   * Charges limits and credits together or not at all. A call over its limits is rejected before the ledger, so that it
   * neither loads the ledger nor reserves credits there.
   */
  async #spend(
    key: KeyRecord,
    selected: SelectedLimits | undefined,
    request: VerificationRequest,
  ): Promise<VerificationAnswer<Answer>> {
    const { idempotent } = request;
    const isCurrent = this.#watch.watch(key, request);
    let peeked: LimitDecision | undefined;
    // An idempotent call goes to the ledger first: its first attempt may have used up the limits.
    if (selected && !idempotent) {
      peeked = await this.#limiter.peek(selected.charges);
      if (!peeked.allowed) {
        this.#reportExceeded(key, selected, peeked);
        const text = limitsText(selected, peeked);
        return this.#withBalances(key, "RATE_LIMITED", request, text, exceededLimit(selected, peeked));
      }
    }
    const cost = request.credits?.cost ?? COST_DEFAULT;
    const slots = slotsOf(key);
    const balances = slots && !hasBalances(key) ? [] : balancesOf(key);
    const concurrencyOf = (left: BalancesLeft) => decideConcurrency(key, slotUseOf(left, balances.length));
    const resultText = ({
      limits,
      hold,
      ...left
    }: BalancesLeft & Partial<Pick<Spent<LimitDecision>, "limits" | "hold">>) => {
      const concurrency = concurrencyOf(left);
      const { retryAfter } = concurrency;
      const limited = limits ? limitsText(selected!, limits, retryAfter) : waitText(retryAfter);
      return leftText(key, left, request) + holdText(hold) + concurrencyText(concurrency) + limited;
    };
    const spend = (hold?: HoldRequest) =>
      this.#ledger.spend({
        workspaceId: key.workspaceId,
        balances,
        slots,
        required: requiredBalances(key),
        cost,
        charges: selected?.charges,
        idempotent: idempotent && { ...idempotent, keyId: key.top.keyId, outcome: resultText },
        isCurrent,
        hold,
      });
    const spendOnce = (hold?: HoldRequest) =>
      idempotent ? this.#singleCalls.spendOnce(idempotent, () => spend(hold)) : spend(hold);
    const spent = await (request.hold ? this.#hold(key, request.hold, request, spendOnce) : spendOnce());
    if ("replay" in spent) {
      return isCurrent(this.#clock.now()) ? this.#answerReplay(key, spent, request) : this.#retry(request);
    }
    switch (spent.outcome) {
      case "outdated":
        return this.#retry(request);
      case "unprepared":
        await this.#prepareBalances(key);
        return this.#retry(request);
      case "running":
        return { kind: "replay_running" };
      case "repeated":
        return this.#answer(key, "VALID", request, spent.before);
      case "mismatched":
        return { kind: "replay_mismatched" };
      case "insufficient": {
        const limits = selected && (peeked ?? (await this.#limiter.peek(selected.charges)));
        const { exceeded } = concurrencyOf(spent);
        // RATE_LIMITED has precedence over USAGE_EXCEEDED.
        const code = codeOfCharge({ areSlotsFree: !exceeded, limits, isCovered: false })!;
        const limit = exceeded?.name ?? exceededLimit(selected, limits);
        return this.#answer(key, code, request, resultText({ ...spent, limits }), 0, limit);
      }
      case "limited":
        this.#reportExceeded(key, selected, spent.limits);
        return this.#answer(key, "RATE_LIMITED", request, resultText(spent), 0, exceededLimit(selected, spent.limits));
      case "spent": {
        this.#reportExceeded(key, selected, spent.limits);
        // The pool may have become unlimited in the meantime. Without budgets, nothing was charged then.
        const isCharged = spent.remaining.some((one) => one !== undefined);
        return this.#answer(key, "VALID", request, resultText(spent), isCharged && !spent.hold ? cost : 0);
      }
    }
  }

  /** Makes a hold, if the key may have another one. */
  async #hold<Outcome extends object>(
    key: KeyRecord,
    asked: NonNullable<VerificationRequest["hold"]>,
    { idempotent }: VerificationRequest,
    make: (hold: HoldRequest) => Promise<Outcome>,
  ): Promise<Outcome | Replay> {
    try {
      const added = this.#openHolds.add(key.top);
      if (added) await added;
    } catch (error) {
      // A repetition makes no other hold.
      const before = idempotent && (await this.#singleCalls.find(idempotent));
      if (before) return before;
      throw error;
    }
    // A hold of a derived key is one of the key at the top: it ends like others, whatever became of the derived key.
    const { keyId, apiId, identity } = key.top;
    const subject = identity ? JSON.stringify({ identityId: identity.id }) : undefined;
    let isMade = false;
    try {
      const holdId = newTimedId(this.#random, "hold", this.#clock.now());
      const outcome = await make({ holdId, ...asked, keyId, apiId, subject });
      isMade = "hold" in outcome && outcome.hold !== undefined;
      return outcome;
    } finally {
      if (!isMade) this.#openHolds.remove(key.top);
    }
  }

  /**
   * A plan can give credits to keys, and budgets to identities, that exist already, so the first call makes the balance. If the plan does not
   * give it, this node has an older record of the plan, which is read again.
   */
  async #prepareBalances(key: KeyRecord): Promise<void> {
    const { workspaceId, top, poolId, planId, identity } = key;
    const existing = await this.#prepare({ workspaceId, keyId: top.keyId, poolId, identityId: identity?.id ?? null });
    const required = requiredBalances(key) ?? new Set<string>();
    if (existing.length >= required.size && [...required].every((id) => existing.includes(id))) return;
    this.#directories.generations.bump([poolId, planId ?? poolId, identity?.planId ?? poolId]);
  }

  /** Decides the call again from the start. What its limits have counted is in `charged`, and stays, whatever the answer is. */
  async #retry(request: VerificationRequest): Promise<VerificationAnswer<Answer>> {
    return this.verify(await this.#renewed(request), this.#clock.monotonic());
  }

  /** The request at this moment, if it does not take too long already. Rejects if its caller may make no calls any more. */
  async #renewed(request: VerificationRequest): Promise<VerificationRequest> {
    if (this.#clock.monotonic() - request.startedAt > DECISION_TIME_MAX) {
      throw new StoreUnavailable("The key changed faster than it could be charged");
    }
    const now = this.#clock.now();
    const principal = request.principal && (await request.principal.renew(now));
    const sought = request.sought && { ...request.sought, edge: await request.sought.edge.renew(now) };
    return { ...request, now, principal, sought };
  }

  /** A rejection with the unchanged balances. They are omitted if they cannot be read. */
  async #withBalances(
    key: KeyRecord,
    code: VerificationCode,
    request: VerificationRequest,
    more = "",
    limit: string | undefined = undefined,
  ): Promise<Answer> {
    // Callers without a root key see no budgets.
    const ids = request.principal || key.derivation ? balancesOf(key) : key.hasBalance ? [key.poolId] : [];
    const read = Promise.all(ids.map((id) => this.#balances.read(id)));
    const balances = await read.catch(() => undefined);
    const members = balances === undefined ? more : leftText(key, leftOf(balances), request) + more;
    return this.#answer(key, code, request, members, 0, limit);
  }

  #answer(
    key: KeyRecord,
    code: VerificationCode,
    request: VerificationRequest,
    more: string | ChargedLimits = "",
    creditsSpent = 0,
    limit: string | undefined = undefined,
  ): Answer {
    this.#record(key, code, request, creditsSpent, limit);
    return this.#form.answer(key, code, request.principal !== null, more);
  }

  #isValid(answer: VerificationAnswer<Answer>): boolean {
    return !isMistake(answer) && this.#form.isValid(answer);
  }
}

function leftOf(balances: readonly (ReadBalance | undefined)[]): BalancesLeft {
  return { remaining: balances.map((one) => one?.remaining), held: balances.map((one) => one?.held ?? 0) };
}

function leftText(key: KeyRecord, left: BalancesLeft, { principal, now }: VerificationRequest): string {
  return balancesText(key, left, { seesBudgets: principal !== null, now });
}

/** The balances that must exist: those that plans give. */
function requiredBalances({ top }: KeyRecord): ReadonlySet<string> | undefined {
  if (!(top instanceof PlannedKey)) return undefined;
  const required = top.concurrency.filter(({ plan }) => plan !== undefined).map(({ balanceId }) => balanceId);
  if (top.isBalanceOfPlan) required.push(top.poolId);
  for (const { budgetId, plan } of top.budgets) if (plan !== undefined) required.push(budgetId);
  return new Set(required);
}

function holdText(hold: Spent<never>["hold"]): string {
  return hold ? `,"hold":${JSON.stringify(hold)}` : "";
}
