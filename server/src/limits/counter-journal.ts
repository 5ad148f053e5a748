import { mkdir, open, rename } from "node:fs/promises";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { Clock, Timer } from "../clock/clock.ts";
import type { FingerprintKey } from "../crypto/fingerprint.ts";
import { type MemoryTable, SEGMENT_BYTES, SLOT_BYTES } from "./memory-table.ts";

/** One open file. Positions and lengths are bytes. */
export interface CounterFile {
  /** Up to `length` bytes; fewer only at the end of the file. */
  read(position: number, length: number): Promise<Uint8Array>;
  /** Writes all of `bytes`. When it fails, any part of them may have been written. */
  write(position: number, bytes: Uint8Array): Promise<void>;
  /** Waits until everything written would survive the loss of power. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The few things that survival asks of a folder. */
export interface CounterFiles {
  /** Opens a file for reading and writing, or answers undefined when there is none. */
  open(name: string): Promise<CounterFile | undefined>;
  /** Makes an empty file in place of any that is there. */
  create(name: string): Promise<CounterFile>;
  /** Puts one file in the place of another, entirely or not at all, and makes that last. */
  rename(source: string, target: string): Promise<void>;
}

/** A folder of the file system; its files can be read by their owner only, for they hold the fingerprints' key. */
export function counterFilesIn(folder: string): CounterFiles {
  const openFile = async (name: string, flags: string): Promise<CounterFile> => {
    const handle = await open(join(folder, name), flags, 0o600);
    return {
      async read(position, length) {
        const bytes = Buffer.allocUnsafe(length);
        let filled = 0;
        while (filled < length) {
          const { bytesRead } = await handle.read(bytes, filled, length - filled, position + filled);
          if (bytesRead === 0) break;
          filled += bytesRead;
        }
        return bytes.subarray(0, filled);
      },
      async write(position, bytes) {
        let done = 0;
        while (done < bytes.length) {
          done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
        }
      },
      sync: () => handle.sync(),
      close: () => handle.close(),
    };
  };
  return {
    async open(name) {
      try {
        return await openFile(name, "r+");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
        throw error;
      }
    },
    async create(name) {
      await mkdir(folder, { recursive: true });
      return openFile(name, "w+");
    },
    async rename(source, target) {
      await rename(join(folder, source), join(folder, target));
      const handle = await open(folder, "r");
      // The new name is an entry of the folder, which has to reach the disk as well. Windows cannot do that.
      await handle.sync().catch(() => {});
      await handle.close();
    },
  };
}

const fileName = "counters";
const nextFileName = "counters.next";

const magic = 0x74636b6c;
/** Version 1 had no owners; its counters have none. */
const version = 2;
/** magic, version, two words of the key, CRC-32 of these. */
const headerBytes = 20;
/** Length of the records, CRC-32 of that length and the records, continued from the frame before. */
const frameHeaderBytes = 8;
const frameBytesMax = 4 * SEGMENT_BYTES;

const interval = 1000;
/** A file is written anew when what was appended to it passes both this and twice what it began with. */
const appendedBytesMin = 8 * 1024 * 1024;
/** How many segments are copied into a new file per second: 16 MiB of memory, a few milliseconds of this thread. */
const segmentsPerSecond = 64;

/** A file of counters that frames are appended to. */
class Journal {
  readonly #file: CounterFile;
  position: number;
  #checksum: number;

  constructor(file: CounterFile, position: number, checksum: number) {
    this.#file = file;
    this.position = position;
    this.#checksum = checksum;
  }

  static async begin(file: CounterFile, key: FingerprintKey): Promise<Journal> {
    const header = Buffer.alloc(headerBytes);
    header.writeUInt32LE(magic, 0);
    header.writeUInt32LE(version, 4);
    header.writeInt32LE(key[0], 8);
    header.writeInt32LE(key[1], 12);
    const checksum = crc32(header.subarray(0, 16));
    header.writeUInt32LE(checksum, 16);
    await file.write(0, header);
    return new Journal(file, headerBytes, checksum);
  }

  /**
   * Appends `frame`, whose records begin at `frameHeaderBytes`. After a failure the next attempt writes to the same
   * place, so that half a frame never stands between whole ones. Each checksum continues the one before: what is left
   * of an older frame behind the end cannot be taken for the next.
   */
  async append(frame: Buffer): Promise<void> {
    frame.writeUInt32LE(frame.length - frameHeaderBytes, 0);
    const checksum = crc32(frame.subarray(frameHeaderBytes), crc32(frame.subarray(0, 4), this.#checksum));
    frame.writeUInt32LE(checksum, 4);
    await this.#file.write(this.position, frame);
    this.position += frame.length;
    this.#checksum = checksum;
  }

  sync(): Promise<void> {
    return this.#file.sync();
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** What a start found. */
export interface Restored {
  /** Records that still mattered. */
  readonly records: number;
  /** Records for which the table had no room. */
  readonly dropped: number;
  /** Whether the file ended in something incomplete: at most what was being written when the process was killed. */
  readonly isTorn: boolean;
}

/**
 * Keeps counters over a restart, in one file of the data folder.
 *
 * The file is a header with the fingerprints' key, then frames of records, each record one counter as it was; the last
 * of a counter counts. Each second the counters that changed since are appended, so that kill -9 forgets at most that
 * second. When the file has grown enough, a new one is written beside it, some segments each second, while both receive the changes; it takes the
 * other's place when it is complete. A frame that does not match its checksum ends the file.
 *
 * Writing waits for the operating system, not for the disk, which is enough when a process dies; on a stop and before a
 * new file takes over it waits for the disk too.
 */
export class CounterJournal {
  /** The key that the table must be opened with. */
  readonly key: FingerprintKey;
  readonly #files: CounterFiles;
  readonly #clock: Clock;
  readonly #countingClock: Pick<Clock, "now">;
  readonly #onFailure: (error: unknown) => void;
  readonly #segmentsPerSecond: number;
  readonly #file: CounterFile | undefined;
  readonly #firstChecksum: number;
  readonly #buffer = Buffer.alloc(frameHeaderBytes + frameBytesMax);
  #table: MemoryTable | undefined;
  #journal: Journal | undefined;
  /** The new file under way, and the segment to copy next. */
  #next: { journal: Journal; segment: number } | undefined;
  #bytesAtFirst = 0;
  /** The length of records in the buffer that were collected and could not be written yet. */
  #unwritten = 0;
  #segment = 0;
  #timer: Timer | undefined;
  #work: Promise<void> = Promise.resolve();
  #isStopped = false;

  private constructor(
    options: CounterJournalOptions,
    key: FingerprintKey,
    file: CounterFile | undefined,
    firstChecksum: number,
  ) {
    this.#files = options.files;
    this.#clock = options.clock;
    this.#countingClock = options.countingClock;
    this.#onFailure = options.onFailure;
    this.#segmentsPerSecond = options.segmentsPerSecond ?? segmentsPerSecond;
    this.key = key;
    this.#file = file;
    this.#firstChecksum = firstChecksum;
  }

  /** Opens the file that is there, or prepares to make one. Throws when a newer version of the program wrote it. */
  static async open(options: CounterJournalOptions): Promise<CounterJournal> {
    const file = await options.files.open(fileName);
    if (file) {
      const header = Buffer.from(await file.read(0, headerBytes));
      if (header.length === headerBytes && header.readUInt32LE(0) === magic) {
        const found = header.readUInt32LE(4);
        if (found > version) {
          await file.close();
          throw new Error(
            `The file of counters has version ${found}; this program knows ${version}. Start the newer program, or remove the file to forget the counters`,
          );
        }
        const checksum = header.readUInt32LE(16);
        if (crc32(header.subarray(0, 16)) === checksum) {
          return new CounterJournal(options, [header.readInt32LE(8), header.readInt32LE(12)], file, checksum);
        }
      }
      await file.close();
      options.onFailure(new Error("The file of counters cannot be read: counting begins anew"));
    }
    return new CounterJournal(options, options.freshKey, undefined, 0);
  }

  /** Puts what the file holds into the table. To be called once, before other threads use the table. */
  async restore(table: MemoryTable): Promise<Restored> {
    if (table.key[0] !== this.key[0] || table.key[1] !== this.key[1]) {
      throw new Error("The table was opened with another key than that of its file");
    }
    this.#table = table;
    if (!this.#file) {
      const journal = await Journal.begin(await this.#files.create(nextFileName), this.key);
      await journal.sync();
      await this.#files.rename(nextFileName, fileName);
      this.#journal = journal;
      this.#bytesAtFirst = journal.position;
      return { records: 0, dropped: 0, isTorn: false };
    }
    const now = this.#countingClock.now();
    let position = headerBytes;
    let checksum = this.#firstChecksum;
    let records = 0;
    let dropped = 0;
    for (;;) {
      const header = Buffer.from(await this.#file.read(position, frameHeaderBytes));
      const length = header.length === frameHeaderBytes ? header.readUInt32LE(0) : 0;
      if (length === 0 || length > frameBytesMax || length % SLOT_BYTES !== 0) break;
      const body = Buffer.from(await this.#file.read(position + frameHeaderBytes, length));
      const expected = header.readUInt32LE(4);
      if (body.length < length || crc32(body, crc32(header.subarray(0, 4), checksum)) !== expected) break;
      for (let at = 0; at < length; at += SLOT_BYTES) {
        const end = body.readDoubleLE(at + 8);
        if (end <= now) continue;
        const low = body.readInt32LE(at);
        const high = body.readInt32LE(at + 4);
        const current = body.readDoubleLE(at + 16);
        const previous = body.readDoubleLE(at + 24);
        if (table.restore({ low, high, end, current, previous }, now)) records++;
        else dropped++;
      }
      position += frameHeaderBytes + length;
      checksum = expected;
    }
    const isTorn = (await this.#file.read(position, 1)).length > 0;
    this.#journal = new Journal(this.#file, position, checksum);
    // What it would begin with if it were written now, so that restarts do not let it grow without end.
    this.#bytesAtFirst = Math.min(position, headerBytes + table.estimateUsed(now) * SLOT_BYTES);
    return { records, dropped, isTorn };
  }

  /** Begins to write each second. */
  start(): void {
    this.#timer = this.#clock.schedule(interval, () => {
      void this.save();
      if (!this.#isStopped) this.start();
    });
  }

  /** Writes down what changed. Never throws: what cannot be written is kept for the next second, and reported. */
  save(): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#isStopped) return;
      try {
        await this.#appendChanges();
        await this.#renew();
      } catch (error) {
        this.#onFailure(error);
      }
    });
    return this.#work;
  }

  /**
   * Writes all counters, of all windows, and closes the file. To be called when nobody charges any more. When a new
   * file cannot be written, the changes are appended to the old one; throws when that fails too.
   */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#work;
    this.#isStopped = true;
    const journal = this.#opened();
    try {
      await this.#abandonNext();
      await this.#beginNext();
      await this.#copyInto(this.#next!, Number.POSITIVE_INFINITY);
      await this.#takeOver();
    } catch (error) {
      this.#onFailure(error);
      await this.#appendChanges();
      await journal.sync();
    } finally {
      await this.#abandonNext();
      await this.#opened().close();
    }
  }

  #opened(): Journal {
    if (!this.#journal) throw new Error("CounterJournal was used before restore");
    return this.#journal;
  }

  async #appendChanges(): Promise<void> {
    const table = this.#table!;
    await this.#flush();
    for (this.#segment = 0; this.#segment < table.segments.used; this.#segment++) {
      const at = frameHeaderBytes + this.#unwritten;
      const end = table.collect(this.#segment, this.#buffer, at, this.#countingClock.now(), "marked");
      // Whose lock cannot be had keeps its marks until the next second.
      if (end !== -1) this.#unwritten = end - frameHeaderBytes;
      if (this.#unwritten > frameBytesMax - SEGMENT_BYTES) await this.#flush();
    }
    await this.#flush();
  }

  /** Appends what the buffer holds to the file, and to the next one if it is under way. */
  async #flush(): Promise<void> {
    if (this.#unwritten === 0) return;
    const frame = this.#buffer.subarray(0, frameHeaderBytes + this.#unwritten);
    await this.#opened().append(frame);
    this.#unwritten = 0;
    if (!this.#next) return;
    try {
      await this.#next.journal.append(frame);
    } catch (error) {
      await this.#abandonNext();
      throw error;
    }
  }

  /** Begins, continues or completes a new file when the present one has grown enough. */
  async #renew(): Promise<void> {
    const appended = this.#opened().position - this.#bytesAtFirst;
    if (!this.#next && appended < Math.max(appendedBytesMin, 2 * this.#bytesAtFirst)) return;
    try {
      if (!this.#next) await this.#beginNext();
      const isComplete = await this.#copyInto(this.#next!, this.#segmentsPerSecond);
      if (isComplete) await this.#takeOver();
    } catch (error) {
      await this.#abandonNext();
      throw error;
    }
  }

  async #beginNext(): Promise<void> {
    const journal = await Journal.begin(await this.#files.create(nextFileName), this.key);
    this.#next = { journal, segment: 0 };
  }

  async #copyInto(next: { journal: Journal; segment: number }, count: number): Promise<boolean> {
    const table = this.#table!;
    const buffer = Buffer.alloc(frameHeaderBytes + SEGMENT_BYTES);
    for (let copied = 0; next.segment < table.segments.used; copied++) {
      if (copied >= count) return false;
      const end = table.collect(next.segment, buffer, frameHeaderBytes, this.#countingClock.now(), "all");
      if (end === -1) throw new Error("The lock of a segment could not be had");
      if (end > frameHeaderBytes) await next.journal.append(buffer.subarray(0, end));
      next.segment++;
    }
    return true;
  }

  async #takeOver(): Promise<void> {
    const { journal } = this.#next!;
    await journal.sync();
    await this.#files.rename(nextFileName, fileName);
    const former = this.#opened();
    this.#journal = journal;
    this.#bytesAtFirst = journal.position;
    this.#next = undefined;
    await former.close();
  }

  async #abandonNext(): Promise<void> {
    const next = this.#next;
    this.#next = undefined;
    await next?.journal.close().catch(() => {});
  }
}

/** What survival needs of the world. */
export interface CounterJournalOptions {
  readonly files: CounterFiles;
  readonly clock: Clock;
  /** The clock of the counters, which decides what is past. */
  readonly countingClock: Pick<Clock, "now">;
  /** The key for a table that begins anew. */
  readonly freshKey: FingerprintKey;
  /** How many segments are copied into a new file per second; 64 by default. */
  readonly segmentsPerSecond?: number;
  /** Hears of everything that could not be written or read. */
  readonly onFailure: (error: unknown) => void;
}
