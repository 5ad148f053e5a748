// The files of the dashboard: built into the package, or into `dashboard/dist` of a clone at a start after its sources have
// changed.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const dashboard = join(root, "dashboard");
const dist = join(dashboard, "dist");

/** The file that names the sources of a build. */
const FINGERPRINT = ".fingerprint";

const BUILD_MAX_MS = 120_000;

/** What the dashboard is built from. The lock file stands for the packages. */
const files = [
  "package-lock.json",
  "api/openapi.json",
  "dashboard/index.html",
  "dashboard/package.json",
  "dashboard/tsconfig.json",
  "dashboard/vite.config.ts",
];
const folders = ["dashboard/build", "dashboard/public", "dashboard/src", "sdk/src"];

/**
 * Builds `dashboard/dist` if it is missing or its sources have changed. Prints a line before. If that is impossible, for
 * example because Vite is not installed, prints another one, and the service starts with the files that it has.
 */
export function ensureDashboard() {
  if (!existsSync(join(dashboard, "vite.config.ts"))) return;
  const wanted = fingerprint();
  if (wanted === builtFrom()) return;
  console.error("latchkey: building the dashboard, because its sources have changed (about 10 seconds)");
  const cache = join(root, "node_modules/.cache/latchkey");
  let building;
  try {
    mkdirSync(cache, { recursive: true });
    building = mkdtempSync(join(cache, "building-dashboard-"));
    // In a process of its own: the memory of the bundler would stay with the service.
    const program = fileURLToPath(new URL("build-dashboard.js", import.meta.url));
    execFileSync(process.execPath, [program, building], {
      stdio: ["ignore", "ignore", "pipe"],
      timeout: BUILD_MAX_MS,
      env: { ...process.env, NODE_ENV: "production" },
    });
    writeFileSync(join(building, FINGERPRINT), wanted);
    rmSync(dist, { recursive: true, force: true });
    renameSync(building, dist);
  } catch (error) {
    // Another process has built the same files at the same time.
    if (wanted === builtFrom()) return;
    const reason = String(error.stderr ?? error.message).trim();
    const line = reason.split("\n").find((text) => /error/i.test(text)) ?? reason.split("\n")[0];
    console.error(`latchkey: the dashboard could not be built: ${line} Try \`npm ci\`, then start again.`);
  } finally {
    if (building) rmSync(building, { recursive: true, force: true });
  }
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

function fingerprint() {
  const hash = createHash("sha256");
  const inFolders = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/\.test\.tsx?$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length)),
  );
  for (const path of [...files, ...inFolders].sort()) {
    const content = readFileSync(join(root, path));
    hash.update(`${path} ${content.length}\n`).update(content);
  }
  return hash.digest("hex").slice(0, 32);
}

function builtFrom() {
  try {
    return readFileSync(join(dist, FINGERPRINT), "utf8");
  } catch {
    return undefined;
  }
}
