import type { Clock, Instant, Milliseconds } from "../clock/clock.ts";
import { hashSecret } from "../crypto/hash.ts";
import { systemSecrets } from "../crypto/secret.ts";
import { type CallDirectories, generationsFor, keyLocation, RecordCaches } from "../directory/directories.ts";
import { LookupRateLimiter } from "../directory/lookup-rate-limiter.ts";
import { decideByCall, decideByCharge } from "../errors/decided-elsewhere.ts";
import type { Charge, LimitDecision } from "../limits/counters.ts";
import { Limiter } from "../limits/limiter.ts";
import type { Random } from "../random/random.ts";
import type { AnswerForm } from "../verification/answers.ts";
import type { DecisionRecorder } from "../verification/event.ts";
import { Verification } from "../verification/verification.ts";
import { Charges } from "./charges.ts";
import type { Home, ReplicaStatus } from "./home.ts";
import { KeyedGenerations } from "./keyed-tags.ts";
import type { HeldLease } from "./leased-limit.ts";
import { Leases } from "./leases.ts";
import { ReplicaVerification } from "./replica-verification.ts";
import { ReplicaSource } from "./source.ts";
import { ReplicaStream, type StreamState } from "./stream.ts";

/** Bytes of the key of tags. */
const TAG_KEY_BYTES = 24;

export interface ReplicaOptions<Answer> {
  form: AnswerForm<Answer>;
  clock: Clock;
  random: Random;
  home: Home;
  /** Memory of the records, in bytes. */
  bytesMax: number;
  /** How long records are used after the last answer of the stream. */
  staleMax: Milliseconds;
  /** Unsuccessful look-ups per second, of each kind. */
  lookupsPerSecond: number;
  /** Whether limits are leased. Otherwise home charges each call. */
  leases: boolean;
  /** Counts what is decided here; null: nobody does. */
  recorder: Pick<DecisionRecorder, "verification"> | null;
  status(): Omit<ReplicaStatus, "records" | "leases">;
  onState(state: StreamState, cause?: unknown): void;
}

/** What a replica adds to the explanation of a verification: by what it would decide one itself. */
export interface ReplicaExplanation {
  readonly id: string;
  readonly name?: string;
  /** Absent: it has none that it may use. */
  readonly record?: { readonly currentAt: Instant };
  readonly leases: ({ readonly name: string; readonly from: "key" | "identity" } & HeldLease)[];
}

/** A limiter without counters: what leases do not cover, home decides. */
class LeasedLimiter extends Limiter {
  readonly #leases: Leases | null;

  constructor(leases: Leases | null, clock: Pick<Clock, "now">) {
    super({ charge: decideByCharge, peek: decideByCharge, adjust: decideByCall }, "closed", clock);
    this.#leases = leases;
  }

  /** All limits of the call together, those in shadow mode too: nothing may be spent of a call that then goes home. */
  override charge(charges: readonly Charge[]): LimitDecision {
    return this.#leases?.spend(charges) ?? decideByCharge();
  }

  override peek(): never {
    decideByCharge();
  }
}

/**
 * Decides verifications away from the service, with its promises: records are read at home on their first use and outdated by its
 * stream of changes; what costs something is charged at home.
 */
export class Replica<Answer = string> {
  readonly stream: ReplicaStream;
  readonly directories: CallDirectories;
  /** Charges what leases cover. Everything else leads home. */
  readonly limiter: Limiter;
  /** Null: none are used. */
  readonly leases: Leases | null;
  readonly verification: ReplicaVerification<Answer>;
  /** Charges what costs something at home. */
  readonly charges: Charges;
  /** Answers that were decided here by code, for the metrics. */
  readonly counts: Verification["counts"];
  readonly #source: ReplicaSource;
  readonly #status: ReplicaOptions<Answer>["status"];

  constructor({
    form,
    clock,
    random,
    home,
    bytesMax,
    staleMax,
    lookupsPerSecond,
    leases,
    recorder,
    status,
    onState,
  }: ReplicaOptions<Answer>) {
    this.#status = status;
    const tagKey = Buffer.from(systemSecrets(TAG_KEY_BYTES)).toString("base64url");
    const generations = new KeyedGenerations(tagKey, generationsFor(bytesMax));
    const workspaceId = () => this.stream.settings.workspaceId;
    const position = () => this.stream.position;
    this.#source = new ReplicaSource({ clock, home, generations, workspaceId, position });
    const caches = new RecordCaches({ clock, source: this.#source, generations, bytesMax });
    const { keys, rootKeys } = caches.counts;
    this.leases = leases ? new Leases({ clock, random, home, position }) : null;
    this.stream = new ReplicaStream({
      clock,
      random,
      home,
      generations,
      tagKey,
      staleMax,
      onState: (state, cause) => {
        if (state === "refused") this.leases?.drop();
        onState(state, cause);
      },
      status: () => {
        const held = this.leases?.held ?? 0;
        return { ...status(), records: keys.entries + rootKeys.entries, ...(held > 0 && { leases: held }) };
      },
    });
    this.directories = Object.assign(caches, {
      changes: this.stream,
      keyLookups: new LookupRateLimiter(clock, lookupsPerSecond),
      rootKeyLookups: new LookupRateLimiter(clock, lookupsPerSecond),
      sessionLookups: { spend: decideByCall },
      linkLookups: { spend: decideByCall },
    });
    this.limiter = new LeasedLimiter(this.leases, clock);
    const verification = new Verification({
      form,
      clock,
      random,
      directories: this.directories,
      limiter: this.limiter,
      recorder,
      ledger: { spend: decideByCharge },
      balances: { read: decideByCharge },
      openHolds: { add: decideByCall, remove: decideByCall },
      singleCalls: { chargeOnce: decideByCall, spendOnce: decideByCall, find: decideByCall },
      upstreams: { ask: decideByCall },
      prepareBalances: decideByCall,
      recordFirstUses: decideByCall,
    });
    this.counts = verification.counts;
    this.charges = new Charges(home, position);
    this.verification = new ReplicaVerification({
      form,
      verification,
      charges: this.charges,
      leases: this.leases,
      keys: caches.keys,
      workspaceId,
    });
  }

  /**
   * Asks home for its present position. Nothing is decided before.
   *
   * @throws {ReplicaRefused} or `HomeUnavailable`.
   */
  start(): Promise<void> {
    return this.stream.start();
  }

  /**
   * Explains by what a verification would be decided here. Nothing about a key but the one that home has found: the caller may
   * not read others.
   */
  explain(key: string | undefined, foundKeyId: string | undefined): ReplicaExplanation {
    const { id, name } = this.#status();
    const { workspaceId } = this.stream.settings;
    const cached =
      key === undefined ? undefined : this.directories.keys.peek(keyLocation(hashSecret(key), workspaceId));
    const record = cached?.keyId === foundKeyId ? cached : undefined;
    const leases = (record?.limits ?? []).flatMap((limit) => {
      const { name, owner } = limit;
      if (owner === "derived") return [];
      return (this.leases?.heldOf(limit) ?? []).map((lease) => ({ name, from: owner, ...lease }));
    });
    return {
      id,
      ...(name !== undefined && { name }),
      ...(record && { record: { currentAt: this.stream.readAt.wall } }),
      leases,
    };
  }

  /** Decides nothing more. Resolves when home has its leases back, or does not answer. */
  async close(): Promise<void> {
    this.stream.close();
    this.#source.close();
    await this.leases?.close();
  }
}
