import type { Milliseconds } from "../clock/clock.ts";
import { TurnoverMap } from "../collections/turnover-map.ts";
import { Fifo } from "./fifo.ts";

/** The part of a call, or of a change of a hold, that the queue uses. */
export interface QueuedCall {
  /** Whether it changes a hold: it has room of its own and is served first. */
  readonly isChange: boolean;
  readonly workspaceId: string;
  /** The balances that must be locked to decide the call. */
  readonly balances: readonly string[];
  /** Identifies these balances. */
  readonly lane: string;
  /** Identifies the call's Idempotency-Key; undefined without one. */
  readonly scope: string | undefined;
  /** By the monotonic clock. */
  readonly arrivedAt: Milliseconds;
  /** Position in the order of arrival. */
  readonly sequence: number;
  /** Its share of the weight of a batch. */
  readonly weight: number;
}

/** The most waiting calls in total. */
export const WAITING_MAX = 100_000;
/** The most waiting changes of holds in total, which have no room of calls: they give credits back that calls lack. */
export const CHANGES_WAITING_MAX = WAITING_MAX / 10;
/** The part of the room that one workspace can have. */
const WORKSPACE_PART = 1 / 2;
/** The part of the room that one balance can have. */
const BALANCE_PART = 1 / 4;
/** The most waiting calls of one workspace. */
export const WORKSPACE_WAITING_MAX = WAITING_MAX * WORKSPACE_PART;
/** The most waiting calls of one balance. */
export const BALANCE_WAITING_MAX = WAITING_MAX * BALANCE_PART;

/** The most balances that one batch tries to lock, not counting the further ones of its last lane. */
const BALANCES_MAX = 8_192;
/** The most contended lanes that a batch tries again. */
const CONTENDED_MAX = 256;
/** The most weight of one batch. */
const WEIGHT_MAX = 8_192;
/**
 * The most claims of one batch: Idempotency-Keys, and changes of holds without balances. Each takes a lock, and PostgreSQL's
 * lock table is limited.
 */
export const CLAIMS_MAX = 256;
/** The most calls of one lane before the next lane is served. */
const LANE_SLICE = 64;
/** How long a balance that was contended is left to waiters. */
const CONTENTION: Milliseconds = 1_000;

/** A balance that waiting calls have. */
interface Balance<C> {
  readonly id: string;
  /** The lane of the calls that have no other balance. */
  alone: Lane<C> | undefined;
  /** How many lanes have it. */
  lanes: number;
  /** How many calls of these lanes wait. */
  waiting: number;
  /** How many changes of these lanes wait. */
  changes: number;
  /** The last selection that contains it. */
  selection: number;
}

/**
 * Calls of the same balances. `idle`: it has no calls and is in no batch. `ready`: it has calls and is in the round-robin.
 * `chosen`: a transaction is about to lock its balances, or has locked them. `contended`: another transaction had a balance
 * when it was last tried, or it is left to a waiter.
 */
export interface Lane<C> {
  readonly id: string;
  /** Whether it has changes of holds, and no calls. */
  readonly isOfChanges: boolean;
  readonly workspace: Workspace<C>;
  /** In the order of its calls. */
  readonly balances: readonly Balance<C>[];
  readonly calls: Fifo<C>;
  state: "idle" | "ready" | "chosen" | "contended";
  /** The balance to wait for, if it is contended. */
  missing: string;
}

interface Workspace<C> {
  readonly id: string;
  readonly ready: Fifo<Lane<C>>;
  lanes: number;
  waiting: number;
  changes: number;
  isQueued: boolean;
}

/** Lanes for a transaction, and the balances that it locks, each once. */
export interface Selection<C> {
  readonly lanes: Lane<C>[];
  readonly balanceIds: string[];
}

/**
 * Calls that wait for a batch, in lanes: calls of the same balances. Workspaces are served round-robin, and so are the lanes
 * of a workspace; the calls of a lane are served in the order of arrival. Of calls with the same Idempotency-Key one is
 * queued and the others are parked.
 *
 * Contended lanes are left to waiters.
 */
export class SpendQueue<C extends QueuedCall> {
  readonly #balances = new TurnoverMap<string, Balance<C>>();
  /** The lanes of several balances, and those of changes. */
  readonly #lanes = new TurnoverMap<string, Lane<C>>();
  readonly #workspaces = new TurnoverMap<string, Workspace<C>>();
  readonly #workspaceQueue = new Fifo<Workspace<C>>();
  /** Contended lanes that are left to waiters. */
  readonly #left = new Fifo<Lane<C>>();
  /** The balances that were contended lately, with the time until which they are left to waiters, in its order. */
  readonly #contentions = new Map<string, Milliseconds>();
  /** The parked calls by the scope of a call that is queued or in a batch. */
  readonly #parked = new TurnoverMap<string, Fifo<C>>();
  #selections = 0;
  #waiting = 0;
  #changes = 0;

  /** How many calls and changes wait. */
  get size(): number {
    return this.#waiting + this.#changes;
  }

  /** Whether any lane is ready. */
  get hasReady(): boolean {
    return this.#workspaceQueue.length > 0;
  }

  /** Whether contended lanes are left to waiters. */
  get hasLeft(): boolean {
    return this.#left.length > 0;
  }

  /** Adds a call; false if too many of its kind wait in total, in its workspace or for one of its balances. */
  push(call: C): boolean {
    const { isChange } = call;
    const max = isChange ? CHANGES_WAITING_MAX : WAITING_MAX;
    if ((isChange ? this.#changes : this.#waiting) >= max) return false;
    const workspace = this.#workspaceOf(call.workspaceId);
    if ((isChange ? workspace.changes : workspace.waiting) >= max * WORKSPACE_PART) return false;
    const parked = call.scope === undefined ? undefined : this.#parked.get(call.scope);
    if (parked) {
      if (parked.length >= BALANCE_WAITING_MAX) return false;
      parked.push(call);
      this.#count(workspace, 1);
      return true;
    }
    const lane = this.#laneOf(call, workspace);
    for (const balance of lane.balances) {
      if ((isChange ? balance.changes : balance.waiting) < max * BALANCE_PART) continue;
      if (lane.state === "idle") this.#remove(lane);
      return false;
    }
    if (call.scope !== undefined) this.#parked.set(call.scope, new Fifo());
    this.#enqueue(lane, call);
    return true;
  }

  /**
   * Selects the lanes of a batch. Each one must be passed to `release` or `leave`.
   *
   * @param mayLeave whether a waiter can take the lanes that are left; otherwise the batch tries them.
   */
  choose(now: Milliseconds, mayLeave: boolean): Selection<C> {
    for (const [id, until] of this.#contentions) {
      if (until > now) break;
      this.#contentions.delete(id);
    }
    const selection = this.#newSelection();
    for (let workspace = this.#workspaceQueue.shift(); workspace; workspace = this.#workspaceQueue.shift()) {
      const lane = workspace.ready.shift()!;
      if (workspace.ready.length > 0) this.#workspaceQueue.push(workspace);
      else workspace.isQueued = false;
      const contended = mayLeave ? this.#contendedOf(lane) : undefined;
      if (contended === undefined) this.#select(lane, selection);
      else this.#leave(lane, contended);
      if (selection.balanceIds.length >= BALANCES_MAX) break;
    }
    for (let i = 0; !mayLeave && i < CONTENDED_MAX; i++) {
      const lane = this.#left.shift();
      if (!lane) break;
      this.#select(lane, selection);
    }
    return selection;
  }

  /** The balance of the first lane that is left to waiters and for which none waits. */
  nextAwaited(awaited: ReadonlySet<string>): string | undefined {
    // Their calls may have expired.
    for (let lane = this.#left.peek(); lane?.calls.length === 0; lane = this.#left.peek()) {
      this.#left.shift();
      this.#remove(lane);
    }
    return this.#left.find(({ calls, missing }) => calls.length > 0 && !awaited.has(missing))?.missing;
  }

  /**
   * Selects the lanes of a waiter that has locked a balance: all that are left and whose missing balance is accepted.
   *
   * @param contendedAt the time, if other nodes still use these balances, which then count as contended at this time.
   */
  join(accepts: (missing: string) => boolean, contendedAt: Milliseconds | undefined): readonly Lane<C>[] {
    const selection = this.#newSelection();
    for (const lane of this.#left.drain()) {
      if (selection.balanceIds.length < BALANCES_MAX && accepts(lane.missing)) {
        if (contendedAt !== undefined) this.#contend(lane.missing, contendedAt);
        this.#select(lane, selection);
      } else this.#left.push(lane);
    }
    return selection.lanes;
  }

  /**
   * Takes calls of these lanes in the order of arrival: a slice of each lane until the batch is full. First those of all
   * changes.
   */
  take(lanes: readonly Lane<C>[]): C[] {
    const ofChanges = lanes.filter(({ isOfChanges }) => isOfChanges);
    if (ofChanges.length === 0) return this.#takeSlices(lanes, WEIGHT_MAX);
    const changes = this.#takeSlices(ofChanges, WEIGHT_MAX);
    const ofCalls = lanes.filter(({ isOfChanges }) => !isOfChanges);
    return [...changes, ...this.#takeSlices(ofCalls, WEIGHT_MAX - changes.length)];
  }

  #takeSlices(lanes: readonly Lane<C>[], weightMax: number): C[] {
    const batch: C[] = [];
    let weight = 0;
    let claims = 0;
    let turns = lanes;
    while (turns.length > 0 && weight < weightMax) {
      const next: Lane<C>[] = [];
      for (const lane of turns) {
        let taken = 0;
        for (; taken < LANE_SLICE && weight < weightMax; taken++) {
          const call = lane.calls.peek();
          if (!call) break;
          const isClaim = call.scope !== undefined || call.balances.length === 0;
          if (isClaim && claims === CLAIMS_MAX) break;
          lane.calls.shift();
          batch.push(call);
          weight += call.weight;
          if (isClaim) claims++;
        }
        this.#countOf(lane, -taken);
        if (taken === LANE_SLICE) next.push(lane);
      }
      turns = next;
    }
    return lanes.length === 1 ? batch : batch.sort((a, b) => a.sequence - b.sequence);
  }

  /** Takes everything that is queued in these lanes. */
  takeAll(lanes: readonly Lane<C>[]): C[] {
    const all: C[] = [];
    for (const lane of lanes) {
      const { length } = lane.calls;
      for (let call = lane.calls.shift(); call; call = lane.calls.shift()) all.push(call);
      this.#countOf(lane, -length);
    }
    return all;
  }

  /** Puts calls back that were taken and not decided, before all others of their lanes. */
  putBack(calls: readonly C[]): void {
    for (const ofLane of Map.groupBy(calls, ({ lane }) => lane).values()) {
      const first = ofLane[0]!;
      const lane = this.#laneOf(first, this.#workspaceOf(first.workspaceId));
      lane.calls.unshift(ofLane);
      this.#countOf(lane, ofLane.length);
      if (lane.state === "idle") this.#makeReady(lane);
    }
  }

  /** Called when no transaction of this node uses these lanes any more: those with calls become ready. */
  release(lanes: readonly Lane<C>[]): void {
    for (const lane of lanes) {
      lane.state = "idle";
      if (lane.calls.length > 0) this.#makeReady(lane);
      else this.#remove(lane);
    }
  }

  /** Another transaction has a balance of this lane: it is left to a waiter. */
  leave(lane: Lane<C>, balanceId: string, now: Milliseconds): void {
    this.#contend(balanceId, now);
    this.#leave(lane, balanceId);
  }

  /**
   * A call with an Idempotency-Key is over. Gives the calls that repeat it and that `answers` accepts; the first other
   * one takes its place in the queue.
   */
  finish(scope: string, answers: (call: C) => boolean): C[] {
    const parked = this.#parked.get(scope);
    if (!parked) return [];
    const answered: C[] = [];
    for (let call = parked.shift(); call; call = parked.shift()) {
      const workspace = this.#workspaceOf(call.workspaceId);
      if (answers(call)) {
        answered.push(call);
        this.#count(workspace, -1);
        continue;
      }
      this.#enqueue(this.#laneOf(call, workspace), call);
      this.#count(workspace, -1);
      return answered;
    }
    this.#parked.delete(scope);
    return answered;
  }

  /** Removes and returns the calls that arrived by this time. */
  expire(until: Milliseconds): C[] {
    const expired: C[] = [];
    const drop = (calls: Fifo<C>) => {
      const before = expired.length;
      for (let call = calls.peek(); call && call.arrivedAt <= until; call = calls.peek()) {
        calls.shift();
        expired.push(call);
      }
      return expired.length - before;
    };
    for (const parked of this.#parked.values()) drop(parked);
    const parkedCount = expired.length;
    for (const { workspaceId } of expired) this.#count(this.#workspaceOf(workspaceId), -1);
    for (const { alone } of this.#balances.values()) if (alone) this.#countOf(alone, -drop(alone.calls));
    for (const lane of this.#lanes.values()) this.#countOf(lane, -drop(lane.calls));
    for (const { scope } of expired.slice(parkedCount)) if (scope !== undefined) this.finish(scope, () => false);
    return expired;
  }

  #newSelection(): Selection<C> {
    this.#selections++;
    return { lanes: [], balanceIds: [] };
  }

  #select(lane: Lane<C>, { lanes, balanceIds }: Selection<C>): void {
    // Its calls may have expired.
    if (lane.calls.length === 0) {
      this.#remove(lane);
      return;
    }
    lane.state = "chosen";
    lanes.push(lane);
    for (const balance of lane.balances) {
      if (balance.selection === this.#selections) continue;
      balance.selection = this.#selections;
      balanceIds.push(balance.id);
    }
  }

  #contend(balanceId: string, now: Milliseconds): void {
    this.#contentions.delete(balanceId);
    this.#contentions.set(balanceId, now + CONTENTION);
  }

  #contendedOf({ balances }: Lane<C>): string | undefined {
    if (this.#contentions.size === 0) return undefined;
    return balances.find(({ id }) => this.#contentions.has(id))?.id;
  }

  #leave(lane: Lane<C>, balanceId: string): void {
    lane.state = "contended";
    lane.missing = balanceId;
    this.#left.push(lane);
  }

  #enqueue(lane: Lane<C>, call: C): void {
    lane.calls.push(call);
    this.#countOf(lane, 1);
    if (lane.state === "idle") this.#makeReady(lane);
  }

  #makeReady(lane: Lane<C>): void {
    const { workspace } = lane;
    lane.state = "ready";
    workspace.ready.push(lane);
    if (workspace.isQueued) return;
    workspace.isQueued = true;
    this.#workspaceQueue.push(workspace);
  }

  #workspaceOf(id: string): Workspace<C> {
    let workspace = this.#workspaces.get(id);
    if (!workspace) {
      workspace = { id, ready: new Fifo(), lanes: 0, waiting: 0, changes: 0, isQueued: false };
      this.#workspaces.set(id, workspace);
    }
    return workspace;
  }

  #laneOf({ lane: id, balances: ids, isChange: isOfChanges }: C, workspace: Workspace<C>): Lane<C> {
    const isAlone = ids.length === 1 && !isOfChanges;
    const known = isAlone ? this.#balances.get(id)?.alone : this.#lanes.get(id);
    if (known) return known;
    const balances = ids.map((balanceId) => this.#balanceOf(balanceId));
    const calls = new Fifo<C>();
    const lane: Lane<C> = { id, isOfChanges, workspace, balances, calls, state: "idle", missing: "" };
    for (const balance of balances) balance.lanes++;
    workspace.lanes++;
    if (isAlone) for (const balance of balances) balance.alone = lane;
    else this.#lanes.set(id, lane);
    return lane;
  }

  #balanceOf(id: string): Balance<C> {
    let balance = this.#balances.get(id);
    if (!balance) {
      balance = { id, alone: undefined, lanes: 0, waiting: 0, changes: 0, selection: 0 };
      this.#balances.set(id, balance);
    }
    return balance;
  }

  /** Counts calls of a lane. */
  #countOf({ isOfChanges, balances, workspace }: Lane<C>, difference: number): void {
    if (!isOfChanges) {
      for (const balance of balances) balance.waiting += difference;
      this.#count(workspace, difference);
      return;
    }
    for (const balance of balances) balance.changes += difference;
    workspace.changes += difference;
    this.#changes += difference;
  }

  #count(workspace: Workspace<C>, difference: number): void {
    this.#waiting += difference;
    workspace.waiting += difference;
    this.#removeIfEmpty(workspace);
  }

  #remove(lane: Lane<C>): void {
    const { id, workspace, balances } = lane;
    this.#lanes.delete(id);
    for (const balance of balances) {
      if (balance.alone === lane) balance.alone = undefined;
      if (--balance.lanes === 0) this.#balances.delete(balance.id);
    }
    workspace.lanes--;
    this.#removeIfEmpty(workspace);
  }

  #removeIfEmpty({ id, lanes, waiting }: Workspace<C>): void {
    if (lanes === 0 && waiting === 0) this.#workspaces.delete(id);
  }
}
