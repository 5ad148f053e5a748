// The files of the dashboard: built into the package, or in a clone at a start after its sources have changed. Each build of
// a clone has a folder of its own in `dashboard/dist`, because a running service still reads the files of an earlier one.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { markUsed, removeUnused } from "./cache.js";
import { fingerprint } from "./fingerprint.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const dashboard = join(root, "dashboard");
const dist = join(dashboard, "dist");

/** A build is named after a hash of its sources. The service takes the one that was used last. */
const BUILDS = /^[0-9a-f]{32}$/;

const BUILD_MAX_MS = 120_000;

/** What the dashboard and the pages below /docs and /reference are built from. The lock file stands for the packages. */
const files = [
  "CHANGELOG.md",
  "package-lock.json",
  "api/openapi.json",
  "api/permissions.md",
  "api/problems.md",
  "cli/src/commands.json",
  "cli/src/example-command.ts",
  "clients/go/README.md",
  "clients/python/README.md",
  "dashboard/index.html",
  "dashboard/package.json",
  "dashboard/tsconfig.json",
  "dashboard/vite.config.ts",
  "examples/image-api/README.md",
  "examples/llm-gateway/README.md",
  "examples/litellm-proxy/README.md",
  "sdk/README.md",
];
const folders = ["dashboard/build", "dashboard/public", "dashboard/src", "docs", "sdk/src"];

/** Everything that a build reads, besides packages. */
export const sources = [...files, ...folders];

/**
 * Builds the dashboard if it is missing or its sources have changed. Prints a line before. If that is impossible, for
 * example because Vite is not installed, prints another one, and the service starts with the files that it has.
 */
export function ensureDashboard() {
  if (!existsSync(join(dashboard, "vite.config.ts"))) return;
  // Megabytes of images would be read at each start.
  const target = join(
    dist,
    fingerprint(root, builtFiles(), (path) => !path.endsWith(".png")),
  );
  if (existsSync(target)) return markUsed(target);
  const reason = hasBuild() ? "because its sources have changed" : "for the first start";
  console.error(`latchkey: building the dashboard ${reason} (about 10 seconds)`);
  const cache = join(root, "node_modules/.cache/latchkey");
  let building;
  try {
    for (const folder of [cache, dist]) mkdirSync(folder, { recursive: true });
    building = mkdtempSync(join(cache, "building-dashboard-"));
    // In a process of its own: the memory of the bundler would stay with the service.
    const program = fileURLToPath(new URL("build-dashboard.js", import.meta.url));
    execFileSync(process.execPath, [program, building], {
      stdio: ["ignore", "ignore", "pipe"],
      timeout: BUILD_MAX_MS,
      env: { ...process.env, NODE_ENV: "production" },
    });
    // Only this user may read a temporary folder. Another one may start the service.
    chmodSync(building, 0o777 & ~process.umask());
    renameSync(building, target);
    removeUnused(dist, BUILDS);
  } catch (error) {
    // Another process has built the same files at the same time.
    if (existsSync(target)) return;
    console.error(`latchkey: the dashboard could not be built: ${failureOf(error)}`);
  } finally {
    if (building) rmSync(building, { recursive: true, force: true });
  }
}

function hasBuild() {
  return existsSync(dist) && readdirSync(dist).some((name) => BUILDS.test(name));
}

/** The cause of a failed build, with what to do. */
function failureOf(error) {
  const text = String(error.stderr ?? error.message).trim();
  const line = text.split("\n").find((one) => /error|EACCES|EPERM|EROFS/i.test(one)) ?? text.split("\n")[0];
  // A clone of somebody else, or on a medium that cannot be written.
  if (/EACCES|EPERM|EROFS/.test(text)) {
    return `${line}. This user may not write into ${root}. Start once as the owner of the folder, or in a clone of your own.`;
  }
  return `${line} Try \`npm ci\`, then start again.`;
}

/** Writes the files of the dashboard into an empty folder. Returns the files of packages that they are made from. */
export async function buildDashboard(folder) {
  const { build } = await import("vite");
  const { output } = await build({
    root: dashboard,
    logLevel: "error",
    build: { outDir: folder, emptyOutDir: true },
  });
  return output.flatMap(({ moduleIds = [] }) => moduleIds).filter((id) => id.includes("node_modules"));
}

function builtFiles() {
  const inFolders = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/\.test\.tsx?$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length)),
  );
  return [...files, ...inFolders];
}
