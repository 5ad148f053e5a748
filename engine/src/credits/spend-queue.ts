import type { Milliseconds } from "../clock/clock.ts";
import { Fifo } from "./fifo.ts";

/** The part of a call that the queue uses. */
export interface QueuedCall {
  readonly workspaceId: string;
  readonly poolId: string;
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
/** The most waiting calls of one workspace. */
export const WORKSPACE_WAITING_MAX = WAITING_MAX / 2;
/** The most waiting calls of one pool. */
export const POOL_WAITING_MAX = WAITING_MAX / 4;

/** The most pools that one batch tries to lock. */
const POOLS_MAX = 8_192;
/** The most contended pools among them. */
const CONTENDED_MAX = 256;
/** The most weight of one batch. */
const WEIGHT_MAX = 8_192;
/** The most Idempotency-Keys of one batch. Each takes a lock, and PostgreSQL's lock table is limited. */
const SCOPES_MAX = 256;
/** The most calls of one pool before the next pool is served. */
const POOL_SLICE = 64;

/**
 * The state of a pool. `idle`: it has no calls and is in no batch. `ready`: it has calls and is in the round-robin.
 * `chosen`: a batch is about to lock it. `contended`: another transaction held its lock when a batch last tried. `waiting`:
 * a separate transaction waits for its lock or holds it.
 */
type PoolState = "idle" | "ready" | "chosen" | "contended" | "waiting";

interface Pool<C> {
  readonly id: string;
  readonly workspace: Workspace<C>;
  readonly calls: Fifo<C>;
  state: PoolState;
}

interface Workspace<C> {
  readonly id: string;
  readonly ready: Fifo<Pool<C>>;
  pools: number;
  waiting: number;
  isQueued: boolean;
}

/**
 * Calls that wait for a batch. Workspaces are served round-robin, and so are the pools of a workspace; the calls of a pool
 * are served in the order of arrival. Of calls with the same Idempotency-Key one is queued and the others are parked.
 */
export class SpendQueue<C extends QueuedCall> {
  readonly #pools = new Map<string, Pool<C>>();
  readonly #workspaces = new Map<string, Workspace<C>>();
  readonly #workspaceQueue = new Fifo<Workspace<C>>();
  readonly #contended = new Fifo<Pool<C>>();
  /** The parked calls by the scope of a call that is queued or in a batch. */
  readonly #parked = new Map<string, Fifo<C>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Whether any pool is ready. */
  get hasReady(): boolean {
    return this.#workspaceQueue.length > 0;
  }

  get hasContended(): boolean {
    return this.#contended.length > 0;
  }

  /** Adds a call; false if too many calls wait in total, in its workspace or in its pool. */
  push(call: C): boolean {
    if (this.#size >= WAITING_MAX) return false;
    const workspace = this.#workspaceOf(call.workspaceId);
    if (workspace.waiting >= WORKSPACE_WAITING_MAX) return false;
    const parked = call.scope === undefined ? undefined : this.#parked.get(call.scope);
    if (parked) {
      if (parked.length >= POOL_WAITING_MAX) return false;
      parked.push(call);
      this.#count(workspace, 1);
      return true;
    }
    const pool = this.#poolOf(call.poolId, workspace);
    if (pool.calls.length >= POOL_WAITING_MAX) return false;
    if (call.scope !== undefined) this.#parked.set(call.scope, new Fifo());
    this.#enqueue(pool, call);
    this.#count(workspace, 1);
    return true;
  }

  /** Returns the pools that a batch should lock. The caller must pass each one to `release`, `markContended` or `markWaiting`. */
  choose(): string[] {
    const chosen: string[] = [];
    const choose = (pool: Pool<C>) => {
      // Its calls may have expired.
      if (pool.calls.length === 0) return this.#removePool(pool);
      pool.state = "chosen";
      chosen.push(pool.id);
    };
    for (let workspace = this.#workspaceQueue.shift(); workspace; workspace = this.#workspaceQueue.shift()) {
      const pool = workspace.ready.shift()!;
      if (workspace.ready.length > 0) this.#workspaceQueue.push(workspace);
      else workspace.isQueued = false;
      choose(pool);
      if (chosen.length >= POOLS_MAX) break;
    }
    for (let count = 0; count < CONTENDED_MAX && this.#contended.length > 0; count++) choose(this.#contended.shift()!);
    return chosen;
  }

  /** Takes calls of these pools in the order of arrival: a slice of each pool until the batch is full. */
  take(poolIds: readonly string[]): C[] {
    const batch: C[] = [];
    let weight = 0;
    let scopes = 0;
    let turns = poolIds.flatMap((id) => this.#pools.get(id) ?? []);
    while (turns.length > 0 && weight < WEIGHT_MAX) {
      const next: Pool<C>[] = [];
      for (const pool of turns) {
        let taken = 0;
        for (; taken < POOL_SLICE && weight < WEIGHT_MAX; taken++) {
          const call = pool.calls.peek();
          if (!call || (call.scope !== undefined && scopes === SCOPES_MAX)) break;
          pool.calls.shift();
          batch.push(call);
          weight += call.weight;
          if (call.scope !== undefined) scopes++;
        }
        this.#count(pool.workspace, -taken);
        if (taken === POOL_SLICE) next.push(pool);
      }
      turns = next;
    }
    return poolIds.length === 1 ? batch : batch.sort((a, b) => a.sequence - b.sequence);
  }

  /** Takes everything that is queued for these pools. */
  takeAll(poolIds: readonly string[]): C[] {
    const all: C[] = [];
    for (const id of poolIds) {
      const pool = this.#pools.get(id);
      for (let call = pool?.calls.shift(); call; call = pool!.calls.shift()) {
        all.push(call);
        this.#count(this.#workspaceOf(call.workspaceId), -1);
      }
    }
    return all;
  }

  /** Puts calls back that were taken and not decided, before all others of their pools. */
  putBack(calls: readonly C[]): void {
    for (const [poolId, ofPool] of Map.groupBy(calls, (call) => call.poolId)) {
      const workspace = this.#workspaceOf(ofPool[0]!.workspaceId);
      const pool = this.#poolOf(poolId, workspace);
      pool.calls.unshift(ofPool);
      this.#count(workspace, ofPool.length);
      if (pool.state === "idle") this.#makeReady(pool);
    }
  }

  /** Called when no transaction of this node uses these pools any more: those with calls become ready. */
  release(poolIds: readonly string[]): void {
    for (const id of poolIds) {
      const pool = this.#pools.get(id);
      if (!pool || pool.state === "contended") continue;
      pool.state = "idle";
      if (pool.calls.length > 0) this.#makeReady(pool);
      else this.#removePool(pool);
    }
  }

  /** Another transaction has the pool's lock. */
  markContended(poolId: string): void {
    const pool = this.#pools.get(poolId);
    if (pool?.state !== "chosen" && pool?.state !== "waiting") return;
    pool.state = "contended";
    this.#contended.push(pool);
  }

  /** A transaction of its own is to wait for the pool's lock. False: there is one already. */
  markWaiting(poolId: string): boolean {
    const pool = this.#pools.get(poolId);
    if (pool?.state !== "chosen") return false;
    pool.state = "waiting";
    return true;
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
      this.#count(workspace, -1);
      if (answers(call)) {
        answered.push(call);
        continue;
      }
      this.#count(workspace, 1);
      this.#enqueue(this.#poolOf(call.poolId, workspace), call);
      return answered;
    }
    this.#parked.delete(scope);
    return answered;
  }

  /** Removes and returns the calls that arrived by this time. */
  expire(until: Milliseconds): C[] {
    const expired: C[] = [];
    const drop = (calls: Fifo<C>) => {
      for (let call = calls.peek(); call && call.arrivedAt <= until; call = calls.peek()) {
        calls.shift();
        expired.push(call);
        this.#count(this.#workspaceOf(call.workspaceId), -1);
      }
    };
    for (const parked of this.#parked.values()) drop(parked);
    const parkedCount = expired.length;
    for (const pool of this.#pools.values()) drop(pool.calls);
    for (const { scope } of expired.slice(parkedCount)) if (scope !== undefined) this.finish(scope, () => false);
    return expired;
  }

  #enqueue(pool: Pool<C>, call: C): void {
    pool.calls.push(call);
    if (pool.state === "idle") this.#makeReady(pool);
  }

  #makeReady(pool: Pool<C>): void {
    const { workspace } = pool;
    pool.state = "ready";
    workspace.ready.push(pool);
    if (workspace.isQueued) return;
    workspace.isQueued = true;
    this.#workspaceQueue.push(workspace);
  }

  #workspaceOf(id: string): Workspace<C> {
    let workspace = this.#workspaces.get(id);
    if (!workspace) {
      workspace = { id, ready: new Fifo(), pools: 0, waiting: 0, isQueued: false };
      this.#workspaces.set(id, workspace);
    }
    return workspace;
  }

  #poolOf(id: string, workspace: Workspace<C>): Pool<C> {
    let pool = this.#pools.get(id);
    if (!pool) {
      pool = { id, workspace, calls: new Fifo(), state: "idle" };
      workspace.pools++;
      this.#pools.set(id, pool);
    }
    return pool;
  }

  #count(workspace: Workspace<C>, difference: number): void {
    this.#size += difference;
    workspace.waiting += difference;
    this.#removeIfEmpty(workspace);
  }

  #removePool({ id, workspace }: Pool<C>): void {
    this.#pools.delete(id);
    workspace.pools--;
    this.#removeIfEmpty(workspace);
  }

  #removeIfEmpty({ id, pools, waiting }: Workspace<C>): void {
    if (pools === 0 && waiting === 0) this.#workspaces.delete(id);
  }
}
