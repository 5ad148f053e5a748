import type { Clock } from "../clock/clock.ts";
import { StoreUnavailable } from "../store/store.ts";
import type { Generations } from "./generations.ts";
import { NegativeCache } from "./negative-cache.ts";

/** What a directory keeps under one name. */
interface Entry<R> {
  readonly name: string;
  readonly record: R;
  /** The generation at which it was read. */
  readonly generation: number;
  /** Slots of the tags that outdate it. */
  readonly slots: readonly number[];
  readonly bytes: number;
  /** Looked at since the hand last passed. */
  visited: boolean;
  /** Its index in the ring. */
  place: number;
}

/** What a look-up in the store gives: what to remember, which tags outdate it, and what it weighs. */
export interface LoadedRecord<R> {
  record: R | null;
  tags: readonly string[];
  bytes: number;
}

export interface RecordCacheOptions<R> {
  clock: Clock;
  generations: Generations;
  /** Reads what there is under these names, in one query. Names that are absent from the answer do not exist. */
  load(names: readonly string[]): Promise<ReadonlyMap<string, LoadedRecord<R>>>;
  /** The tag under which a name that does not exist is announced when it comes into being. */
  tagOf(name: string): string;
  /** False: there is nothing under this name, which takes no look-up to know. */
  mayExist?(name: string): boolean;
  /** Bound on what is remembered. */
  bytesMax: number;
  /** Counts what happens; shared with the metrics. */
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

/** The part of its memory, on top of it, that a directory may use for what does not exist. */
const ABSENT_SHARE = 8;
const NAMES_PER_LOAD_MAX = 128;
/** Records that are passed over, at most, before one goes. */
const CHANCES_PER_EVICTION = 16;
/** A Map rebuilds itself in one go when it grows, so the names are in many small ones. A power of two. */
const SHARDS = 64;
const LOADS_AT_ONCE_MAX = 2;
const LOAD_ATTEMPTS_MAX = 10;

interface Waiting<R> {
  readonly promise: Promise<R | null>;
  resolve(record: R | null): void;
  reject(error: unknown): void;
  attempts: number;
}

/** What to remember of a name under which there is nothing. Its own tag outdates it, and these. */
export function missingRecord(tags: readonly string[] = []): LoadedRecord<never> {
  return { record: null, tags, bytes: 0 };
}

/**
 * What is known without asking.
 *
 * `get` answers from memory or says that it cannot. `fill` asks the store: callers who miss the same name share one
 * question, names that are missed together share one query, and an answer that was overtaken by a change while it was
 * under way is asked again rather than believed. Memory is bounded in bytes; what was not looked at since the last
 * round goes first.
 */
export class RecordCache<R> {
  readonly #options: RecordCacheOptions<R>;
  readonly #shards = Array.from({ length: SHARDS }, () => new Map<string, Entry<R>>());
  /** All entries; the hand of the eviction goes round. */
  readonly #ring: Entry<R>[] = [];
  #hand = 0;
  /** What is known not to exist, apart, so that whoever invents names pushes out no record. */
  readonly #negativeCache: NegativeCache;
  readonly #waiting = new Map<string, Waiting<R>>();
  #queue: string[] = [];
  #loads = 0;
  #gathering = false;

  constructor(options: RecordCacheOptions<R>) {
    this.#options = options;
    const { clock, generations, bytesMax } = options;
    this.#negativeCache = new NegativeCache({ clock, generations, bytesMax: bytesMax / ABSENT_SHARE });
  }

  /** The record, null when it is known that there is none, undefined when it is not known. */
  get(name: string): R | null | undefined {
    const { counts, generations, mayExist } = this.#options;
    const entry = this.#shardOf(name).get(name);
    if (entry !== undefined && generations.areUnchanged(entry.slots, entry.generation)) {
      entry.visited = true;
      counts.hits++;
      return entry.record;
    }
    if (mayExist?.(name) === false || this.#negativeCache.has(name)) {
      counts.hits++;
      return null;
    }
    counts.misses++;
    return undefined;
  }

  /** Whether there was a record under this name when it was last read; for names that `get` does not know. */
  isOutdated(name: string): boolean {
    return this.#shardOf(name).has(name);
  }

  /** Asks the store. Rejects when the store does. */
  load(name: string): Promise<R | null> {
    let waiting = this.#waiting.get(name);
    if (!waiting) {
      const { promise, resolve, reject } = Promise.withResolvers<R | null>();
      waiting = { promise, resolve, reject, attempts: 0 };
      this.#waiting.set(name, waiting);
      this.#enqueue(name);
    }
    return waiting.promise;
  }

  #enqueue(name: string): void {
    this.#queue.push(name);
    if (this.#gathering) return;
    this.#gathering = true;
    // After the events of this turn of the loop, so that requests which arrived together are asked together.
    setImmediate(() => {
      this.#gathering = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#queue.length > 0 && this.#loads < LOADS_AT_ONCE_MAX) {
      const names = this.#queue.splice(0, NAMES_PER_LOAD_MAX);
      this.#loads++;
      this.#load(names)
        .catch((error) => this.#fail(names, error))
        .finally(() => {
          this.#loads--;
          this.#pump();
        });
    }
  }

  async #load(names: readonly string[]): Promise<void> {
    const { generations, load, tagOf, counts } = this.#options;
    counts.loads++;
    const generation = generations.newest();
    const answer = await load(names);
    for (const name of names) {
      const found = answer.get(name) ?? missingRecord();
      const slots = [tagOf(name), ...found.tags].map((tag) => generations.slot(tag));
      const waiting = this.#waiting.get(name)!;
      if (!generations.areUnchanged(slots, generation)) {
        // Something changed while the question was under way. Whoever waits may have come after the change was
        // acknowledged, so the old answer is nobody's.
        if (++waiting.attempts < LOAD_ATTEMPTS_MAX) this.#enqueue(name);
        else this.#fail([name], new StoreUnavailable("A record changed faster than it could be read"));
        continue;
      }
      this.#drop(name);
      const { record, bytes } = found;
      if (record === null) this.#negativeCache.add(name, generation, slots);
      else this.#keep({ name, record, generation, slots, bytes, visited: false, place: this.#ring.length });
      this.#waiting.delete(name);
      waiting.resolve(record);
    }
  }

  #fail(names: readonly string[], error: unknown): void {
    for (const name of names) {
      this.#waiting.get(name)?.reject(error);
      this.#waiting.delete(name);
    }
  }

  #keep(entry: Entry<R>): void {
    const { counts } = this.#options;
    this.#shardOf(entry.name).set(entry.name, entry);
    this.#ring.push(entry);
    counts.entries++;
    counts.bytes += entry.bytes;
    this.#evict();
  }

  /**
   * Second chance: the hand passes over what was looked at since it last came by, once, and what was not goes. After so
   * many that were looked at, the next one goes all the same: what an insertion costs must not grow with what is
   * remembered.
   */
  #evict(): void {
    const { counts, generations, bytesMax } = this.#options;
    let chances = CHANCES_PER_EVICTION;
    while (counts.bytes > bytesMax) {
      if (this.#hand >= this.#ring.length) this.#hand = 0;
      const entry = this.#ring[this.#hand]!;
      if (chances > 0 && entry.visited && generations.areUnchanged(entry.slots, entry.generation)) {
        chances--;
        entry.visited = false;
      } else {
        this.#drop(entry.name);
        counts.evictions++;
        chances = CHANCES_PER_EVICTION;
      }
      // Into the place of one that went came the youngest, which is not to be the next.
      this.#hand++;
    }
  }

  #drop(name: string): void {
    const shard = this.#shardOf(name);
    const entry = shard.get(name);
    if (!entry) return;
    shard.delete(name);
    const last = this.#ring.pop()!;
    if (last !== entry) {
      this.#ring[entry.place] = last;
      last.place = entry.place;
    }
    this.#options.counts.entries--;
    this.#options.counts.bytes -= entry.bytes;
  }

  /** Names begin with a hash or with the id of a workspace; the small directories do with less even shards. */
  #shardOf(name: string): Map<string, Entry<R>> {
    const mixed = 7 * name.charCodeAt(0) + 13 * name.charCodeAt(1) + 29 * name.charCodeAt(2);
    return this.#shards[mixed & (SHARDS - 1)]!;
  }
}
