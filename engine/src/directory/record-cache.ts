import type { Clock, Milliseconds } from "../clock/clock.ts";
import { DecidedElsewhere } from "../errors/decided-elsewhere.ts";
import { StoreUnavailable } from "../errors/store-unavailable.ts";
import type { Generations } from "./generations.ts";
import { NegativeCache } from "./negative-cache.ts";

/**
 * A record in the cache. A record can be its own entry, which saves the memory of a second object; others are in one of
 * the class `Entry`.
 */
export abstract class CacheEntry<R> {
  abstract readonly record: R;
  /** Estimated memory of the record and its entry. */
  abstract readonly bytes: number;
  /** The name under which it is cached. */
  name = "";
  /** A generation at which the record was valid: when it was read, or when its slots were last compared. */
  generation = 0;
  /** Whether the record was used since the hand last passed. */
  visited = false;
  /** Index in the ring. */
  index = 0;

  /** @param slots the generation slots of the tags that outdate the record: of its name, then of `LoadedRecord.tags`. */
  abstract setSlots(slots: readonly number[]): void;

  /** Whether none of its slots changed after this generation. */
  abstract areSlotsUnchanged(generations: Generations, generation: number): boolean;
}

class Entry<R> extends CacheEntry<R> {
  readonly record: R;
  readonly bytes: number;
  #slots: readonly number[] = [];

  constructor(record: R, bytes: number) {
    super();
    this.record = record;
    this.bytes = bytes;
  }

  override setSlots(slots: readonly number[]): void {
    this.#slots = slots;
  }

  override areSlotsUnchanged(generations: Generations, generation: number): boolean {
    return generations.areUnchanged(this.#slots, generation);
  }
}

/** The result of a look-up in the store: the record to cache, the tags that outdate it, and its estimated memory. */
export interface LoadedRecord<R> {
  record: R | null;
  tags: readonly string[];
  bytes: number;
}

export interface RecordCacheOptions<R> {
  clock: Clock;
  generations: Generations;
  /** Reads the records of these names in one query. Names without a result do not exist. */
  load(names: readonly string[]): Promise<ReadonlyMap<string, LoadedRecord<R>>>;
  /** The tag that is invalidated when a record of this name is created. */
  tagOf(name: string): string;
  /** False if this name certainly has no record, so that no look-up is necessary. */
  mayExist?(name: string): boolean;
  /** Bound on the memory of the records. */
  bytesMax: number;
  /**
   * Queries at the same time; 2 by default. 1 where they wait for each other in any case: then misses that arrive during one query
   * share the next.
   */
  loadsAtOnce?: number | undefined;
  /** Counters for the metrics. */
  counts: RecordCacheCounts;
}

export interface RecordCacheCounts {
  hits: number;
  misses: number;
  loads: number;
  evictions: number;
  entries: number;
  bytes: number;
}

export function newRecordCacheCounts(): RecordCacheCounts {
  return { hits: 0, misses: 0, loads: 0, evictions: 0, entries: 0, bytes: 0 };
}

/** The negative cache may use 1/8 of `bytesMax`, in addition to it. */
const NEGATIVE_SHARE = 8;
const NAMES_PER_LOAD_MAX = 128;
/** The number of records that an eviction may spare before it evicts one. */
const CHANCES_PER_EVICTION = 16;
/** A Map rehashes all its entries when it grows, so the names are spread over many small ones. A power of two. */
const SHARDS = 64;
const LOADS_AT_ONCE = 2;
/** Failed queries of one look-up, after which no more names are asked for apart. Enough for four names of 128 that cannot be read. */
const FAILURES_MAX = 32;
/** For how long a record is read again because it changed during each of its queries. */
const LOAD_TIME_MAX: Milliseconds = 5_000;

/** A look-up that callers wait for. */
interface PendingLoad<R> {
  readonly promise: Promise<R | null>;
  resolve(record: R | null): void;
  reject(error: unknown): void;
  readonly startedAt: Milliseconds;
}

/** The result of a look-up without a record. It is outdated by the tag of the name and by `tags`. */
export function missingRecord(tags: readonly string[] = []): LoadedRecord<never> {
  return { record: null, tags, bytes: 0 };
}

/**
 * A cache of records from the database.
 *
 * `get` answers from memory. `load` asks the database: concurrent misses of one name share one look-up, misses of one
 * turn of the event loop share one query, and a result that a change has outdated during the query is read again. Memory
 * is bounded in bytes; the CLOCK algorithm (second chance) evicts records that were not used since its last round.
 */
export class RecordCache<R> {
  readonly #options: RecordCacheOptions<R>;
  readonly #shards = Array.from({ length: SHARDS }, () => new Map<string, CacheEntry<R>>());
  /** All entries, in the circular list of the CLOCK algorithm. */
  readonly #ring: CacheEntry<R>[] = [];
  #hand = 0;
  /** Names without a record. Separate, so that look-ups of invented names evict no record. */
  readonly #negativeCache: NegativeCache;
  readonly #pending = new Map<string, PendingLoad<R>>();
  #queue: string[] = [];
  #loads = 0;
  #isScheduled = false;
  /** The name of the latest miss, if nothing was loaded since: a call that misses asks a second time before it loads. */
  #latestMiss = "";

  constructor(options: RecordCacheOptions<R>) {
    this.#options = options;
    const { clock, generations, bytesMax } = options;
    this.#negativeCache = new NegativeCache({ clock, generations, bytesMax: bytesMax / NEGATIVE_SHARE });
  }

  /** The cached record; null if the name is cached as missing; undefined on a cache miss. */
  get(name: string): R | null | undefined {
    const { counts, generations, mayExist } = this.#options;
    const entry = this.#shardOf(name).get(name);
    if (entry !== undefined && isValid(entry, generations)) {
      entry.visited = true;
      counts.hits++;
      return entry.record;
    }
    if (name === this.#latestMiss) return undefined;
    if (mayExist?.(name) === false || this.#negativeCache.has(name)) {
      counts.hits++;
      return null;
    }
    counts.misses++;
    this.#latestMiss = name;
    return undefined;
  }

  /** The record if it is cached and valid. Without one nothing is counted, and nothing is said about the name. */
  peek(name: string): R | undefined {
    const { counts, generations } = this.#options;
    const entry = counts.entries === 0 ? undefined : this.#shardOf(name).get(name);
    if (entry === undefined || !isValid(entry, generations)) return undefined;
    entry.visited = true;
    counts.hits++;
    return entry.record;
  }

  /** Whether a record of this name is in the cache, although a change may have outdated it. */
  has(name: string): boolean {
    return this.#shardOf(name).has(name);
  }

  /** Loads a record from the store. Rejects when the store does. */
  load(name: string): Promise<R | null> {
    let pending = this.#pending.get(name);
    if (!pending) {
      const { promise, resolve, reject } = Promise.withResolvers<R | null>();
      pending = { promise, resolve, reject, startedAt: this.#options.clock.monotonic() };
      this.#pending.set(name, pending);
      this.#enqueue(name);
    }
    return pending.promise;
  }

  /**
   * Caches rows that no call has asked for, except those that are cached and those that changed during the query. Counts neither
   * misses nor look-ups.
   */
  async fill<S>(
    read: () => Promise<readonly S[]>,
    { nameOf, toRecord }: { nameOf(row: S): string; toRecord(row: S): LoadedRecord<R> },
  ): Promise<void> {
    const { generations } = this.#options;
    const generation = generations.newest();
    for (const row of await read()) {
      const name = nameOf(row);
      if (this.has(name)) continue;
      const loaded = toRecord(row);
      const slots = this.#slotsOf(name, loaded);
      if (loaded.record === null || !generations.areUnchanged(slots, generation)) continue;
      this.#insert(name, loaded.record, loaded.bytes, generation, slots);
    }
  }

  #enqueue(name: string): void {
    this.#queue.push(name);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // After the other events of this turn of the loop, so that requests that arrived together share one query.
    setImmediate(() => {
      this.#isScheduled = false;
      this.#startLoads();
    });
  }

  #startLoads(): void {
    const { loadsAtOnce = LOADS_AT_ONCE } = this.#options;
    while (this.#queue.length > 0 && this.#loads < loadsAtOnce) {
      const names = this.#queue.splice(0, NAMES_PER_LOAD_MAX);
      this.#loads++;
      void this.#loadApart(names).finally(() => {
        this.#loads--;
        this.#startLoads();
      });
    }
  }

  /**
   * Loads records. A name that the store cannot look up, or a record that it cannot read, fails only those who wait for it, although
   * it fails the query for all.
   */
  async #loadApart(names: readonly string[]): Promise<void> {
    const batches = [names];
    let failures = 0;
    for (let batch = batches.pop(); batch !== undefined; batch = batches.pop()) {
      try {
        await this.#loadBatch(batch);
      } catch (error) {
        failures++;
        const isOfAll = error instanceof StoreUnavailable || error instanceof DecidedElsewhere;
        if (isOfAll || failures === FAILURES_MAX) return this.#fail([batch, ...batches].flat(), error);
        const half = batch.length >> 1;
        if (half === 0) this.#fail(batch, error);
        else batches.push(batch.slice(0, half), batch.slice(half));
      }
    }
  }

  async #loadBatch(names: readonly string[]): Promise<void> {
    const { clock, generations, load, counts } = this.#options;
    counts.loads++;
    const generation = generations.newest();
    const results = await load(names);
    this.#latestMiss = "";
    for (const name of names) {
      const loaded = results.get(name) ?? missingRecord();
      const slots = this.#slotsOf(name, loaded);
      const pending = this.#pending.get(name)!;
      if (!generations.areUnchanged(slots, generation)) {
        // A tag changed during the query. Some callers may have arrived after that change was acknowledged, so the old
        // result must not answer any of them.
        if (clock.monotonic() - pending.startedAt < LOAD_TIME_MAX) this.#enqueue(name);
        else this.#fail([name], new StoreUnavailable("A record changed faster than it could be read"));
        continue;
      }
      this.#remove(name);
      const { record, bytes } = loaded;
      if (record === null) this.#negativeCache.add(name, generation, slots);
      else this.#insert(name, record, bytes, generation, slots);
      this.#pending.delete(name);
      pending.resolve(record);
    }
  }

  #fail(names: readonly string[], error: unknown): void {
    for (const name of names) {
      this.#pending.get(name)?.reject(error);
      this.#pending.delete(name);
    }
  }

  #slotsOf(name: string, { tags }: LoadedRecord<R>): number[] {
    const { generations, tagOf } = this.#options;
    return [tagOf(name), ...tags].map((tag) => generations.slot(tag));
  }

  #insert(name: string, record: R, bytes: number, generation: number, slots: readonly number[]): void {
    const { counts } = this.#options;
    const entry = record instanceof CacheEntry ? (record as CacheEntry<R>) : new Entry(record, bytes);
    entry.name = name;
    entry.generation = generation;
    entry.setSlots(slots);
    this.#shardOf(name).set(name, entry);
    entry.index = this.#ring.push(entry) - 1;
    counts.entries++;
    counts.bytes += entry.bytes;
    this.#evict();
  }

  /**
   * Second chance (CLOCK): the hand spares each record that was used since its last round and evicts the others. After
   * `CHANCES_PER_EVICTION` spared records it evicts the next one in any case, so that the cost of an insertion does not
   * grow with the number of records.
   */
  #evict(): void {
    const { counts, generations, bytesMax } = this.#options;
    let chances = CHANCES_PER_EVICTION;
    while (counts.bytes > bytesMax) {
      if (this.#hand >= this.#ring.length) this.#hand = 0;
      const entry = this.#ring[this.#hand]!;
      if (chances > 0 && entry.visited && isValid(entry, generations)) {
        chances--;
        entry.visited = false;
      } else {
        this.#remove(entry.name);
        counts.evictions++;
        chances = CHANCES_PER_EVICTION;
      }
      // The youngest entry has moved to the index of the evicted one. It must not be the next candidate.
      this.#hand++;
    }
  }

  #remove(name: string): void {
    const shard = this.#shardOf(name);
    const entry = shard.get(name);
    if (!entry) return;
    shard.delete(name);
    const last = this.#ring.pop()!;
    if (last !== entry) {
      this.#ring[entry.index] = last;
      last.index = entry.index;
    }
    this.#options.counts.entries--;
    this.#options.counts.bytes -= entry.bytes;
  }

  /** Names of keys begin with a hash. Others begin with a workspace id: their shards are less even, and smaller. */
  #shardOf(name: string): Map<string, CacheEntry<R>> {
    const mixed = 7 * name.charCodeAt(0) + 13 * name.charCodeAt(1) + 29 * name.charCodeAt(2);
    return this.#shards[mixed & (SHARDS - 1)]!;
  }
}

/** Compares the slots of an entry only if anything changed since the last comparison: each is a miss of the CPU cache. */
function isValid(entry: CacheEntry<unknown>, generations: Generations): boolean {
  if (entry.generation === generations.newest()) return true;
  const settled = generations.settled();
  if (!entry.areSlotsUnchanged(generations, entry.generation)) return false;
  if (settled !== undefined) entry.generation = settled;
  return true;
}
