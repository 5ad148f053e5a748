import type { Clock, Milliseconds } from "../clock/clock.ts";
import { systemSecrets } from "../crypto/secret.ts";
import { type CallDirectories, generationsFor, RecordCaches } from "../directory/directories.ts";
import { LookupRateLimiter } from "../directory/lookup-rate-limiter.ts";
import { decideByCall, decideByCharge } from "../errors/decided-elsewhere.ts";
import { Limiter } from "../limits/limiter.ts";
import type { Random } from "../random/random.ts";
import type { DecisionRecorder } from "../verification/event.ts";
import { Verification } from "../verification/verification.ts";
import { Charges } from "./charges.ts";
import type { Home, ReplicaStatus } from "./home.ts";
import { KeyedGenerations } from "./keyed-tags.ts";
import { ReplicaVerification } from "./replica-verification.ts";
import { ReplicaSource } from "./source.ts";
import { ReplicaStream, type StreamState } from "./stream.ts";

/** Bytes of the key of tags. */
const TAG_KEY_BYTES = 24;

export interface ReplicaOptions {
  clock: Clock;
  random: Random;
  home: Home;
  /** Memory of the records, in bytes. */
  bytesMax: number;
  /** How long records are used after the last answer of the stream. */
  staleMax: Milliseconds;
  /** Unsuccessful look-ups per second, of each kind. */
  lookupsPerSecond: number;
  /** Counts what is decided here; null: nobody does. */
  recorder: Pick<DecisionRecorder, "verification"> | null;
  status(): Omit<ReplicaStatus, "records">;
  onState(state: StreamState, cause?: unknown): void;
}

/**
 * Decides verifications away from the service, with its promises: records are read at home on their first use and outdated by its
 * stream of changes; what costs something is charged at home.
 */
export class Replica {
  readonly stream: ReplicaStream;
  readonly directories: CallDirectories;
  /** Charges nothing here: each charge leads home. */
  readonly limiter: Limiter;
  readonly verification: ReplicaVerification;
  /** Answers that were decided here by code, for the metrics. */
  readonly counts: Verification["counts"];
  readonly #source: ReplicaSource;

  constructor({
    clock,
    random,
    home,
    bytesMax,
    staleMax,
    lookupsPerSecond,
    recorder,
    status,
    onState,
  }: ReplicaOptions) {
    const tagKey = Buffer.from(systemSecrets(TAG_KEY_BYTES)).toString("base64url");
    const generations = new KeyedGenerations(tagKey, generationsFor(bytesMax));
    const workspaceId = () => this.stream.settings.workspaceId;
    const position = () => this.stream.position;
    this.#source = new ReplicaSource({ clock, home, generations, workspaceId, position });
    const caches = new RecordCaches({ clock, source: this.#source, generations, bytesMax });
    const { keys, rootKeys } = caches.counts;
    this.stream = new ReplicaStream({
      clock,
      random,
      home,
      generations,
      tagKey,
      staleMax,
      onState,
      status: () => ({ ...status(), records: keys.entries + rootKeys.entries }),
    });
    this.directories = Object.assign(caches, {
      changes: this.stream,
      keyLookups: new LookupRateLimiter(clock, lookupsPerSecond),
      rootKeyLookups: new LookupRateLimiter(clock, lookupsPerSecond),
      sessionLookups: { spend: decideByCall },
      linkLookups: { spend: decideByCall },
    });
    this.limiter = new Limiter({ charge: decideByCharge, peek: decideByCharge, adjust: decideByCall }, "closed", clock);
    const verification = new Verification({
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
    this.verification = new ReplicaVerification({
      verification,
      charges: new Charges(home, position),
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

  close(): void {
    this.stream.close();
    this.#source.close();
  }
}
