// The bundle of a clone: built at a start after the sources have changed, and stored by their content.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fingerprint } from "./fingerprint.js";

const server = fileURLToPath(new URL("../", import.meta.url));

/** Builds that no start has used for this time are deleted. A running service can still load files of its build. */
const UNUSED_MAX_MS = 30 * 24 * 3_600_000;

const BUILD_MAX_MS = 60_000;

/**
 * The path of the start file of the bundle in `folder`, built if it is missing. Undefined if that is impossible, for
 * example because the folder is read-only, the bundler is not installed or a source has an error.
 */
export function cachedBundle(folder) {
  const target = join(folder, `bundle-${fingerprint(server, sources())}`);
  const main = join(target, "main.mjs");
  try {
    if (!existsSync(main)) build(folder, target);
  } catch {
    return undefined;
  }
  markUsed(target);
  return main;
}

/** Everything that the bundle is made from, below `server`. The lock file stands for the packages. */
function sources() {
  // The client commands call through the SDK, and the portal has its element.
  const programs = ["src", "../engine/src", "../cli/src", "../sdk/src"].flatMap((folder) =>
    readdirSync(join(server, folder), { recursive: true })
      .filter((path) => /\.(ts|json)$/.test(path) && !path.endsWith(".test.ts"))
      .map((path) => join(folder, path)),
  );
  const builders = readdirSync(join(server, "build")).map((path) => join("build", path));
  return ["../package-lock.json", "package.json", ...builders, ...programs];
}

function build(folder, target) {
  mkdirSync(folder, { recursive: true });
  const building = mkdtempSync(join(folder, "building-"));
  try {
    // In a process of its own: the memory of the bundler would stay with the service.
    const program = fileURLToPath(new URL("build-cached.js", import.meta.url));
    execFileSync(process.execPath, [program, building], { stdio: "ignore", timeout: BUILD_MAX_MS });
    renameSync(building, target);
    removeUnused(folder);
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    // Another process has built the same bundle at the same time.
    if (!existsSync(target)) throw error;
  }
}

/** Deletes builds, and parts of builds that were interrupted, that no start has used for a long time. */
export function removeUnused(folder, names = /^(bundle|building)-/) {
  for (const name of readdirSync(folder).filter((entry) => names.test(entry))) {
    const path = join(folder, name);
    if (Date.now() - statSync(path).mtimeMs > UNUSED_MAX_MS) rmSync(path, { recursive: true, force: true });
  }
}

export function markUsed(target) {
  try {
    const now = new Date();
    utimesSync(target, now, now);
  } catch {
    // A build in a read-only folder can be used, and nothing deletes it.
  }
}
