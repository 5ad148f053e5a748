import type { CounterFile, CounterFiles } from "./counter-files.ts";

/** For tests: a folder in memory. Writes fail after `failAfter` more bytes, as on a full disk. */
export class FaultyFiles implements CounterFiles {
  readonly contents = new Map<string, Buffer>();
  failAfter = Number.POSITIVE_INFINITY;

  async open(name: string) {
    return this.contents.has(name) ? this.#file(name) : undefined;
  }

  async create(name: string) {
    this.contents.set(name, Buffer.alloc(0));
    return this.#file(name);
  }

  async rename(source: string, target: string) {
    if (this.failAfter <= 0) throw new Error("EIO: rename");
    this.contents.set(target, this.#contentOf(source));
    this.contents.delete(source);
  }

  #contentOf(name: string): Buffer {
    const content = this.contents.get(name);
    if (content === undefined) throw new Error(`ENOENT: ${name}`);
    return content;
  }

  #file(name: string): CounterFile {
    // As with a real file, an open handle stays valid after a rename.
    const cell = { bytes: this.#contentOf(name) };
    return {
      read: async (position, length) => Buffer.from(cell.bytes.subarray(position, position + length)),
      write: async (position, bytes) => {
        const done = Math.min(bytes.length, Math.max(0, this.failAfter));
        this.failAfter -= bytes.length;
        const grown = Buffer.alloc(Math.max(cell.bytes.length, position + done));
        cell.bytes.copy(grown);
        grown.set(bytes.subarray(0, done), position);
        for (const [key, value] of this.contents) if (value === cell.bytes) this.contents.set(key, grown);
        cell.bytes = grown;
        if (done < bytes.length) throw new Error("ENOSPC: no space left on device");
      },
      sync: async () => {
        if (this.failAfter <= 0) throw new Error("EIO: sync");
      },
      close: async () => {},
    };
  }
}
