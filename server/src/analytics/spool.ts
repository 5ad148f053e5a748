import { isUtf8 } from "node:buffer";
import { appendFile, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";

/** Where a batch lies on disk. */
export interface BatchLocation {
  readonly file: SpoolFile;
  readonly position: number;
  readonly bytes: number;
}

interface SpoolFile {
  readonly path: string;
  bytes: number;
  /** Batches in it that are not done with. */
  waiting: number;
}

/** A file takes batches until it is so long; it goes as a whole when all of them are done with. */
const FILE_BYTES = 8 * 1024 * 1024;

const EXTENSION = ".batches";

/** Where lines go that are no batches. */
const SET_ASIDE = "unreadable.lines";
const SET_ASIDE_BYTES_MAX = 8 * 1024 * 1024;
/** More than any batch has. */
const LINE_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes of a file that are read at once. */
const SCAN_BYTES = 256 * 1024;
const LINE_FEED = 0x0a;

/** No room on disk, or more than the spool may take. */
export class SpoolFull extends Error {
  constructor(bytes: number) {
    super(`The analytics that wait on disk have reached ${bytes} bytes`);
    this.name = "SpoolFull";
  }
}

/**
 * Batches that wait on disk for their store: files of lines that are only appended to. What one process left behind, the
 * next takes in. They are not synced: they outlive the process, and that is what they are for.
 */
export class Spool {
  readonly #folder: string;
  readonly #name: string;
  readonly #bytesMax: number;
  /** Files of an earlier process that were not given yet. */
  readonly #left: SpoolFile[] = [];
  #files = 0;
  #current: SpoolFile | undefined;
  /** Bytes on disk. */
  bytes = 0;

  /** @param name differs from one process to the next. */
  constructor(folder: string, name: string, bytesMax: number) {
    this.#folder = folder;
    this.#name = name;
    this.#bytesMax = bytesMax;
  }

  /** Finds out which files an earlier process left, without reading them. */
  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of (await readdir(this.#folder)).sort()) {
      if (!name.endsWith(EXTENSION)) continue;
      const path = join(this.#folder, name);
      const { size } = await stat(path);
      this.#left.push({ path, bytes: size, waiting: 0 });
      this.bytes += size;
    }
  }

  /** The batches of the next file that an earlier process left, in their order; undefined when all were given. */
  async next(): Promise<BatchLocation[] | undefined> {
    const file = this.#left.shift();
    if (file === undefined) return undefined;
    const places: BatchLocation[] = [];
    const handle = await open(file.path, "r");
    try {
      const buffer = Buffer.allocUnsafe(Math.min(SCAN_BYTES, Math.max(1, file.bytes)));
      let begin = 0;
      for (let position = 0; ; ) {
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
        if (bytesRead === 0) break;
        // What follows the last line's end was being written when the process ended.
        for (
          let end = buffer.indexOf(LINE_FEED);
          end !== -1 && end < bytesRead;
          end = buffer.indexOf(LINE_FEED, end + 1)
        ) {
          const bytes = position + end + 1 - begin;
          if (bytes > 1) places.push({ file, position: begin, bytes });
          begin += bytes;
        }
        position += bytesRead;
      }
    } finally {
      await handle.close();
    }
    file.waiting = places.length;
    if (places.length === 0) await this.#remove(file);
    return places;
  }

  /**
   * Appends a batch, one line of text. One call at a time.
   *
   * @throws {SpoolFull} and whatever the file system says; nothing is kept then.
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
        // Half a line would spoil the next one.
        await handle.truncate(position).catch(() => {});
        throw error;
      } finally {
        await handle.close();
      }
    } catch (error) {
      file.waiting--;
      // Whether it could be cut back is not certain, so nothing more goes into this file.
      this.#current = undefined;
      throw error;
    }
    file.bytes += line.length;
    this.bytes += line.length;
    return { file, position, bytes: line.length };
  }

  /** Undefined: what stands there is no batch. */
  async read({ file, position, bytes }: BatchLocation): Promise<string | undefined> {
    if (bytes > LINE_BYTES_MAX) return undefined;
    const line = await readAt(file.path, position, bytes - 1);
    const text = line.toString();
    return isUtf8(line) && isBatch(text) ? text : undefined;
  }

  /** Keeps what is no batch apart, for somebody to look at, as far as there is room for such things. */
  async setAside({ file, position, bytes }: BatchLocation): Promise<void> {
    const path = join(this.#folder, SET_ASIDE);
    const has = await stat(path).then(
      ({ size }) => size,
      () => 0,
    );
    if (has + bytes > SET_ASIDE_BYTES_MAX) return;
    await appendFile(path, await readAt(file.path, position, bytes), { mode: 0o600 });
  }

  /** Done with a batch: the file goes with its last one. */
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
    const { recorder, sequence, verifications, ratelimits } = JSON.parse(line);
    return (
      typeof recorder === "string" &&
      typeof sequence === "number" &&
      [verifications, ratelimits].every((cells) => Array.isArray(cells) && cells.every(Array.isArray))
    );
  } catch {
    return false;
  }
}
