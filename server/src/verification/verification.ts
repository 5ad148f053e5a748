import type { Recorder } from "../analytics/recorder.ts";
import type { Clock, Instant } from "../clock/clock.ts";
import type { BalanceReader } from "../credits/balance-reader.ts";
import type { Ledger } from "../credits/ledger.ts";
import { hashPeppered, hashSecret, hashSecret512 } from "../crypto/hash.ts";
import { type Directories, keyLocation, keyMigrationLookupKey, lookupKey } from "../directory/directories.ts";
import type { KeyMigrationRecord, KeyRecord, WorkspaceRecord } from "../directory/records.ts";
import type { Charge, LimitDecision } from "../limits/counters.ts";
import type { Limiter } from "../limits/limiter.ts";
import type { IdempotentCall, Replay, ReplayStore } from "../limits/replay-store.ts";
import { addressNetwork, isListed } from "../rules/address.ts";
import { longTokenOf, startOf, startOfToken } from "../rules/imported-keys.ts";
import { hasValidChecksum } from "../rules/key-string.ts";
import { type PermissionQuery, satisfies } from "../rules/permission-query.ts";
import type { ImportedKeyUse } from "../store/keys/key-migrations.ts";
import { StoreUnavailable } from "../store/store.ts";
import { FirstUses } from "./first-uses.ts";
import { type LimitPlan, limitsText, planLimits } from "./limits.ts";
import { PermissionQueries } from "./queries.ts";
import {
  type VerificationAnswer,
  type VerificationCode,
  type VerificationMistake,
  type VerificationRequest,
  verificationCodes,
} from "./request.ts";

/** How often a call is decided anew because something that it was decided on changed while it waited for its charge. */
const DECISIONS_MAX = 8;

/** What a verification is decided with. */
export interface VerificationParts {
  clock: Clock;
  directories: Directories;
  limiter: Limiter;
  ledger: Ledger<readonly Charge[], LimitDecision>;
  balances: BalanceReader;
  replays: ReplayStore;
  /** Counts every answer; null: nobody asks. */
  recorder: Pick<Recorder, "verification"> | null;
  /** Keeps what first verifications of imported keys tell, and outdates what is known of them. */
  recordFirstUses(uses: readonly ImportedKeyUse[]): Promise<void>;
}

const COST_DEFAULT = 1;

const NOT_FOUND = '{"valid":false,"code":"NOT_FOUND"}';

/** How the answer about a key that may pass begins. */
const VALID = '{"valid":true';

const TOKEN_FORM = "A key of this migration has three parts, joined by underscores: prefix, short token, long token.";

/**
 * Decides whether a key may pass, from memory wherever memory has the key.
 */
export class Verification {
  readonly #clock: Clock;
  readonly #directories: Directories;
  readonly #limiter: Limiter;
  readonly #ledger: Ledger<readonly Charge[], LimitDecision>;
  readonly #balances: BalanceReader;
  readonly #replays: ReplayStore;
  readonly #recorder: Pick<Recorder, "verification"> | null;
  readonly #firstUses: FirstUses;
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
    replays,
    recorder,
    recordFirstUses,
  }: VerificationParts) {
    this.#clock = clock;
    this.#directories = directories;
    this.#limiter = limiter;
    this.#ledger = ledger;
    this.#balances = balances;
    this.#replays = replays;
    this.#recorder = recorder;
    this.#firstUses = new FirstUses(recordFirstUses);
  }

  /** Answers at once when everything is known, else after a look-up. Rejects when that fails. */
  verify(request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    const served = this.#directories.changes.mayServe(request.now);
    if (served !== true) return this.#verifyWhenServed(served, request);
    return this.#verify(request);
  }

  #verify(request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    const place = keyLocation(hashSecret(request.key), request.workspaceId);
    const record = this.#directories.keys.get(place);
    if (record && !record.isDeleted) return this.#decide(record, request);
    // Whatever else it may be found by, only keys that were made elsewhere are.
    const workspace = this.#directories.workspaces.get(request.workspaceId);
    if (!workspace || request.migrationId !== undefined) return this.#look(place, request);
    const name = workspace.hasSha512Keys ? lookupKey([place, sha512Location(request)]) : place;
    const known = name === place ? record : this.#directories.keys.get(name);
    if (known) return this.#decide(known, request);
    return known === null ? this.#notFound(request) : this.#look(place, request);
  }

  async #verifyWhenServed(served: false | Promise<boolean>, request: VerificationRequest): Promise<VerificationAnswer> {
    if (!(await served)) {
      throw new StoreUnavailable("The database has been out of reach for longer than what is known may be served");
    }
    return this.#verify(request);
  }

  /** For a key that is not known under its SHA-256, which is all that keys made here are found by. */
  async #look(place: string, request: VerificationRequest): Promise<VerificationAnswer> {
    const workspace = await this.#workspace(request.workspaceId);
    // A mistyped key is none of ours, unless keys that were made elsewhere live here.
    if (!workspace?.hasImportedKeys && !hasValidChecksum(request.key)) return this.#notFound(request);
    const places = [place];
    if (workspace?.hasSha512Keys) places.push(sha512Location(request));
    const migration = request.migrationId === undefined ? null : await this.#migration(request.migrationId, request);
    const hash = migration && hashInMigration(migration, request.key);
    if (typeof hash === "string") places.push(keyLocation(hash, request.workspaceId, migration!.id));
    const { keys, keyBudget } = this.#directories;
    const name = lookupKey(places);
    let record = keys.get(name);
    if (record === undefined) {
      // One that was there when it was last read is no guess.
      record = keys.isOutdated(name)
        ? await keys.load(name)
        : await keyBudget.spend(sourceOf(request), () => keys.load(name));
    }
    if (record) return this.#decide(record, request);
    return hash === NO_TOKEN ? { kind: "token_unreadable", message: TOKEN_FORM } : this.#notFound(request);
  }

  #migration(name: string, request: VerificationRequest) {
    const { keyMigrations, keyBudget } = this.#directories;
    const reference = keyMigrationLookupKey(name, request.workspaceId);
    const migration = keyMigrations.get(reference);
    return migration === undefined
      ? keyBudget.spend(sourceOf(request), () => keyMigrations.load(reference))
      : migration;
  }

  #workspace(id: string): WorkspaceRecord | null | Promise<WorkspaceRecord | null> {
    const workspace = this.#directories.workspaces.get(id);
    return workspace === undefined ? this.#directories.workspaces.load(id) : workspace;
  }

  /** Also for a key that the caller is not to know of: it is the key's owner for whom the attempt is counted. */
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
    const answer = this.#answerOf(key, request);
    return key.isUnused ? this.#recordFirstUse(key, request, answer) : answer;
  }

  /** Nobody had the string of an imported key until it was presented: what is to be kept of it is kept. */
  async #recordFirstUse(
    key: KeyRecord,
    { key: secret }: VerificationRequest,
    answer: VerificationAnswer | Promise<VerificationAnswer>,
  ): Promise<VerificationAnswer> {
    const settled = await answer;
    // A caller who waits for a database that is away would wait for nothing: the next verification tells it again.
    if (typeof settled !== "string" || !settled.startsWith(VALID) || !this.#directories.changes.reachable)
      return settled;
    await this.#firstUses.record(
      key.isTokenPending
        ? { keyId: key.keyId, start: startOfToken(secret), hash: hashSecret(secret) }
        : { keyId: key.keyId, start: startOf(secret), hash: null },
    );
    return settled;
  }

  #answerOf(key: KeyRecord, request: VerificationRequest): VerificationAnswer | Promise<VerificationAnswer> {
    if (key.isDeleted) return this.#notFound(request, key);
    if (request.apiId !== undefined && request.apiId !== key.apiId) return this.#notFound(request, key);
    if (request.keyspaces !== undefined && !request.keyspaces.includes(key.apiId)) return this.#notFound(request, key);
    if (request.principal && !request.principal.may(key.verifyRequirement)) return this.#notFound(request, key);

    // A query that cannot be read is the caller's mistake whatever the key's state is.
    const query = request.permissions === undefined ? undefined : this.#queries.parse(request.permissions);
    if (query && query.kind !== "query") return { kind: "query_unreadable", message: query.message };

    const refusal = refusalOf(key, request, query);
    if (refusal) return key.hasBalance ? this.#withBalance(key, refusal, request) : this.#answer(key, refusal, request);

    const plan = planLimits(key, request.ratelimits);
    if (plan && "unknown" in plan) return unknownLimit(key, plan.unknown);
    if (key.hasBalance) return this.#spend(key, plan, request);
    if (!plan) return this.#answer(key, "VALID", request);
    const decided = request.idempotent
      ? this.#chargeOnce(plan, request.idempotent)
      : this.#limiter.charge(plan.charges);
    return decided instanceof Promise
      ? decided.then((settled) => this.#answerLimited(key, plan, settled, request))
      : this.#answerLimited(key, plan, decided, request);
  }

  /** The charge of a call that may be a repetition of one that was charged. */
  #chargeOnce(plan: LimitPlan, call: IdempotentCall): LimitDecision | Replay | Promise<LimitDecision | Replay> {
    return this.#replays.once(
      call,
      () => this.#limiter.charge(plan.charges),
      (decided) =>
        decided.allowed
          ? { text: limitsText(plan, decided), windowMax: Math.max(...plan.charges.map(({ duration }) => duration)) }
          : undefined,
    );
  }

  #answerLimited(
    key: KeyRecord,
    plan: LimitPlan,
    decided: LimitDecision | Replay,
    request: VerificationRequest,
  ): VerificationAnswer {
    if ("replay" in decided) {
      return decided.replay === "completed"
        ? this.#answer(key, "VALID", request, decided.text)
        : { kind: `replay_${decided.replay}` };
    }
    return this.#answer(key, decided.allowed ? "VALID" : "RATE_LIMITED", request, limitsText(plan, decided));
  }

  /**
   * Limits and credits together or not at all. A call that the limits refuse anyway never reaches the ledger, so that
   * who is limited takes neither the ledger's time nor, while he waits there, the credits of others.
   */
  async #spend(key: KeyRecord, plan: LimitPlan | undefined, request: VerificationRequest): Promise<VerificationAnswer> {
    const { idempotent } = request;
    const isCurrent = this.#currency(key, request);
    let looked: LimitDecision | undefined;
    // What may have been charged before is looked up first, in the ledger: by now the limits may be used up by itself.
    if (plan && !idempotent) {
      looked = await this.#limiter.peek(plan.charges);
      if (!looked.allowed) return this.#withBalance(key, "RATE_LIMITED", request, limitsText(plan, looked));
    }
    const { poolId } = key;
    const cost = request.credits?.cost ?? COST_DEFAULT;
    const shown = ({ remaining, limits }: { remaining: number | undefined; limits?: LimitDecision | undefined }) =>
      (remaining === undefined ? "" : `,"credits":${remaining}`) + (limits ? limitsText(plan!, limits) : "");
    const spent = await this.#ledger.spend({
      workspaceId: key.workspaceId,
      poolId,
      cost,
      charges: plan?.charges,
      idempotent: idempotent && { ...idempotent, keyId: key.keyId, outcome: shown },
      isCurrent,
    });
    switch (spent.outcome) {
      case "outdated":
        return this.#decideAnew(request);
      case "running":
        return { kind: "replay_running" };
      case "repeated":
        return this.#answer(key, "VALID", request, spent.before);
      case "mismatched":
        return { kind: "replay_mismatched" };
      case "insufficient": {
        const limits = plan && (looked ?? (await this.#limiter.peek(plan.charges)));
        // Limits come first, whenever they were looked at.
        const code = limits?.allowed === false ? "RATE_LIMITED" : "USAGE_EXCEEDED";
        return this.#answer(key, code, request, shown({ ...spent, limits }));
      }
      case "limited":
        return this.#answer(key, "RATE_LIMITED", request, shown(spent));
      case "spent":
        // A pool that lost its balance meanwhile is unlimited, and was charged nothing.
        return this.#answer(key, "VALID", request, shown(spent), spent.remaining === undefined ? 0 : cost);
    }
  }

  /** Whether the key's record and the caller are still what a call is decided on. Cheap: it runs for each call of a batch. */
  #currency(key: KeyRecord, { principal }: VerificationRequest): (now: Instant) => boolean {
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

  /** From the beginning, as if the call had just arrived: nothing was charged yet. */
  async #decideAnew(request: VerificationRequest): Promise<VerificationAnswer> {
    const decisions = (request.decisions ?? 1) + 1;
    if (decisions > DECISIONS_MAX) throw new StoreUnavailable("A key changed faster than it could be charged");
    const now = this.#clock.now();
    const principal = request.principal && (await request.principal.renew(now));
    return this.verify({ ...request, now, principal, decisions });
  }

  /** A refusal that shows the balance, which it did not touch. When it cannot be read, it is left out. */
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

/** Whose share of the look-ups it takes: a workspace's, or that of an address where nobody says who calls. */
function sourceOf({ principal, workspaceId, address }: VerificationRequest): string {
  return principal ? workspaceId : addressNetwork(address);
}

function sha512Location({ key, workspaceId }: VerificationRequest): string {
  return keyLocation(hashSecret512(key), workspaceId);
}

const NO_TOKEN = Symbol("no token");

/** By what hash a key of the migration is found; null where it is found by itself. */
function hashInMigration({ algorithm, pepper }: KeyMigrationRecord, key: string): string | null | typeof NO_TOKEN {
  switch (algorithm) {
    case "hmac-sha256":
      return hashPeppered(pepper!, key);
    case "prefixed-api-key": {
      const token = longTokenOf(key);
      return token === undefined ? NO_TOKEN : hashSecret(token);
    }
    default:
      return null;
  }
}

/** The first check that fails of those that cost nothing. */
function refusalOf(
  key: KeyRecord,
  { now, address }: VerificationRequest,
  query: PermissionQuery | undefined,
): VerificationCode | undefined {
  if (!key.workspaceEnabled) return "FORBIDDEN";
  if (!key.enabled) return "DISABLED";
  if (key.expiresAt !== null && now >= key.expiresAt) return "EXPIRED";
  if (key.allowedIps && !isListed(key.allowedIps, address)) return "FORBIDDEN";
  if (query && !satisfies(query, key.permissions)) return "INSUFFICIENT_PERMISSIONS";
  return undefined;
}

function unknownLimit(key: KeyRecord, name: string): VerificationMistake {
  const identity = key.identity
    ? `identity ${key.identity.id} (externalId ${key.identity.externalId})`
    : "it has no identity";
  return {
    kind: "limit_unknown",
    message:
      `The ratelimit '${name}' exists neither on key ${key.keyId} nor on its identity: ${identity}. ` +
      "Create it, or send `limit` and `duration` along with its name.",
  };
}
