import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Where a batch lies on disk. */
export interface Place {
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

  /** What an earlier process left, in its order. Lines that were cut off are left out. */
  async open(): Promise<{ text: string; place: Place }[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const found: { text: string; place: Place }[] = [];
    const names = (await readdir(this.#folder)).filter((name) => name.endsWith(EXTENSION)).sort();
    for (const name of names) {
      const path = join(this.#folder, name);
      const handle = await open(path, "r");
      const text = await handle.readFile("utf8").finally(() => handle.close());
      const file: SpoolFile = { path, bytes: Buffer.byteLength(text), waiting: 0 };
      this.bytes += file.bytes;
      let position = 0;
      // What follows the last line's end was being written when the process ended.
      for (const line of text.split("\n").slice(0, -1)) {
        const bytes = Buffer.byteLength(line) + 1;
        if (isWhole(line)) {
          found.push({ text: line, place: { file, position, bytes } });
          file.waiting++;
        }
        position += bytes;
      }
      if (file.waiting === 0) await this.#remove(file);
    }
    return found;
  }

  /**
   * Appends a batch, one line of text. One call at a time.
   *
   * @throws {SpoolFull} and whatever the file system says; nothing is kept then.
   */
  async append(text: string): Promise<Place> {
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

  async read({ file, position, bytes }: Place): Promise<string> {
    const handle = await open(file.path, "r");
    try {
      const { buffer } = await handle.read(Buffer.alloc(bytes), 0, bytes, position);
      return buffer.toString("utf8", 0, bytes - 1);
    } finally {
      await handle.close();
    }
  }

  /** Done with a batch: the file goes with its last one. */
  async done({ file }: Place): Promise<void> {
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

function isWhole(line: string): boolean {
  try {
    return typeof JSON.parse(line).sequence === "number";
  } catch {
    return false;
  }
}
