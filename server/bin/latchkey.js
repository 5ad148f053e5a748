#!/usr/bin/env node
// The command `latchkey`. If this Node is too old, it starts a newer one, which runs this file again.
import { existsSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { isNewEnough, runNode, stopWithLauncher, stopWithNpm } from "./runtime.js";

if (isNewEnough()) {
  stopWithLauncher();
  stopWithNpm();
  await import(await startFile());
} else {
  runNode([fileURLToPath(import.meta.url), ...process.argv.slice(2)], { tied: true });
}

/** The URL of the program: the bundle of the package, that of this clone, or the sources. */
async function startFile() {
  const sources = new URL("../src/main.ts", import.meta.url);
  if (!existsSync(sources)) return new URL("../dist/main.mjs", import.meta.url).href;
  requirePackages();
  const { cachedBundle } = await import("../build/cache.js");
  // Also without the dashboard: its build has the pages below /docs and /reference.
  if (startsService()) {
    const { ensureDashboard } = await import("../build/dashboard.js");
    ensureDashboard();
  }
  // Not in the shared temporary folder, where another user could put code that we would run.
  const bundle = cachedBundle(fileURLToPath(new URL("../../node_modules/.cache/latchkey", import.meta.url)));
  return bundle === undefined ? sources.href : pathToFileURL(bundle).href;
}

/** Ends a start of a clone without the packages that its sources import: `npm ci --omit=dev` leaves them out. */
function requirePackages() {
  try {
    import.meta.resolve("commander");
  } catch {
    console.error("latchkey: this clone lacks packages that it is built with. Type `npm ci`, without --omit.");
    process.exit(1);
  }
}

/** Whether this is `latchkey serve`, also without its name. */
function startsService() {
  const [first, ...others] = process.argv.slice(2);
  if (first !== undefined && first !== "serve" && !first.startsWith("-")) return false;
  return ![first, ...others].some((argument) => ["-h", "--help", "-V", "--version"].includes(argument));
}
