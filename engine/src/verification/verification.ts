import type { Clock, Instant, Milliseconds } from "../clock/clock.ts";
import type { BalanceReader } from "../credits/balance-reader.ts";
import type { Ledger } from "../credits/ledger.ts";
import { hashSecret } from "../crypto/hash.ts";
import type { CallDirectories } from "../directory/directories.ts";
import type { KeyRecord } from "../directory/records.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { Charge, LimitDecision } from "../limits/counters.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { Replay, ReplayableCall } from "../limits/replay-store.ts";
import { startOf, startOfToken } from "../rules/imported-keys.ts";
import { codeOfCharge, codeOfState, codeOfVisibility } from "./checks.ts";
import type { DecisionRecorder } from "./event.ts";
import { FirstUseWriter } from "./first-uses.ts";
import { KeyLookup, tooStale } from "./key-lookup.ts";
import { limitsText, type SelectedLimits, selectLimits } from "./limits.ts";
import { unknownLimit } from "./mistakes.ts";
import { PermissionQueries } from "./queries.ts";
import {
  COST_DEFAULT,
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
export interface VerificationParts {
  clock: Clock;
  directories: CallDirectories;
  limiter: Limiter;
  ledger: Pick<Ledger<readonly Charge[], LimitDecision>, "spend">;
  balances: Pick<BalanceReader, "read">;
  /** Makes calls with an Idempotency-Key once. */
  singleCalls: Pick<SingleCalls, "chargeOnce" | "spendOnce" | "find">;
  /** Asks other systems about keys that are unknown here. */
  upstreams: UpstreamVerifiers;
  /** Counts every answer for the analytics; null without analytics. */
  recorder: Pick<DecisionRecorder, "verification"> | null;
  /** Stores the first uses of imported keys, and invalidates the cached keys. */
  recordFirstUses(uses: readonly ImportedKeyUse[]): Promise<void>;
}

const NOT_FOUND = '{"valid":false,"code":"NOT_FOUND"}';

/** The start of an answer with the code VALID. */
const VALID_START = '{"valid":true';

/**
 * Verifies keys. A cached key without credits is verified in memory; otherwise the database is queried.
 *
 * Steps: look up the key (`KeyLookup`), check it in the order of the API contract (`#decide`), charge its limits
 * (`#chargeOnce`) or its limits and credits together (`#spend`), and build the answer (`#answer`).
 */
export class Verification {
  readonly #clock: Clock;
  readonly #directories: CallDirectories;
  readonly #limiter: Limiter;
  readonly #ledger: VerificationParts["ledger"];
  readonly #balances: VerificationParts["balances"];
  readonly #singleCalls: VerificationParts["singleCalls"];
  readonly #lookup: KeyLookup;
  readonly #unknownKeys: UnknownKeys;
  readonly #recorder: Pick<DecisionRecorder, "verification"> | null;
  readonly #firstUses: FirstUseWriter;
  readonly #queries = new PermissionQueries();
  /** Slots of the tags that outdate a key's record. */
  readonly #slotsOfKeys = new WeakMap<KeyRecord, readonly number[]>();
  /** Answers by code, for the metrics. */
  readonly counts = Object.fromEntries(verificationCodes.map((code) => [code, 0])) as Record<VerificationCode, number>;

  constructor({
    clock,
    directories,
    limiter,
    ledger,
    balances,
    singleCalls,
    upstreams,
    recorder,
    recordFirstUses,
  }: VerificationParts) {
    this.#clock = clock;
    this.#directories = directories;
    this.#limiter = limiter;
    this.#ledger = ledger;
    this.#balances = balances;
    this.#singleCalls = singleCalls;
    this.#lookup = new KeyLookup(directories);
    this.#unknownKeys = new UnknownKeys(this.#lookup, upstreams);
    this.#recorder = recorder;
    this.#firstUses = new FirstUseWriter(recordFirstUses);
  }

  /** Answers synchronously if all records are cached, else after a look-up. Rejects if the look-up fails. */
  verify(
    request: VerificationRequest,
    monotonic = request.startedAt,
  ): VerificationAnswer | Promise<VerificationAnswer> {
    const mayServe = this.#directories.changes.mayServe(request.now, monotonic);
    if (mayServe !== true) return this.#verifyLate(mayServe, request);
    return this.#verify(request);
  }

  #verify(request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    const cached = this.#lookup.findCached(request);
    if (cached === undefined) return this.#verifyUncached(request);
    return cached === null ? this.#unknown(request) : this.#decide(cached, request);
  }

  async #verifyUncached(request: VerificationRequest): Promise<VerificationAnswer> {
    const found = await this.#lookup.find(request);
    if (found === null) return this.#unknown(request);
    return "kind" in found ? found : this.#decide(found, request);
  }

  /** Verifies on a node whose caches are not current: see the states of `ChangesFollower`. */
  async #verifyLate(mayServe: false | Promise<boolean>, request: VerificationRequest): Promise<VerificationAnswer> {
    if (!(await mayServe)) throw tooStale();
    return this.#verify(request);
  }

  /** A key that does not exist here. The upstream verifiers of the workspace may know it. */
  #unknown(request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    const isKnown = this.#unknownKeys.ask(request);
    return isKnown instanceof Promise
      ? isKnown.then((settled) => (settled ? this.#verifyCreated(request) : this.#notFound(request)))
      : this.#notFound(request);
  }

  /** Verifies a key that was created during the call. */
  async #verifyCreated(request: VerificationRequest): Promise<VerificationAnswer> {
    const now = this.#clock.now();
    const principal = request.principal && (await request.principal.renew(now));
    return this.verify({ ...request, now, principal, isKnownUpstream: true }, this.#clock.monotonic());
  }

  /** The answer NOT_FOUND. A key that exists but must look missing is given, so that the attempt counts for its owner. */
  #notFound(request: VerificationRequest, key: KeyRecord | null = null): string {
    this.#record(key, "NOT_FOUND", request, 0);
    return NOT_FOUND;
  }

  #record(key: KeyRecord | null, code: VerificationCode, request: VerificationRequest, creditsSpent: number): void {
    this.counts[code]++;
    const { now, startedAt, workspaceId, tags } = request;
    this.#recorder?.verification({ at: now, startedAt, workspaceId, key, code, tags, creditsSpent });
  }

  #decide(key: KeyRecord, request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    const answer = this.#check(key, request);
    return key.isUnused ? this.#recordFirstUse(key, request, answer) : answer;
  }

  /** Stores the start and the hash of an imported key, whose string is available for the first time. */
  async #recordFirstUse(
    key: KeyRecord,
    { key: secret }: VerificationRequest,
    answer: VerificationAnswer | Promise<VerificationAnswer>,
  ): Promise<VerificationAnswer> {
    const settled = await answer;
    // The answer does not wait for an unreachable database: the next verification records the first use again.
    if (typeof settled !== "string" || !settled.startsWith(VALID_START) || !this.#directories.changes.reachable)
      return settled;
    await this.#firstUses.record(
      key.isTokenPending
        ? { keyId: key.keyId, start: startOfToken(secret), hash: hashSecret(secret) }
        : { keyId: key.keyId, start: startOf(secret), hash: null },
    );
    return settled;
  }

  #check(key: KeyRecord, request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    if (codeOfVisibility(key, request) !== undefined) return this.#notFound(request, key);

    // An invalid query is an error in the request, independently of the state of the key.
    const query = request.permissions === undefined ? undefined : this.#queries.parse(request.permissions);
    if (query && query.kind !== "query") return { kind: "query_unreadable", message: query.message };

    const rejection = codeOfState(key, request, query);
    if (rejection)
      return key.hasBalance ? this.#withBalance(key, rejection, request) : this.#answer(key, rejection, request);

    const selected = selectLimits(key, request.ratelimits);
    if (selected && "unknown" in selected) return unknownLimit(key, selected.unknown);
    if (key.hasBalance) return this.#spend(key, selected, request);
    if (!selected) return request.idempotent ? this.#answerFree(key, request) : this.#answer(key, "VALID", request);
    const decided = request.idempotent
      ? this.#chargeOnce(selected, request.idempotent)
      : this.#limiter.charge(selected.charges);
    return decided instanceof Promise
      ? decided.then((settled) => this.#answerLimited(key, selected, settled, request))
      : this.#answerLimited(key, selected, decided, request);
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
  ): VerificationAnswer {
    if ("replay" in decided) return this.#answerReplay(key, decided, request);
    if (!decided.allowed) this.#limiter.exceeded.add(key.workspaceId, selected.charges, decided, key);
    return this.#answer(key, codeOfCharge(decided, true) ?? "VALID", request, limitsText(selected, decided));
  }

  /** A valid key that has nothing to charge. Its Idempotency-Key can belong to another call. */
  async #answerFree(key: KeyRecord, request: VerificationRequest): Promise<VerificationAnswer> {
    const before = await this.#singleCalls.find(request.idempotent!);
    return before ? this.#answerReplay(key, before, request) : this.#answer(key, "VALID", request);
  }

  #answerReplay(key: KeyRecord, before: Replay, request: VerificationRequest): VerificationAnswer {
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
  ): Promise<VerificationAnswer> {
    const { idempotent } = request;
    const isCurrent = this.#currentCheck(key, request);
    let peeked: LimitDecision | undefined;
    // An idempotent call goes to the ledger first: its first attempt may have used up the limits.
    if (selected && !idempotent) {
      peeked = await this.#limiter.peek(selected.charges);
      if (!peeked.allowed) {
        this.#limiter.exceeded.add(key.workspaceId, selected.charges, peeked, key);
        return this.#withBalance(key, "RATE_LIMITED", request, limitsText(selected, peeked));
      }
    }
    const { poolId } = key;
    const cost = request.credits?.cost ?? COST_DEFAULT;
    const resultText = ({ remaining, limits }: { remaining: number | undefined; limits?: LimitDecision | undefined }) =>
      (remaining === undefined ? "" : `,"credits":${remaining}`) + (limits ? limitsText(selected!, limits) : "");
    const spend = () =>
      this.#ledger.spend({
        workspaceId: key.workspaceId,
        poolId,
        cost,
        charges: selected?.charges,
        idempotent: idempotent && { ...idempotent, keyId: key.keyId, outcome: resultText },
        isCurrent,
      });
    const spent = await (idempotent ? this.#singleCalls.spendOnce(idempotent, spend) : spend());
    if ("replay" in spent) return this.#answerReplay(key, spent, request);
    switch (spent.outcome) {
      case "outdated":
        return this.#retry(request);
      case "running":
        return { kind: "replay_running" };
      case "repeated":
        return this.#answer(key, "VALID", request, spent.before);
      case "mismatched":
        return { kind: "replay_mismatched" };
      case "insufficient": {
        const limits = selected && (peeked ?? (await this.#limiter.peek(selected.charges)));
        // RATE_LIMITED has precedence over USAGE_EXCEEDED.
        const code = codeOfCharge(limits, false)!;
        return this.#answer(key, code, request, resultText({ ...spent, limits }));
      }
      case "limited":
        this.#limiter.exceeded.add(key.workspaceId, selected!.charges, spent.limits, key);
        return this.#answer(key, "RATE_LIMITED", request, resultText(spent));
      case "spent":
        // The pool may have become unlimited in the meantime. Then nothing was charged.
        return this.#answer(key, "VALID", request, resultText(spent), spent.remaining === undefined ? 0 : cost);
    }
  }

  /** Returns a check that the key and the caller have not changed. The ledger runs it for each call of a batch. */
  #currentCheck(key: KeyRecord, { principal }: VerificationRequest): (now: Instant) => boolean {
    const { generations } = this.#directories;
    const generation = generations.newest();
    let slots = this.#slotsOfKeys.get(key);
    if (!slots) {
      const { keyId, apiId, workspaceId, poolId, identity } = key;
      slots = [keyId, apiId, workspaceId, poolId, ...(identity ? [identity.id] : [])].map((tag) =>
        generations.slot(tag),
      );
      this.#slotsOfKeys.set(key, slots);
    }
    const { expiresAt } = key;
    return (now) => {
      if (!generations.areUnchanged(slots, generation)) return false;
      return (expiresAt === null || now < expiresAt) && (principal === null || principal.isCurrent(now));
    };
  }

  /** Decides the call again from the start. Nothing was charged yet. */
  async #retry(request: VerificationRequest): Promise<VerificationAnswer> {
    const monotonic = this.#clock.monotonic();
    if (monotonic - request.startedAt > DECISION_TIME_MAX) {
      throw new StoreUnavailable("The key changed faster than it could be charged");
    }
    const now = this.#clock.now();
    const principal = request.principal && (await request.principal.renew(now));
    return this.verify({ ...request, now, principal }, monotonic);
  }

  /** A rejection with the unchanged balance. The balance is omitted if it cannot be read. */
  async #withBalance(key: KeyRecord, code: VerificationCode, request: VerificationRequest, more = ""): Promise<string> {
    const remaining = await this.#balances.read(key.poolId).catch(() => undefined);
    return this.#answer(key, code, request, remaining === undefined ? more : `,"credits":${remaining}${more}`);
  }

  #answer(key: KeyRecord, code: VerificationCode, request: VerificationRequest, more = "", creditsSpent = 0): string {
    this.#record(key, code, request, creditsSpent);
    const members = request.principal ? key.members : key.anonymousMembers;
    return `{"valid":${code === "VALID"},"code":"${code}",${members}${more}}`;
  }
}
