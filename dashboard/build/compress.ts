import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const TEXT = /\.(?:js|css|html|json|md|svg|txt)$/;

/** A tenth of the time of the best quality, for a twentieth more bytes: there are hundreds of printed pages. */
const PAGE_QUALITY = 9;

/** Read by the service itself. */
const OWN = "pages.json";

/**
 * Writes each text file of a build in the encodings `br` and `gzip`, so that the service compresses nothing, and not plain:
 * these were a third of the package, and the service unpacks them for the few clients that want them so.
 */
export function compress(): Plugin {
  return {
    name: "compress",
    apply: "build",
    async writeBundle({ dir }, bundle) {
      const names = Object.keys(bundle).filter((name) => TEXT.test(name) && name !== OWN);
      await Promise.all(names.map((name) => compressFile(join(dir!, name), name.startsWith("assets/"))));
    },
  };
}

/** The threads of libuv compress several files at a time. */
async function compressFile(path: string, isAsset: boolean): Promise<void> {
  const content = await readFile(path);
  const quality = isAsset ? constants.BROTLI_MAX_QUALITY : PAGE_QUALITY;
  const [brotli, gzipped] = await Promise.all([
    promisify(brotliCompress)(content, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }),
    promisify(gzip)(content, { level: constants.Z_BEST_COMPRESSION }),
  ]);
  await Promise.all([writeFile(`${path}.br`, brotli), writeFile(`${path}.gz`, gzipped)]);
  await rm(path);
}
