import { join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { findFolder, installPackage } from "../../server/test/services/service.ts";

const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/**
 * Features that no test needs. Chromium starts a process for each of the two popups of the address bar whenever a context is
 * opened, also where there is no address bar: half of what an empty context costs. The others are those that Playwright
 * disables, whose list this one replaces.
 */
const disabledFeatures = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "OptimizationHints",
  "NetworkTimeServiceQuerying",
  "AimEnabled",
  "PreconnectToSearch",
];

/** Starts the Chromium of this machine. */
export function launchChromium(): Promise<Browser> {
  const args = [`--disable-features=${disabledFeatures.join()}`];
  if (process.getuid?.() === 0) args.push("--no-sandbox");
  return chromium.launch({ executablePath: findChromium(), args });
}

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
