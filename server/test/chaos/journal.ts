import type { Admission } from "../admissions.ts";

/** One answer, or none (status 0). Times are of the monotonic clock, in ms. */
export interface Answer {
  operation: string;
  /** 0: no complete answer. */
  status: number;
  /** The node that answered; undefined: the load balancer, or no one. */
  node: number | undefined;
  /** The `type` of a problem, or the error of the connection. */
  problem: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
  data: any;
  /** When the first attempt was sent. */
  sentAt: number;
  answeredAt: number;
}

/** A key that a client asked for, and what it was told about it. */
export interface JournalKey {
  /** In `meta` of the key: which call made it. */
  marker: string;
  /** Present once the creation was acknowledged. */
  keyId?: string;
  key?: string;
  /** The last acknowledged name. */
  name: string;
  /**
   * Names that can follow it: of calls without an answer, and of calls with several attempts, because `keys.updateKey`
   * takes no Idempotency-Key and an attempt can be executed long after it was given up.
   */
  openNames: string[];
  deletion: "none" | "open" | "acknowledged";
  /** Its acknowledged changes, for a person who looks for the cause of a loss. */
  history: string[];
}

/** A balance, and what clients spent and added. */
export interface JournalPool {
  keyId: string;
  key: string;
  initial: number;
  spent: number;
  added: number;
  /** Of calls whose outcome the client does not know. */
  openSpent: number;
  openAdded: number;
  /** The limit that is charged with each spend; it is not reset during the run. */
  limit: JournalLimit | undefined;
}

/** A counter, and the calls that it admitted. */
export interface JournalLimit {
  name: string;
  limit: number;
  duration: number;
  mode: "standard" | "strict";
  admissions: (Admission & { node: number | undefined })[];
  calls: number;
}

/** An answer for a key whose deletion had been acknowledged. */
export interface RevokedAnswer {
  keyId: string;
  node: number;
  revokedAt: number;
  sentAt: number;
  isAccepted: boolean;
}

/** What all clients were told. The books compare it with the database; the service's own figures are not used. */
export class Journal {
  readonly keys: JournalKey[] = [];
  readonly pools: JournalPool[] = [];
  readonly limits: JournalLimit[] = [];
  readonly revoked: RevokedAnswer[] = [];
  /** Answers other than 200, without the expected ones. */
  readonly failures: Answer[] = [];
  /** Verifications of an existing key that denied its existence. */
  readonly denials: Answer[] = [];
  readonly statuses = new Map<string, number>();
  /** Verifications of keys that exist. */
  knownVerifications = 0;
  /** Acknowledged creations, changes and deletions. */
  acknowledged = 0;
  /** Credits of acknowledged spends. */
  spends = 0;

  recordAnswer(answer: Answer, expected: readonly number[] = []): void {
    const { status, node } = answer;
    const source = node === undefined && status >= 500 ? " by the load balancer" : "";
    const title = status === 0 ? "no answer" : `${status}${source}`;
    this.statuses.set(title, (this.statuses.get(title) ?? 0) + 1);
    if (status !== 200 && !expected.includes(status)) this.failures.push(answer);
  }
}
