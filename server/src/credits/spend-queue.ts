import type { Milliseconds } from "../clock/clock.ts";
import { Fifo } from "./fifo.ts";

/** What the queue needs to know of a call. */
export interface QueuedCall {
  readonly workspaceId: string;
  readonly poolId: string;
  /** Identifies the call's Idempotency-Key, when it has one. */
  readonly scope: string | undefined;
  /** In the clock's monotonic milliseconds. */
  readonly arrivedAt: Milliseconds;
  /** Position in the order of arrival. */
  readonly sequence: number;
  /** Its share of a batch. */
  readonly weight: number;
}

/** Calls that may wait, in all. */
export const WAITING_MAX = 100_000;
/** Calls of one workspace that may wait. */
export const WORKSPACE_WAITING_MAX = WAITING_MAX / 2;
/** Calls of one pool that may wait. */
export const POOL_WAITING_MAX = WAITING_MAX / 4;

/** Pools that one batch may try to lock. */
const POOLS_MAX = 8_192;
/** Contended pools among them. */
const CONTENDED_MAX = 256;
/** Weight of one batch. */
const WEIGHT_MAX = 8_192;
/** Idempotency-Keys of one batch. Each takes a lock, and PostgreSQL's lock table is bounded. */
const SCOPES_MAX = 256;
/** Calls of one pool before it is the next pool's turn. */
const POOL_SLICE = 64;

/**
 * Where a pool stands. `idle`: no batch has it, and it has no calls. `ready`: it has calls and takes its turn. `chosen`:
 * a batch is about to lock it. `contended`: another transaction had its lock when a batch last tried. `waiting`: a
 * transaction of its own waits for its lock, or holds it.
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
  isInTurn: boolean;
}

/**
 * Calls that wait for a batch. Workspaces take turns, within them pools take turns, and the calls of a pool go in the
 * order of arrival. Of calls with the same Idempotency-Key one is queued; the others are parked behind it.
 */
export class SpendQueue<C extends QueuedCall> {
  readonly #pools = new Map<string, Pool<C>>();
  readonly #workspaces = new Map<string, Workspace<C>>();
  readonly #turns = new Fifo<Workspace<C>>();
  readonly #contended = new Fifo<Pool<C>>();
  /** By scope of a call that is queued or in a batch: the calls that repeat it. */
  readonly #parked = new Map<string, Fifo<C>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Whether a pool takes turns that was not found contended. */
  get hasReady(): boolean {
    return this.#turns.length > 0;
  }

  get hasContended(): boolean {
    return this.#contended.length > 0;
  }

  /** False: too many calls wait, in all, in its workspace or in its pool. */
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

  /** The pools that a batch is to lock. Each has to be given to `release`, `noteContended` or `noteWaiting`. */
  choose(): string[] {
    const chosen: string[] = [];
    const choose = (pool: Pool<C>) => {
      // Its calls may have expired.
      if (pool.calls.length === 0) return this.#forget(pool);
      pool.state = "chosen";
      chosen.push(pool.id);
    };
    for (let workspace = this.#turns.shift(); workspace; workspace = this.#turns.shift()) {
      const pool = workspace.ready.shift()!;
      if (workspace.ready.length > 0) this.#turns.push(workspace);
      else workspace.isInTurn = false;
      choose(pool);
      if (chosen.length >= POOLS_MAX) break;
    }
    for (let count = 0; count < CONTENDED_MAX && this.#contended.length > 0; count++) choose(this.#contended.shift()!);
    return chosen;
  }

  /** Takes calls of these pools, in the order of arrival: a slice of each in turn until the batch is full. */
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

  /** No transaction of ours needs these pools any more: they take turns if they have calls. */
  release(poolIds: readonly string[]): void {
    for (const id of poolIds) {
      const pool = this.#pools.get(id);
      if (!pool || pool.state === "contended") continue;
      pool.state = "idle";
      if (pool.calls.length > 0) this.#makeReady(pool);
      else this.#forget(pool);
    }
  }

  /** Another transaction has the pool's lock. */
  noteContended(poolId: string): void {
    const pool = this.#pools.get(poolId);
    if (pool?.state !== "chosen" && pool?.state !== "waiting") return;
    pool.state = "contended";
    this.#contended.push(pool);
  }

  /** A transaction of its own is to wait for the pool's lock. False: there is one already. */
  noteWaiting(poolId: string): boolean {
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

  /** Removes and gives the calls that arrived by then. */
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
    if (workspace.isInTurn) return;
    workspace.isInTurn = true;
    this.#turns.push(workspace);
  }

  #workspaceOf(id: string): Workspace<C> {
    let workspace = this.#workspaces.get(id);
    if (!workspace) {
      workspace = { id, ready: new Fifo(), pools: 0, waiting: 0, isInTurn: false };
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
    this.#forgetIfEmpty(workspace);
  }

  #forget({ id, workspace }: Pool<C>): void {
    this.#pools.delete(id);
    workspace.pools--;
    this.#forgetIfEmpty(workspace);
  }

  #forgetIfEmpty({ id, pools, waiting }: Workspace<C>): void {
    if (pools === 0 && waiting === 0) this.#workspaces.delete(id);
  }
}
