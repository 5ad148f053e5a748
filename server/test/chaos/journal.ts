import { systemClock } from "../../../engine/src/clock/system.ts";
import type { Admission } from "../admissions.ts";

const DAY_MS = 86_400_000;

/** One answer, or none (status 0). Times are of the monotonic clock, in ms. */
export interface Answer {
  operation: string;
  /** 0: no complete answer. */
  status: number;
  /** The node that answered; undefined: the load balancer, an edge itself, or no one. */
  node: number | undefined;
  /** The edge that was asked. */
  edge?: number | undefined;
  /** The `type` and the `detail` of a problem, or the error of the connection. */
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
  /** Its changes in the order of their calls; they do not overlap. */
  changes: JournalChange[];
}

/** A call that creates, changes or deletes a key. */
export interface JournalChange {
  /** What it changes, in the words of `eventKinds`. */
  kind: string;
  isAcknowledged: boolean;
  /** How often it was sent. */
  attempts: number;
  /** The name that it gives. */
  name?: string;
  /** When it was sent and acknowledged, for a person who looks for the cause of a loss. */
  description: string;
}

/** A balance, and what clients spent and added. */
export interface JournalBalance {
  /** The key of a pool, or the budget. */
  id: string;
  initial: number;
  spent: number;
  added: number;
  /** Of calls whose outcome the client does not know. */
  openSpent: number;
  openAdded: number;
  /** How many calls spent or added, as far as the client knows, and how many have no known outcome. */
  calls: number;
  openCalls: number;
  /** The same of calls that added. */
  additions: number;
  openAdditions: number;
  /**
   * Each known change of the balance, if every call has an Idempotency-Key and is repeated until its outcome is known: the
   * balance that its answer names, and what it was before. Undefined: the outcome of some calls stays unknown.
   */
  moves: { before: number; after: number }[] | undefined;
}

/** The balance of a key. */
export interface JournalPool extends JournalBalance {
  key: string;
  /** The limit that is charged with each spend; it is not reset during the run. */
  limit: JournalLimit | undefined;
}

/** The balance of a budget. */
export interface JournalBudget extends JournalBalance {
  /** Whether it denies calls that it does not cover. */
  isDenying: boolean;
  /** How many calls it has refused. */
  refused: number;
}

/** Holds, and what clients were told about them. */
export interface JournalHolds {
  /** The budgets that holds charge, and nothing else does. */
  readonly budgets: { id: string; isDenying: boolean; granted: number }[];
  /** The ids of those whose verification was acknowledged. */
  readonly made: string[];
  /** Each acknowledged settlement and release. */
  readonly ends: { holdId: string; state: string; charged: number }[];
}

/** A balance that nobody has called. `isExact`: the outcome of each call becomes known. */
export function newBalance(id: string, initial: number, isExact: boolean): JournalBalance {
  const none = {
    spent: 0,
    added: 0,
    openSpent: 0,
    openAdded: 0,
    calls: 0,
    openCalls: 0,
    additions: 0,
    openAdditions: 0,
  };
  return { id, initial, ...none, moves: isExact ? [] : undefined };
}

/** Writes down that a call was sent that adds credits. */
export function sendAddition(balance: JournalBalance, value: number): void {
  balance.openAdded += value;
  balance.openCalls++;
  balance.openAdditions++;
}

/** Writes down that it was executed, and the balance that it left. */
export function recordAddition(balance: JournalBalance, value: number, after: number): void {
  balance.openAdded -= value;
  balance.openCalls--;
  balance.openAdditions--;
  balance.additions++;
  balance.added += value;
  balance.calls++;
  balance.moves?.push({ before: after - value, after });
}

/** Writes down that a call was sent that spends credits. */
export function sendSpend(balance: JournalBalance, cost: number): void {
  balance.openSpent += cost;
  balance.openCalls++;
}

/** Writes down that its outcome is known. */
export function closeSpend(balance: JournalBalance, cost: number): void {
  balance.openSpent -= cost;
  balance.openCalls--;
}

/** Writes down that it has spent, and the balance that it left. */
export function recordSpend(balance: JournalBalance, cost: number, after: number): void {
  balance.spent += cost;
  if (cost === 0) return;
  balance.calls++;
  balance.moves?.push({ before: after + cost, after });
}

/** A counter, and the calls that it admitted. */
export interface JournalLimit {
  name: string;
  limit: number;
  duration: number;
  mode: "standard" | "strict";
  admissions: (Admission & { node: number | undefined; reset: number })[];
  calls: number;
  /** The cost of all calls that were admitted or denied, by the window that `windowOf` names. */
  demand: Map<number, number>;
}

/** A window that does not end within the next day: its counter never passes its limit in the whole run. */
export const ENDLESS_MS = [30, 29, 28]
  .map((days) => days * DAY_MS)
  .find((ms) => ms - (systemClock.now() % ms) > DAY_MS)!;

export function newLimit(
  name: string,
  limit: number,
  duration: number,
  mode: JournalLimit["mode"] = "standard",
): JournalLimit {
  return { name, limit, duration, mode, admissions: [], calls: 0, demand: new Map() };
}

/** An answer of a limit. */
interface Counted {
  node: number | undefined;
  sentAt: number;
  answeredAt: number;
  reset: number;
}

/** Writes down that a call was admitted or denied. */
export function demand(limit: JournalLimit, cost: number, counted: Counted): void {
  const window = windowOf(limit, counted);
  limit.demand.set(window, (limit.demand.get(window) ?? 0) + cost);
}

export function admit(limit: JournalLimit, cost: number, { node, sentAt, answeredAt, reset }: Counted): void {
  limit.admissions.push({ node, cost, sentAt, answeredAt, reset });
}

/** Which window a call belongs to: the aligned one that its answer names. A strict limit has none, so its time is cut. */
export function windowOf(
  { duration, mode }: JournalLimit,
  { reset, sentAt }: { reset: number; sentAt: number },
): number {
  return mode === "strict" ? Math.floor(sentAt / duration) : reset;
}

/** An answer for a key whose deletion had been acknowledged. */
export interface RevokedAnswer {
  keyId: string;
  node: number;
  /** When the deletion was acknowledged. */
  revokedAt: number;
  /** Whether this node acknowledged it, in the first attempt. */
  isOwn: boolean;
  sentAt: number;
  isAccepted: boolean;
}

/** An answer of an edge for a key whose deletion had been acknowledged. */
export interface EdgeAnswer {
  keyId: string;
  edge: number;
  revokedAt: number;
  sentAt: number;
  isAccepted: boolean;
}

/** A key that one edge alone verifies, and nothing else is needed for. */
export interface JournalCounted {
  keyId: string;
  key: string;
  edge: number;
  /** When each verification was answered that the edge decided. */
  readonly answeredAt: number[];
  /** Verifications of which it is not known whether the edge decided them. */
  open: number;
}

/** A node, an edge, or (undefined) the load balancer or no one. */
export type Source = number | `edge ${number}` | undefined;

export function sourceOf({ node, edge }: Pick<Answer, "node" | "edge">): Source {
  return edge === undefined ? node : `edge ${edge}`;
}

/** What clients of edges were told. */
export interface JournalEdges {
  readonly revoked: EdgeAnswer[];
  /**
   * Balances that one client spends at edges, without Idempotency-Key, one call after the other, until the outcome of a call is not
   * known. So there are two ends of each.
   */
  readonly pools: JournalPool[];
  readonly counted: JournalCounted[];
}

/** What all clients were told. The books compare it with the database; the service's own figures are not used. */
export class Journal {
  readonly keys: JournalKey[] = [];
  readonly pools: JournalPool[] = [];
  readonly budgets: JournalBudget[] = [];
  readonly holds: JournalHolds = { budgets: [], made: [], ends: [] };
  readonly edges: JournalEdges = { revoked: [], pools: [], counted: [] };
  readonly limits: JournalLimit[] = [];
  readonly revoked: RevokedAnswer[] = [];
  /** Answers other than 200, without the expected ones. */
  readonly failures: Answer[] = [];
  /** Verifications of an existing key that denied its existence. */
  readonly denials: Answer[] = [];
  readonly statuses = new Map<string, number>();
  /** The number of answers by who was asked, and second. */
  readonly answers = new Map<Source, Map<number, number>>();
  /** Ids of events, in the order in which a program that follows them read them. */
  readonly followed: string[] = [];
  /** Verifications of keys that exist. */
  knownVerifications = 0;

  recordAnswer(answer: Answer, expected: readonly number[] = []): void {
    const { status, node, edge } = answer;
    const isBalancers = node === undefined && edge === undefined && status >= 500;
    const by = isBalancers ? " by the load balancer" : edge === undefined ? "" : " at an edge";
    const title = status === 0 ? "no answer" : `${status}${by}`;
    this.statuses.set(title, (this.statuses.get(title) ?? 0) + 1);
    const source = sourceOf(answer);
    const bySecond = this.answers.get(source) ?? new Map<number, number>();
    this.answers.set(source, bySecond);
    const second = Math.floor(answer.answeredAt / 1_000);
    bySecond.set(second, (bySecond.get(second) ?? 0) + 1);
    if (status !== 200 && !expected.includes(status)) this.failures.push(answer);
  }
}
