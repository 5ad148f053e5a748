import { crc32 } from "node:zlib";
import type { Clock, Timer } from "../clock/clock.ts";
import type { FingerprintKey } from "../crypto/fingerprint.ts";
import type { CounterFile, CounterFiles } from "./counter-files.ts";
import { type MemoryTable, SEGMENT_BYTES, SLOT_BYTES } from "./memory-table.ts";

const fileName = "counters";
const nextFileName = "counters.next";

const magic = 0x74636b6c;
/** Files of version 1 contain no owners. */
const version = 2;
/** Magic, version, two words of the key, CRC-32 of these. */
const headerBytes = 20;
/** Length of the records, CRC-32 of the length and the records, continued from the previous frame. */
const frameHeaderBytes = 8;
const frameBytesMax = 4 * SEGMENT_BYTES;

const interval = 1000;
/** The file is compacted when it has grown by this number of bytes and by twice its initial size. */
const compactionBytesMin = 8 * 1024 * 1024;
/** Segments copied per second during compaction: 16 MiB of memory, a few milliseconds of this thread. */
const segmentsPerSecond = 64;

/** A file to which frames of counters are appended. */
class JournalFile {
  readonly #file: CounterFile;
  position: number;
  #checksum: number;

  constructor(file: CounterFile, position: number, checksum: number) {
    this.#file = file;
    this.position = position;
    this.#checksum = checksum;
  }

  static async begin(file: CounterFile, key: FingerprintKey): Promise<JournalFile> {
    const header = Buffer.alloc(headerBytes);
    header.writeUInt32LE(magic, 0);
    header.writeUInt32LE(version, 4);
    header.writeInt32LE(key[0], 8);
    header.writeInt32LE(key[1], 12);
    const checksum = crc32(header.subarray(0, 16));
    header.writeUInt32LE(checksum, 16);
    await file.write(0, header);
    return new JournalFile(file, headerBytes, checksum);
  }

  /**
   * Appends `frame`, whose records begin at `frameHeaderBytes`. After a failure the next attempt writes to the same
   * position, so that an incomplete frame is never followed by others. Each checksum continues the previous one, so that
   * the remains of an older frame after the end are never valid.
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

/** The result of `restore`. */
export interface Restored {
  /** Restored records, without expired ones. */
  readonly records: number;
  /** Records that did not fit into the table. */
  readonly dropped: number;
  /** Whether the file ends with an incomplete frame, because the process was killed during a write. */
  readonly isTorn: boolean;
}

/** A compaction in progress: the new file, and the next segment to copy. */
interface Compaction {
  readonly file: JournalFile;
  segment: number;
}

/**
 * Persists the counters in memory across restarts, in one file of the data folder.
 *
 * The file is a header with the key of the fingerprints, then frames of records. A record is the state of one counter;
 * the last record of a counter is valid. Each second the changed counters are appended, so kill -9 loses at most one
 * second. When the file has grown enough it is compacted: a new file is written beside it, some segments each second,
 * while both files receive the changes. The complete new file replaces the old one. A frame with a wrong checksum ends
 * the file.
 *
 * It is also compacted when the clock is set back: otherwise the records of counters that had expired and left the table
 * would count again after a restart, and strict counters whose slots are in several records would be mixed from two times.
 *
 * Appends wait for the operating system and not for the disk, which is sufficient when the process dies. `stop` and
 * compaction flush to the disk.
 */
export class CounterJournal {
  /** The key with which the table must be opened. */
  readonly key: FingerprintKey;
  readonly #files: CounterFiles;
  readonly #clock: Clock;
  readonly #countingClock: Pick<Clock, "now">;
  readonly #onFailure: (error: unknown) => void;
  readonly #segmentsPerSecond: number;
  readonly #file: CounterFile | undefined;
  readonly #headerChecksum: number;
  readonly #buffer = Buffer.alloc(frameHeaderBytes + frameBytesMax);
  #table: MemoryTable | undefined;
  #current: JournalFile | undefined;
  /** The compaction in progress. */
  #compaction: Compaction | undefined;
  #initialBytes = 0;
  /** The time of the last save. */
  #savedAt = Number.NEGATIVE_INFINITY;
  /** Whether the file may have records that only count because the clock was set back. */
  #hasRevived = false;
  /** Bytes of collected records in the buffer that are not written yet. */
  #pendingBytes = 0;
  #segment = 0;
  #timer: Timer | undefined;
  #work: Promise<void> = Promise.resolve();
  /** The next flush, while others wait for the file. */
  #flushing: Promise<void> | undefined;
  #isStopped = false;

  private constructor(
    options: CounterJournalOptions,
    key: FingerprintKey,
    file: CounterFile | undefined,
    headerChecksum: number,
  ) {
    this.#files = options.files;
    this.#clock = options.clock;
    this.#countingClock = options.countingClock;
    this.#onFailure = options.onFailure;
    this.#segmentsPerSecond = options.segmentsPerSecond ?? segmentsPerSecond;
    this.key = key;
    this.#file = file;
    this.#headerChecksum = headerChecksum;
  }

  /** Opens the existing file, or prepares a new one. Throws if a newer version of the program wrote the file. */
  static async open(options: CounterJournalOptions): Promise<CounterJournal> {
    const file = await options.files.open(fileName);
    if (file) {
      const header = Buffer.from(await file.read(0, headerBytes));
      if (header.length === headerBytes && header.readUInt32LE(0) === magic) {
        const found = header.readUInt32LE(4);
        if (found > version) {
          await file.close();
          throw new Error(
            `The file of counters has version ${found}; this program supports ${version}. Start the newer program, or remove the file to discard the counters`,
          );
        }
        const checksum = header.readUInt32LE(16);
        if (crc32(header.subarray(0, 16)) === checksum) {
          return new CounterJournal(options, [header.readInt32LE(8), header.readInt32LE(12)], file, checksum);
        }
      }
      await file.close();
      options.onFailure(new Error("The file of counters cannot be read: all counters start at zero"));
    }
    return new CounterJournal(options, options.freshKey, undefined, 0);
  }

  /** Loads the file into the table. Call it once, before other threads use the table. */
  async restore(table: MemoryTable): Promise<Restored> {
    if (table.key[0] !== this.key[0] || table.key[1] !== this.key[1]) {
      throw new Error("The table was opened with another key than its file");
    }
    this.#table = table;
    if (!this.#file) {
      const file = await JournalFile.begin(await this.#files.create(nextFileName), this.key);
      await file.sync();
      await this.#files.rename(nextFileName, fileName);
      this.#current = file;
      this.#initialBytes = file.position;
      return { records: 0, dropped: 0, isTorn: false };
    }
    const now = this.#countingClock.now();
    let position = headerBytes;
    let checksum = this.#headerChecksum;
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
    this.#current = new JournalFile(this.#file, position, checksum);
    // The size after a compaction now, so that the file does not grow without bound over many restarts.
    this.#initialBytes = Math.min(position, headerBytes + table.estimateUsed(now) * SLOT_BYTES);
    return { records, dropped, isTorn };
  }

  /** Starts to write each second. */
  start(): void {
    this.#timer = this.#clock.schedule(interval, () => {
      void this.save();
      if (!this.#isStopped) this.start();
    });
  }

  /** Appends the changes. Never throws: failures are reported, and the next second retries. */
  save(): Promise<void> {
    this.#work = this.#work.then(async () => {
      if (this.#isStopped) return;
      try {
        await this.#detectStep();
        await this.#appendChanges();
        await this.#compact();
      } catch (error) {
        this.#onFailure(error);
      }
    });
    return this.#work;
  }

  /**
   * Resolves when the file has every change from before the call; rejects if it could not be written. Calls during a write
   * share the next one.
   */
  flush(): Promise<void> {
    if (this.#flushing) return this.#flushing;
    const flushing = this.#work.then(async () => {
      // Changes from now on may come too late for this write.
      this.#flushing = undefined;
      if (this.#isStopped) throw new Error("The journal of the counters is closed");
      if (!(await this.#appendChanges())) throw new Error("The lock of a segment was not available");
    });
    this.#flushing = flushing;
    this.#work = flushing.catch((error: unknown) => this.#onFailure(error));
    return flushing;
  }

  /**
   * Writes all counters and closes the file. Call it after the last charge. If a new file cannot be written, the changes
   * are appended to the old one; throws if that fails too.
   */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#work;
    this.#isStopped = true;
    const file = this.#opened();
    try {
      await this.#abandonCompaction();
      const compaction = await this.#beginCompaction();
      await this.#copyInto(compaction, Number.POSITIVE_INFINITY);
      await this.#switchFiles(compaction);
    } catch (error) {
      this.#onFailure(error);
      await this.#appendChanges();
      await file.sync();
    } finally {
      await this.#abandonCompaction();
      await this.#opened().close();
    }
  }

  #opened(): JournalFile {
    if (!this.#current) throw new Error("CounterJournal was used before restore");
    return this.#current;
  }

  /** Detects that the clock was set back. By less than a second, it revives counters for less time than a restart takes. */
  async #detectStep(): Promise<void> {
    const now = this.#countingClock.now();
    if (now < this.#savedAt - interval) {
      this.#hasRevived = true;
      await this.#abandonCompaction();
    }
    this.#savedAt = now;
  }

  /** Whether it could read all segments. */
  async #appendChanges(): Promise<boolean> {
    const table = this.#table!;
    let isComplete = true;
    await this.#writePending();
    for (this.#segment = 0; this.#segment < table.segments.used; this.#segment++) {
      const at = frameHeaderBytes + this.#pendingBytes;
      const end = table.collect(this.#segment, this.#buffer, at, this.#countingClock.now(), "marked");
      // −1: a lock was not available. Its segment keeps its marks until the next second.
      if (end === -1) isComplete = false;
      else this.#pendingBytes = end - frameHeaderBytes;
      if (this.#pendingBytes > frameBytesMax - SEGMENT_BYTES) await this.#writePending();
    }
    await this.#writePending();
    return isComplete;
  }

  /** Appends the buffer to the file, and to the new file of a compaction. */
  async #writePending(): Promise<void> {
    if (this.#pendingBytes === 0) return;
    const frame = this.#buffer.subarray(0, frameHeaderBytes + this.#pendingBytes);
    await this.#opened().append(frame);
    this.#pendingBytes = 0;
    if (!this.#compaction) return;
    try {
      await this.#compaction.file.append(frame);
    } catch (error) {
      await this.#abandonCompaction();
      throw error;
    }
  }

  /** Starts, continues or completes a compaction if the file has grown enough. */
  async #compact(): Promise<void> {
    const appended = this.#opened().position - this.#initialBytes;
    const isDue = this.#hasRevived || appended >= Math.max(compactionBytesMin, 2 * this.#initialBytes);
    if (!this.#compaction && !isDue) return;
    try {
      const compaction = this.#compaction ?? (await this.#beginCompaction());
      const isComplete = await this.#copyInto(compaction, this.#segmentsPerSecond);
      if (isComplete) await this.#switchFiles(compaction);
    } catch (error) {
      await this.#abandonCompaction();
      throw error;
    }
  }

  async #beginCompaction(): Promise<Compaction> {
    const file = await JournalFile.begin(await this.#files.create(nextFileName), this.key);
    this.#compaction = { file, segment: 0 };
    return this.#compaction;
  }

  async #copyInto(next: Compaction, count: number): Promise<boolean> {
    const table = this.#table!;
    const buffer = Buffer.alloc(frameHeaderBytes + SEGMENT_BYTES);
    for (let copied = 0; next.segment < table.segments.used; copied++) {
      if (copied >= count) return false;
      const end = table.collect(next.segment, buffer, frameHeaderBytes, this.#countingClock.now(), "all");
      if (end === -1) throw new Error("The lock of a segment was not available");
      if (end > frameHeaderBytes) await next.file.append(buffer.subarray(0, end));
      next.segment++;
    }
    return true;
  }

  async #switchFiles({ file }: Compaction): Promise<void> {
    await file.sync();
    await this.#files.rename(nextFileName, fileName);
    const previous = this.#opened();
    this.#current = file;
    this.#initialBytes = file.position;
    this.#compaction = undefined;
    this.#hasRevived = false;
    await previous.close();
  }

  async #abandonCompaction(): Promise<void> {
    const next = this.#compaction;
    this.#compaction = undefined;
    await next?.file.close().catch(() => {});
  }
}

/** The dependencies of a journal. */
export interface CounterJournalOptions {
  readonly files: CounterFiles;
  readonly clock: Clock;
  /** The clock of the counters. Records that ended before its time are dropped. */
  readonly countingClock: Pick<Clock, "now">;
  /** The key for a new file. */
  readonly freshKey: FingerprintKey;
  /** Segments copied per second during compaction; 64 by default. */
  readonly segmentsPerSecond?: number;
  /** Called for each failed read or write. */
  readonly onFailure: (error: unknown) => void;
}
