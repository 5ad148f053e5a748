import { statfs } from "node:fs/promises";
import type { Clock, Milliseconds } from "../../../engine/src/clock/clock.ts";
import { every } from "../../../engine/src/clock/every.ts";
import type { Events } from "../log/events.ts";
import type { StorageTrouble } from "../platform/store/store.ts";
import type { AppStore } from "./app-store.ts";

/** How often the sync that is under way is looked at. */
const OBSERVE_INTERVAL: Milliseconds = 500;
/** How often free bytes are read, and a disk that refuses writes is tried again. */
const LOOK_INTERVAL: Milliseconds = 5_000;
/** A disk with less room counts as full, before a write was refused: the log of a commit does not fit. */
const FULL_BYTES = 1024 * 1024;

/** A folder that the service writes to. */
export interface StoragePlace {
  name: "data" | "database";
  folder: string;
}

/** Room in bytes. */
export interface StorageRoom {
  free: number;
  size: number;
}

export interface StorageWatchOptions {
  places: readonly StoragePlace[];
  store: Pick<AppStore, "writes"> & { transact(name: "probeWrites", argument: null): Promise<unknown> };
  clock: Clock;
  events: Pick<Events, "storageTroubled" | "storageRecovered">;
  /** Default: that of the file system. */
  readRoom?: (folder: string) => Promise<StorageRoom>;
}

/** Watches the disks of the service: their room, and how that of an embedded database takes writes. */
export class StorageWatch {
  /** The room of each place, as of the last look. */
  readonly room = new Map<StoragePlace["name"], StorageRoom>();
  readonly #options: StorageWatchOptions;
  readonly #timers: { cancel(): void }[];
  #reported: StorageTrouble | undefined;

  constructor(options: StorageWatchOptions) {
    this.#options = options;
    const { clock, store } = options;
    this.#timers = [
      every(clock, OBSERVE_INTERVAL, async () => {
        store.writes?.observe();
        this.#report();
      }),
      every(clock, LOOK_INTERVAL, () => this.look()),
      // Beside the look, which waits for a file system that hangs.
      every(clock, LOOK_INTERVAL, async () => {
        if (!store.writes?.isRefusing) return;
        await store.transact("probeWrites", null);
        store.writes.recover();
      }),
    ];
  }

  /** What is wrong with the disk; undefined if nothing is. */
  get trouble(): StorageTrouble | undefined {
    const observed = this.#options.store.writes?.trouble;
    if (observed !== undefined && observed !== "slow") return observed;
    const isFull = [...this.room.values()].some(({ free }) => free < FULL_BYTES);
    return isFull ? "full" : observed;
  }

  get refused(): number {
    return this.#options.store.writes?.refused ?? 0;
  }

  get slowSyncs(): number {
    return this.#options.store.writes?.slowSyncs ?? 0;
  }

  /** Reads the room of each place. A place that cannot be read has none, so that its metric is missing. */
  async look(): Promise<void> {
    const { places, readRoom = readRoomOf } = this.#options;
    for (const { name, folder } of places) {
      const room = await readRoom(folder).catch(() => undefined);
      if (room === undefined) this.room.delete(name);
      else this.room.set(name, room);
    }
    this.#report();
  }

  stop(): void {
    for (const timer of this.#timers) timer.cancel();
  }

  #report(): void {
    const { trouble } = this;
    if (trouble === this.#reported) return;
    this.#reported = trouble;
    const { events } = this.#options;
    if (trouble === undefined) events.storageRecovered();
    else events.storageTroubled(trouble, Object.fromEntries([...this.room].map(([name, { free }]) => [name, free])));
  }
}

/** The bytes that this process may use, without those reserved for the administrator of the machine. */
async function readRoomOf(folder: string): Promise<StorageRoom> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { free: bavail * bsize, size: blocks * bsize };
}
