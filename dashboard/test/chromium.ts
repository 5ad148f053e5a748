import { join } from "node:path";
import { findFolder, installPackage } from "../../server/test/services/service.ts";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/** The path of a Chromium of this machine. As root on Debian it is installed if it is missing. */
export function findChromium(): string {
  const given = process.env.LATCHKEY_TEST_CHROMIUM;
  const found = given ?? installed() ?? (installPackage("chromium") ? installed() : undefined);
  if (found === undefined) {
    throw new Error(
      "The tests of the dashboard need Chromium: install it (Debian: `apt-get install chromium`), or set LATCHKEY_TEST_CHROMIUM to its path.",
    );
  }
  return found;
}

function installed(): string | undefined {
  for (const name of names) {
    const folder = findFolder([name], []);
    if (folder !== undefined) return join(folder, name);
  }
  return undefined;
}
