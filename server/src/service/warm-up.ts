import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { pause } from "../../../engine/src/clock/pause.ts";
import type { RecordCaches } from "../../../engine/src/directory/directories.ts";
import type { RecordCacheCounts } from "../../../engine/src/directory/record-cache.ts";
import { type PackedKey, unpackKey } from "../features/keys/packed-key.ts";
import type { RecentKeysPage } from "../features/keys/statements/recent-keys.ts";
import { ChunkPace } from "../platform/rpc/chunk-pace.ts";
import { yieldEventLoop } from "../platform/rpc/event-loop.ts";
import type { AppStore } from "./app-store.ts";

/** How long a step should take. A caller's look-up waits for one at most on the embedded database, in whose thread it runs. */
const EMBEDDED_STEP_TIME: Milliseconds = 4;
/** The same beside a server, with the way to it. */
const REMOTE_STEP_TIME: Milliseconds = 20;
/** The time that a step counts for at least. */
const SHORTEST: Milliseconds = 0.1;
/** Last uses that one query reads; the same for the query that also reads the keys. */
const USES = { min: 200, max: 5_000 };
const KEYS = { min: 8, max: 2_000 };
/** Keys that one query returns. */
const KEYS_MAX = 128;
/** The rest of the cache is for the keys that callers ask for meanwhile. */
const SHARE_OF_CACHE = 0.9;
/** The part of the keys that is loaded before the others: those that were used last. They are likely to get most calls. */
const FIRST_SHARE = 0.1;
/** What a plain key takes. */
const BYTES_PER_KEY = 400;
/** Keys of which the time of the last use is known exactly, to be loaded first. */
const NEWEST_MAX = 100_000;
/** Times are told apart by the logarithm of their age, to about 4 %. */
const STEPS_PER_DOUBLING = 16;

export interface WarmUpOptions {
  clock: Pick<Clock, "now" | "monotonic" | "schedule">;
  /** How long a turn of the event loop takes. */
  turnTime(): Promise<Milliseconds>;
  store: Pick<AppStore, "read" | "isEmbedded">;
  /** The ids of the keys that were used last before the start, at most `count`, the latest first, as far as that is known. */
  newest(count: number): Promise<readonly string[]>;
  directories: Pick<RecordCaches, "fillKeys">;
  /** Of the cache of keys. */
  counts: Pick<RecordCacheCounts, "bytes">;
  /** Bound on the memory of the cache. */
  bytesMax: number;
  stopped: AbortSignal;
}

/**
 * Loads the keys that were used last into their cache, after a start: otherwise the first call of each key would wait for the
 * database. First those of `newest`, in their order. The database knows the time of the last use to half a minute, and of its
 * keys the newest tenth comes first. Keys that callers ask for are loaded as ever. After each step it pauses for as long as the
 * step took, so that callers wait for one step at most, and calls have at least half of the time. On a slow disk, steps become
 * smaller.
 *
 * Rejects when the database cannot be read.
 */
export async function warmUp({
  clock,
  turnTime,
  store,
  newest,
  directories,
  counts,
  bytesMax,
  stopped,
}: WarmUpOptions): Promise<void> {
  const time = store.isEmbedded ? EMBEDDED_STEP_TIME : REMOTE_STEP_TIME;
  const isFull = () => counts.bytes >= bytesMax * SHARE_OF_CACHE;
  let turn = 0;
  /** @param work returns the size of the step. */
  const step = async (pace: ChunkPace, work: () => Promise<number>): Promise<void> => {
    const startedAt = clock.monotonic();
    const size = await work();
    const took = clock.monotonic() - startedAt;
    // Its result has waited for a turn of the loop. If that counted, steps would be smallest where calls are most.
    pace.record(size, Math.max(SHORTEST, took - turn));
    [turn] = await Promise.all([turnTime(), pause(clock, took, stopped)]);
  };

  const found = new ChunkPace({ time, ...KEYS });
  const fill = (read: () => Promise<readonly PackedKey[]>) =>
    directories.fillKeys(async () => (await read()).map(unpackKey));
  const newestIds = await newest(Math.min(NEWEST_MAX, Math.ceil((bytesMax * SHARE_OF_CACHE) / BYTES_PER_KEY)));
  for (let at = 0; at < newestIds.length && !stopped.aborted && !isFull(); ) {
    // In the order of ids, neighbouring rows are read once.
    const ids = newestIds.slice(at, at + Math.min(found.size, KEYS_MAX)).sort();
    at += ids.length;
    await step(found, async () => {
      await fill(() => store.read("usualKeysByIds", ids));
      return ids.length;
    });
  }

  const ages = new Ages();
  const now = clock.now();
  const uses = new ChunkPace({ time, ...USES });
  for (let cursor: string | null = ""; cursor !== null && !stopped.aborted; ) {
    const page: { cursor: string; limit: number } = { cursor, limit: uses.size };
    let next: string | null = null;
    await step(uses, async () => {
      const found = await store.read("lastUsesAfter", page);
      for (const time of found.times) ages.add(now - time);
      next = found.next;
      return page.limit;
    });
    cursor = next;
  }
  const fitting = Math.min(ages.total, (bytesMax * SHARE_OF_CACHE) / BYTES_PER_KEY);
  let before = Number.MAX_SAFE_INTEGER;
  for (const count of [FIRST_SHARE * fitting, fitting]) {
    const since = now - ages.oldestOf(count);
    for (let cursor: string | null = ""; cursor !== null && !stopped.aborted && !isFull(); ) {
      const page: RecentKeysPage = { cursor, limit: found.size, keysMax: KEYS_MAX, since, before };
      let next: string | null = null;
      await step(found, async () => {
        let size = 0;
        await fill(async () => {
          const recent = await store.read("recentKeysAfter", page);
          next = recent.next;
          size = recent.examined;
          return recent.keys;
        });
        return size;
      });
      cursor = next;
    }
    before = since;
  }
}

/** The time of one turn of the event loop, from the next one on. */
export async function measureTurn(clock: Pick<Clock, "monotonic">): Promise<Milliseconds> {
  await yieldEventLoop();
  const startedAt = clock.monotonic();
  await yieldEventLoop();
  return clock.monotonic() - startedAt;
}

/** Counts ages, to find the age that so many are below. */
class Ages {
  readonly #counts: number[] = [];
  total = 0;

  add(age: Milliseconds): void {
    this.total++;
    const index = Math.floor(Math.log2(1 + Math.max(0, age)) * STEPS_PER_DOUBLING);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
  }

  /** The smallest age that about `count` ages do not exceed. */
  oldestOf(count: number): Milliseconds {
    let sum = 0;
    let index = 0;
    for (; index < this.#counts.length && sum < count; index++) sum += this.#counts[index] ?? 0;
    return Math.ceil(2 ** (index / STEPS_PER_DOUBLING));
  }
}
