import { AsyncResource } from "node:async_hooks";
import { describe } from "node:test";

/** A file that takes longer, in milliseconds, hangs: the longest takes minutes on two quiet cores. */
export const FILE_TIMEOUT = 15 * 60_000;

/**
 * Defines the tests of these files, each file as a suite with its name. The files share one process, and so load the modules
 * that they import once.
 */
export function describeFiles(files: readonly { name: string; url: string }[]): void {
  let previous: Promise<void> | undefined;
  for (const { name, url } of files) {
    describe(name, { timeout: FILE_TIMEOUT }, async () => {
      // What a file defines while it is loaded belongs to the suite in whose asynchronous context it is loaded.
      const suite = new AsyncResource(name);
      const before = previous;
      const loaded = Promise.withResolvers<void>();
      previous = loaded.promise;
      await before;
      try {
        await suite.runInAsyncScope(() => import(url));
      } finally {
        loaded.resolve();
      }
    });
  }
}
