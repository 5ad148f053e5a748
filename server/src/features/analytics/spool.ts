import { isUtf8 } from "node:buffer";
import { appendFile, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { readBatch } from "./batch.ts";

/** The location of a batch on disk. */
export interface BatchLocation {
  readonly file: SpoolFile;
  readonly position: number;
  readonly bytes: number;
}

interface SpoolFile {
  readonly path: string;
  bytes: number;
  /** Number of batches in the file that are not delivered yet. */
  waiting: number;
}

/** Batches are appended to a file up to this size. The file is deleted when all its batches are delivered. */
const FILE_BYTES = 8 * 1024 * 1024;

const EXTENSION = ".batches";

/** The file for invalid lines. */
const SET_ASIDE = "unreadable.lines";
const SET_ASIDE_BYTES_MAX = 8 * 1024 * 1024;
/** More than the size of any batch. */
const LINE_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes per read. */
const SCAN_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

/** The spool has reached its maximum size. */
export class SpoolFull extends Error {
  constructor(bytes: number) {
    super(`The analytics that wait on disk have reached ${bytes} bytes`);
    this.name = "SpoolFull";
  }
}

/**
 * Undelivered batches on disk: append-only files with one batch per line. The next process delivers the files that a
 * process leaves. Files are not synced, because they protect against a crash of the process, not of the machine.
 */
export class Spool {
  readonly #folder: string;
  readonly #name: string;
  readonly #bytesMax: number;
  /** Unread files of an earlier process. */
  readonly #unread: SpoolFile[] = [];
  #files = 0;
  #current: SpoolFile | undefined;
  /** Bytes on disk. */
  bytes = 0;

  /** @param name unique per process. */
  constructor(folder: string, name: string, bytesMax: number) {
    this.#folder = folder;
    this.#name = name;
    this.#bytesMax = bytesMax;
  }

  /** Lists the files of an earlier process, without reading them. */
  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(this.#folder)).sort()) {
      if (!name.endsWith(EXTENSION)) continue;
      const path = join(this.#folder, name);
      const { size } = await stat(path);
      this.#unread.push({ path, bytes: size, waiting: 0 });
      this.bytes += size;
    }
  }

  /** The batches of the next unread file, in order; undefined after the last file. */
  async next(): Promise<BatchLocation[] | undefined> {
    const file = this.#unread.shift();
    if (file === undefined) return undefined;
    const locations: BatchLocation[] = [];
    const handle = await open(file.path, "r");
    try {
      const buffer = Buffer.allocUnsafe(Math.min(SCAN_BYTES, Math.max(1, file.bytes)));
      let begin = 0;
      for (let position = 0; ; ) {
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
        if (bytesRead === 0) break;
        // A last line without line feed is incomplete: the process ended during its write.
        for (
          let end = buffer.indexOf(LINE_FEED);
          end !== -1 && end < bytesRead;
          end = buffer.indexOf(LINE_FEED, end + 1)
        ) {
          const bytes = position + end + 1 - begin;
          if (bytes > 1) locations.push({ file, position: begin, bytes });
          begin += bytes;
        }
        position += bytesRead;
      }
    } finally {
      await handle.close();
    }
    file.waiting = locations.length;
    if (locations.length === 0) await this.#remove(file);
    return locations;
  }

  /**
   * Appends a batch, one line of text. One call at a time.
   *
   * @throws {SpoolFull} or an error of the file system. Then nothing is stored.
   */
  async append(text: string): Promise<BatchLocation> {
    const line = Buffer.from(`${text}\n`);
    if (this.bytes + line.length > this.#bytesMax) throw new SpoolFull(this.#bytesMax);
    if (this.#current === undefined || this.#current.bytes >= FILE_BYTES) {
      const number = String(this.#files++).padStart(6, "0");
      this.#current = { path: join(this.#folder, `${this.#name}-${number}${EXTENSION}`), bytes: 0, waiting: 0 };
    }
    const file = this.#current;
    const position = file.bytes;
    file.waiting++;
    try {
      const handle = await open(file.path, "a", 0o600);
      try {
        await handle.appendFile(line);
      } catch (error) {
        // An incomplete line would damage the next one.
        await handle.truncate(position).catch(() => {});
        throw error;
      } finally {
        await handle.close();
      }
    } catch (error) {
      file.waiting--;
      // The truncation may have failed, so the next batch goes to a new file.
      this.#current = undefined;
      throw error;
    }
    file.bytes += line.length;
    this.bytes += line.length;
    return { file, position, bytes: line.length };
  }

  /** Reads a batch; undefined if the line is not a valid batch. */
  async read({ file, position, bytes }: BatchLocation): Promise<string | undefined> {
    if (bytes > LINE_BYTES_MAX) return undefined;
    const line = await readAt(file.path, position, bytes - 1);
    const text = line.toString();
    return isUtf8(line) && isBatch(text) ? text : undefined;
  }

  /** Appends an invalid line to a file for inspection, up to a maximum size. */
  async setAside({ file, position, bytes }: BatchLocation): Promise<void> {
    const path = join(this.#folder, SET_ASIDE);
    const has = await stat(path).then(
      ({ size }) => size,
      () => 0,
    );
    if (has + bytes > SET_ASIDE_BYTES_MAX) return;
    await appendFile(path, await readAt(file.path, position, bytes), { mode: 0o600 });
  }

  /** Marks a batch as delivered. The file is deleted with its last batch. */
  async done({ file }: BatchLocation): Promise<void> {
    file.waiting--;
    if (file.waiting > 0) return;
    if (file === this.#current) this.#current = undefined;
    await this.#remove(file);
  }

  async #remove(file: SpoolFile): Promise<void> {
    this.bytes -= file.bytes;
    await rm(file.path, { force: true });
  }
}

async function readAt(path: string, position: number, bytes: number): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    const buffer = Buffer.alloc(bytes);
    const { bytesRead } = await handle.read(buffer, 0, bytes, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

function isBatch(line: string): boolean {
  try {
    readBatch(line);
    return true;
  } catch {
    return false;
  }
}
