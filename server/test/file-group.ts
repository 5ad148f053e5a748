import { AsyncResource } from "node:async_hooks";
import { after, describe } from "node:test";

/** A file that takes longer, in milliseconds, hangs: the longest takes minutes on two quiet cores. */
export const FILE_TIMEOUT = 15 * 60_000;

/** What a file left open keeps the process of its group alive no longer, in milliseconds. */
const IDLE_TIMEOUT = 30_000;

/**
 * Defines the tests of these files, each file as a suite with its name. The files share one process, and so load the modules
 * that they import once.
 */
export function describeFiles(files: readonly { name: string; url: string }[], idleTimeout = IDLE_TIMEOUT): void {
  // A test that failed may not have closed its server. Otherwise the run waited an hour, and said nothing.
  after(() => {
    setTimeout(() => endWhatIsOpen(idleTimeout), idleTimeout).unref();
  });
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

function endWhatIsOpen(waited: number): void {
  const open = process.getActiveResourcesInfo().join(", ");
  const files = "A test of these files left something open that keeps their process alive";
  process.stderr.write(
    `${files} ${waited / 1_000} s after the last one: ${open}. Close it in \`finally\` or \`after\`.\n`,
  );
  process.exit(1);
}
