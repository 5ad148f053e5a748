/**
 * `npm run test:dashboard`: the dashboard in a real Chromium, with the real service. Chromium is that of Debian, which is
 * installed with apt-get if it is missing and that is possible. `npm run test:dashboard -- keys` runs the files whose path
 * contains "keys"; `--images` takes pictures of each page in dist/images, and replaces those that
 * documents show, in docs/images. `--slow` lets the scripts of pages take five times as long, which finds what a test does
 * too early; it runs on SQLite only. Up to three files that fail are run once more, alone, and named if they pass then.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, readdirSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../../server/test/services/postgres.ts";
import { findChromium } from "./chromium.ts";

const FILE_TIMEOUT_MS = 15 * 60_000;
/** With more failed files than these, the dashboard is broken, and nothing is run again. */
const MOST_REPEATED_FILES = 3;
const SLOWDOWN = 5;
/** Pages wait for the service, for timers and for what moves, so one more than the cores of a small machine. */
const CONCURRENCY = 3;
/** Files that take longest, the first one most. They start first, so that the run does not end with one of them alone. */
const longest = ["look", "reader", "keys", "security", "search", "tables", "portal", "key", "first-load", "root-keys"];

const root = fileURLToPath(new URL("../..", import.meta.url));
const filters = process.argv.slice(2).filter((argument) => !["--images", "--slow"].includes(argument));
const images = process.argv.includes("--images") ? join(root, "dist", "images") : undefined;
if (process.argv.includes("--slow")) process.env.LATCHKEY_TEST_SLOWDOWN = String(SLOWDOWN);
if (images !== undefined) process.env.LATCHKEY_TEST_IMAGES = images;

const files = globSync("dashboard/test/**/*.test.ts", { cwd: root })
  .filter((path) => filters.length === 0 || filters.some((filter) => path.includes(filter)))
  .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
if (files.length === 0) throw new Error(`No test of the dashboard matches ${filters.join(" ")}.`);
process.env.LATCHKEY_TEST_CHROMIUM = findChromium();

const build = spawnSync("npm", ["run", "build", "--workspace", "dashboard"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(1);

const postgres = process.env.LATCHKEY_TEST_POSTGRES_URL ? undefined : await startPostgres();
if (postgres) process.env.LATCHKEY_TEST_POSTGRES_URL = postgres.url;
try {
  let failed = await runFiles(files.map((path) => join(root, path)));
  // A browser on a busy machine may draw later than a test of hundreds expects. What fails again, alone, is a fault.
  if (failed.length > 0 && failed.length <= MOST_REPEATED_FILES) {
    const repeated = failed;
    process.stdout.write(`\nOnce more, alone:\n${list(repeated)}\n`);
    failed = await runFiles(repeated, 1);
    const unstable = repeated.filter((path) => !failed.includes(path));
    if (unstable.length > 0)
      process.stdout.write(`\nFailed at first and passed alone; mend them:\n${list(unstable)}\n`);
  }
  if (failed.length > 0) process.exitCode = 1;
  if (images !== undefined) replaceImages(images, join(root, "docs", "images"));
} finally {
  await postgres?.stop();
}

/** Runs the files, prints their results, and returns those with a failed test. */
async function runFiles(paths: string[], concurrency = CONCURRENCY): Promise<string[]> {
  const failed = new Set<string>();
  const events = run({ files: paths, cwd: root, concurrency, timeout: FILE_TIMEOUT_MS });
  events.on("test:fail", ({ file, name }) => failed.add(file ?? name));
  for await (const text of events.compose(spec)) process.stdout.write(text);
  // A suite is in the file of the helper that describes it. Its failed test is in one that was asked for.
  const asked = paths.filter((path) => failed.has(path));
  return asked.length > 0 ? asked : [...failed];
}

function rank(path: string): number {
  const position = longest.indexOf(basename(path, ".test.ts"));
  return position === -1 ? longest.length : position;
}

function list(paths: string[]): string {
  return paths.map((path) => `  ${relative(root, path)}`).join("\n");
}

/** Replaces each image by the one of the same name, if there is a new one. */
function replaceImages(from: string, folder: string): void {
  for (const name of readdirSync(folder)) {
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(folder, name));
  }
}
