import { mkdir, open, rename } from "node:fs/promises";
import { join } from "node:path";

/** An open file. Positions and lengths are in bytes. */
export interface CounterFile {
  /** Reads up to `length` bytes; fewer only at the end of the file. */
  read(position: number, length: number): Promise<Uint8Array>;
  /** Writes all of `bytes`. After a failure any part of them may be written. */
  write(position: number, bytes: Uint8Array): Promise<void>;
  /** Flushes all writes to the disk. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The folder of a counter journal. A test replaces it to simulate failures. */
export interface CounterFiles {
  /** Opens a file for reading and writing; undefined if it does not exist. */
  open(name: string): Promise<CounterFile | undefined>;
  /** Creates an empty file, replacing an existing one. */
  create(name: string): Promise<CounterFile>;
  /** Replaces `target` by `source` atomically and durably. */
  rename(source: string, target: string): Promise<void>;
}

/** A folder of the file system. Only the owner may read its files, because they contain the key of the fingerprints. */
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
      // The folder entry must reach the disk too. Windows does not support this.
      await handle.sync().catch(() => {});
      await handle.close();
    },
  };
}
