import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const folder = fileURLToPath(new URL("../../node_modules/.cache/latchkey", import.meta.url));

/**
 * Lets the processes of the tests run the bundle of the sources, which starts in a third of the time. Without one, or where
 * lines are counted, they run the sources.
 */
export function useBundle(): void {
  if (process.env.NODE_V8_COVERAGE !== undefined || process.env.TESTED_BUNDLE !== undefined) return;
  const { cachedBundle } = createRequire(import.meta.url)("../build/cache.js");
  const bundle: string | undefined = cachedBundle(folder);
  if (bundle !== undefined) process.env.TESTED_BUNDLE = pathToFileURL(bundle).href;
}
