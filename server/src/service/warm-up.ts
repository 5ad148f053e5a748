import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { pause } from "../../../engine/src/clock/pause.ts";
import type { RecordCaches } from "../../../engine/src/directory/directories.ts";
import type { RecordCacheCounts } from "../../../engine/src/directory/record-cache.ts";
import { unpackKey } from "../features/keys/packed-key.ts";
import { ageAbove, type LastUsesPage } from "../features/keys/statements/recent-keys.ts";
import { ChunkPace } from "../platform/rpc/chunk-pace.ts";
import { yieldEventLoop } from "../platform/rpc/event-loop.ts";
import type { AppStore } from "./app-store.ts";

/** How long a step should take. A caller's look-up waits for one at most on the embedded database, in whose thread it runs. */
const EMBEDDED_STEP_TIME: Milliseconds = 4;
/** The same beside a server, with the way to it. */
const REMOTE_STEP_TIME: Milliseconds = 20;
/** The time that a step counts for at least. */
const SHORTEST: Milliseconds = 0.1;
/** Last uses of which one query counts the ages, or among which it finds recent ones. */
const USES = { min: 500, max: 50_000 };
/** Keys that one query reads. */
const KEYS = { min: 8, max: 128 };
/** Ids of recently used keys that one query finds. */
const IDS_MAX = 2_000;
/** The rest of the cache is for the keys that callers ask for meanwhile. */
const SHARE_OF_CACHE = 0.9;
/** The part of the keys that is loaded before the others: those that were used last. They are likely to get most calls. */
const FIRST_SHARE = 0.1;
/** What a plain key takes. */
const BYTES_PER_KEY = 400;
/** Keys of which the time of the last use is known exactly, to be loaded first. */
const NEWEST_MAX = 100_000;

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
  const fitting = (bytesMax * SHARE_OF_CACHE) / BYTES_PER_KEY;
  const isEnded = () => stopped.aborted || counts.bytes >= bytesMax * SHARE_OF_CACHE;
  let turn = 0;
  const step = async <T>(pace: ChunkPace, size: number, work: () => Promise<T>): Promise<T> => {
    const startedAt = clock.monotonic();
    const result = await work();
    const took = clock.monotonic() - startedAt;
    // Its result has waited for a turn of the loop. If that counted, steps would be smallest where calls are most.
    pace.record(size, Math.max(SHORTEST, took - turn));
    [turn] = await Promise.all([turnTime(), pause(clock, took, stopped)]);
    return result;
  };
  const loads = new ChunkPace({ time, ...KEYS });
  const load = async (ids: readonly string[]): Promise<void> => {
    for (let at = 0; at < ids.length && !isEnded(); ) {
      // In the order of ids, neighbouring rows are read once.
      const some = ids.slice(at, at + loads.size).sort();
      at += some.length;
      const read = async () => (await store.read("usualKeysByIds", some)).map(unpackKey);
      await step(loads, some.length, () => directories.fillKeys(read));
    }
  };
  const uses = new ChunkPace({ time, ...USES });
  /** Walks through all last uses. `read` reads a part of them, and returns where the walk continues. */
  const walk = async (read: (page: LastUsesPage) => Promise<string | null>): Promise<void> => {
    for (let cursor: string | null = ""; cursor !== null && !isEnded(); ) {
      cursor = await read({ cursor, limit: uses.size });
    }
  };

  const newestIds = new Set(await newest(Math.min(NEWEST_MAX, Math.ceil(fitting))));
  await load([...newestIds]);

  const now = clock.now();
  const ages = new Ages();
  await walk(async (page) => {
    const counted = await step(uses, page.limit, () => store.read("lastUseAges", { ...page, now }));
    for (const { step, keys } of counted.ages) ages.add(step, keys);
    return counted.next;
  });
  const all = Math.min(ages.total, fitting);
  const first = FIRST_SHARE * all;
  let before = Number.MAX_SAFE_INTEGER;
  for (const count of newestIds.size < first ? [first, all] : [all]) {
    const since = now - ages.oldestOf(count);
    await walk(async (page) => {
      const times = { since, before, idsMax: IDS_MAX };
      const recent = await step(uses, page.limit, () => store.read("recentKeyIds", { ...page, ...times }));
      await load(recent.ids.filter((id) => !newestIds.has(id)));
      return recent.next;
    });
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

/** Counts ages by their steps, to find the age that so many are below. */
class Ages {
  readonly #counts: number[] = [];
  total = 0;

  add(step: number, keys: number): void {
    this.total += keys;
    this.#counts[step] = (this.#counts[step] ?? 0) + keys;
  }

  /** The smallest age that about `count` ages do not exceed. */
  oldestOf(count: number): Milliseconds {
    let sum = 0;
    let step = 0;
    for (; step < this.#counts.length && sum < count; step++) sum += this.#counts[step] ?? 0;
    return ageAbove(step - 1);
  }
}
