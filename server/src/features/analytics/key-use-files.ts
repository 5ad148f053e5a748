import { createReadStream } from "node:fs";
import { appendFile, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PART_AT } from "./key-uses.ts";
import type { KeyUse } from "./recorder.ts";

/** Bytes of uses in memory, and the most if the disk accepts none. Further uses are then dropped. */
const BUFFERED_BYTES = 1024 ** 2;
const BUFFERED_BYTES_MAX = 16 * 1024 ** 2;

const FILE_BYTES = 8 * 1024 ** 2;

const EXTENSION = ".uses";
/** A file that is being written to the database. Further uses go to a new one. */
const TAKEN = ".taken";

const LINE = /^(\S+) (\d+)\.$/;

/** Bytes that a part first has room for in memory, and the most that it keeps for further uses. */
const ROOM_MIN = 4 * 1024;
const SPARE_MAX = 64 * 1024;

const NO_BYTES = Buffer.alloc(0);

interface Part {
  /** Uses that are not in the file yet, as lines: bytes, because the collector of garbage would copy a text for each. */
  buffered: Buffer;
  /** Bytes of them. */
  length: number;
  /** The buffer that was written last, for the lines after those in `buffered`. */
  spare: Buffer;
  /** Bytes of the file. */
  bytes: number;
  /** The size at which the file is rewritten. */
  bytesMax: number;
  isTaken: boolean;
}

/**
 * The last uses of keys for which memory has no room, in files by the beginning of the key's id. One part at a time is read
 * back, in the order of ids, so that the database writes neighbouring rows together. Memory does not depend on the number of
 * keys, and the size on disk depends on the number of keys, not on that of uses. The files of an earlier process are kept.
 */
export class KeyUseFiles {
  readonly #folder: string;
  readonly #parts = new Map<string, Part>();
  #bufferedBytes = 0;
  /** Whether `addOne` has started to write what is in memory. */
  #isFlushing = false;
  /** Serialises what is done with files. */
  #working: Promise<unknown> = Promise.resolve();

  readonly #fileBytes: number;

  /** @param fileBytes the size at which a file is rewritten with the last use of each key, unless it stays larger. */
  constructor(folder: string, fileBytes = FILE_BYTES) {
    this.#folder = folder;
    this.#fileBytes = fileBytes;
  }

  /** Finds the files of an earlier process. */
  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(this.#folder)) {
      // What a process that ended had not renamed yet: the old file is there.
      if (name.endsWith(".uses.new")) await rm(join(this.#folder, name), { force: true });
      const found = /^([0-9a-f]+)\.(uses|taken)$/.exec(name);
      if (found?.[1] === undefined) continue;
      const part = this.#part(found[1]);
      if (found[2] === "taken") part.isTaken = true;
      else {
        part.bytes = (await stat(join(this.#folder, name))).size;
        // The last line may be incomplete.
        this.#buffer(part, "\n");
      }
    }
  }

  /** The parts that have uses, in the order of the ids. */
  get parts(): string[] {
    const filled = [...this.#parts].filter(([, { length, bytes, isTaken }]) => isTaken || bytes > 0 || length > 0);
    return filled.map(([name]) => name).sort();
  }

  /** The ids of the keys with the latest uses in the files, at most `count`, the latest first. Memory holds twice as many. */
  newest(count: number): Promise<string[]> {
    return this.#alone(async () => {
      let latest = new Map<string, number>();
      const prune = () => {
        const byTime = [...latest].sort(([, a], [, b]) => b - a);
        latest = new Map(byTime.slice(0, count));
      };
      for (const [name, { bytes, isTaken }] of this.#parts) {
        const files = [...(isTaken ? [TAKEN] : []), ...(bytes > 0 ? [EXTENSION] : [])];
        for (const extension of files) {
          await readInto(this.#path(name, extension), (keyId, at) => {
            if (at > (latest.get(keyId) ?? 0)) latest.set(keyId, at);
            if (latest.size >= 2 * count) prune();
          });
        }
      }
      prune();
      return [...latest.keys()];
    });
  }

  add(uses: readonly KeyUse[]): void {
    for (const { keyId, at } of uses) this.addOne(keyId, at);
  }

  addOne(keyId: string, at: number): void {
    if (this.#bufferedBytes >= BUFFERED_BYTES_MAX) return;
    this.#buffer(this.#part(nameOf(keyId)), lineOf(keyId, at));
    if (this.#bufferedBytes >= BUFFERED_BYTES && !this.#isFlushing) {
      this.#isFlushing = true;
      void this.flush().finally(() => {
        this.#isFlushing = false;
      });
    }
  }

  /** Writes what is in memory. Uses that the disk does not accept stay in memory. */
  flush(): Promise<void> {
    return this.#alone(async () => {
      for (const name of this.#parts.keys()) await this.#append(name).catch(() => {});
    });
  }

  /** The last use of each key of a part, in groups of neighbouring ids. They stay on disk until `done`. */
  take(name: string): Promise<KeyUse[][]> {
    return this.#alone(async () => {
      const part = this.#part(name);
      if (!part.isTaken) {
        await this.#append(name);
        await rename(this.#path(name, EXTENSION), this.#path(name, TAKEN));
        Object.assign(part, { bytes: 0, bytesMax: this.#fileBytes, isTaken: true });
      }
      return groupsOf(await read(this.#path(name, TAKEN)));
    });
  }

  /** Removes the uses that `take` returned. */
  done(name: string): Promise<void> {
    return this.#alone(async () => {
      await rm(this.#path(name, TAKEN), { force: true });
      this.#part(name).isTaken = false;
    });
  }

  async #append(name: string): Promise<void> {
    const part = this.#part(name);
    const { buffered, length } = part;
    if (length === 0) return;
    Object.assign(part, { buffered: part.spare, length: 0, spare: NO_BYTES });
    const lines = buffered.subarray(0, length);
    try {
      await appendFile(this.#path(name, EXTENSION), lines, { mode: 0o600 });
    } catch (error) {
      // A part of the lines may be in the file.
      this.#buffer(part, "\n");
      this.#buffer(part, lines.toString("latin1"));
      throw error;
    } finally {
      this.#bufferedBytes -= length;
    }
    if (buffered.length <= SPARE_MAX) part.spare = buffered;
    part.bytes += length;
    if (part.bytes >= part.bytesMax) await this.#rewrite(name, part);
  }

  async #rewrite(name: string, part: Part): Promise<void> {
    const path = this.#path(name, EXTENSION);
    const lines = groupsOf(await read(path)).map((uses) => uses.map(({ keyId, at }) => lineOf(keyId, at)).join(""));
    await writeFile(`${path}.new`, lines, { mode: 0o600 });
    await rename(`${path}.new`, path);
    part.bytes = lines.reduce((sum, { length }) => sum + length, 0);
    part.bytesMax = Math.max(this.#fileBytes, 2 * part.bytes);
  }

  #buffer(part: Part, text: string): void {
    const length = part.length + text.length;
    if (length > part.buffered.length) {
      const larger = Buffer.allocUnsafe(Math.max(ROOM_MIN, 2 * part.buffered.length, length));
      part.buffered.copy(larger, 0, 0, part.length);
      part.buffered = larger;
    }
    part.buffered.write(text, part.length, "latin1");
    part.length = length;
    this.#bufferedBytes += text.length;
  }

  #part(name: string): Part {
    let part = this.#parts.get(name);
    if (part === undefined) {
      part = { buffered: NO_BYTES, length: 0, spare: NO_BYTES, bytes: 0, bytesMax: this.#fileBytes, isTaken: false };
      this.#parts.set(name, part);
    }
    return part;
  }

  #path(name: string, extension: string): string {
    return join(this.#folder, name + extension);
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#working.then(work);
    this.#working = result.catch(() => {});
    return result;
  }
}

/** The part of a key. */
function nameOf(keyId: string): string {
  return (keyId.charCodeAt(PART_AT) || 0).toString(16).padStart(4, "0");
}

/** A line ends with a mark, so that an incomplete one is not taken for an earlier time. */
function lineOf(keyId: string, at: number): string {
  return `${keyId} ${at}.\n`;
}

/** The last use of each key in a file, without lines that a kill cut off. */
async function read(path: string): Promise<Map<string, number>> {
  const uses = new Map<string, number>();
  await readInto(path, (keyId, at) => {
    if (at > (uses.get(keyId) ?? 0)) uses.set(keyId, at);
  });
  return uses;
}

/** Passes each use in a file on, in the order in which they were written. */
async function readInto(path: string, onUse: (keyId: string, at: number) => void): Promise<void> {
  const add = (line: string) => {
    const [, keyId, digits] = LINE.exec(line) ?? [];
    if (keyId !== undefined) onUse(keyId, Number(digits));
  };
  let rest = "";
  // In chunks, whose lines take a few milliseconds: asking for line after line costs more than reading them.
  for await (const chunk of createReadStream(path, "latin1")) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(add);
  }
  add(rest);
}

/** Uses by the next character of their ids: few of them are sorted at a time. */
function groupsOf(uses: ReadonlyMap<string, number>): KeyUse[][] {
  const groups = Map.groupBy(uses, ([keyId]) => keyId.charCodeAt(PART_AT + 1) || 0);
  return [...groups].sort(([a], [b]) => a - b).map(([, group]) => group.map(([keyId, at]) => ({ keyId, at })));
}
