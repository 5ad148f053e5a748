// The name of a build: a hash of the files that it is made from.
import { createHash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { join } from "node:path";

/**
 * Hashes the paths and the contents of these files of `folder`, in the order of the paths. `isRead`: of which files the
 * content counts; of the others their size does.
 *
 * All are read into one buffer: each of its own would stay with the process that starts then, 10 MiB in all.
 */
export function fingerprint(folder, paths, isRead = () => true) {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(64 * 1024);
  for (const path of [...paths].sort()) {
    const file = openSync(join(folder, path), "r");
    try {
      hash.update(`${path} ${fstatSync(file).size}\n`);
      if (!isRead(path)) continue;
      for (let length = 1; length > 0; ) {
        length = readSync(file, buffer);
        hash.update(buffer.subarray(0, length));
      }
    } finally {
      closeSync(file);
    }
  }
  return hash.digest("hex").slice(0, 32);
}
