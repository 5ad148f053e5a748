/**
 * `npm run test:dashboard`: the dashboard in a real Chromium, with the real service, on both databases. Chromium is that
 * of Debian, which is installed with apt-get if it is missing and that is possible. `npm run test:dashboard -- keys` runs
 * the files whose path contains "keys"; `--images` takes pictures of each page in dist/images, and replaces those that
 * documents show, in docs/images.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, globSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { startPostgres } from "../../server/test/services/postgres.ts";
import { findChromium } from "./chromium.ts";

const FILE_TIMEOUT_MS = 15 * 60_000;

const root = fileURLToPath(new URL("../..", import.meta.url));
const filters = process.argv.slice(2).filter((argument) => argument !== "--images");
const images = process.argv.includes("--images") ? join(root, "dist", "images") : undefined;
if (images !== undefined) process.env.LATCHKEY_TEST_IMAGES = images;

const files = globSync("dashboard/test/**/*.test.ts", { cwd: root })
  .filter((path) => filters.length === 0 || filters.some((filter) => path.includes(filter)))
  .sort();
if (files.length === 0) throw new Error(`No test of the dashboard matches ${filters.join(" ")}.`);
process.env.LATCHKEY_TEST_CHROMIUM = findChromium();

const build = spawnSync("npm", ["run", "build", "--workspace", "dashboard"], { cwd: root, stdio: "inherit" });
if (build.status !== 0) process.exit(1);

const postgres = process.env.LATCHKEY_TEST_POSTGRES_URL ? undefined : await startPostgres();
if (postgres) process.env.LATCHKEY_TEST_POSTGRES_URL = postgres.url;
try {
  const events = run({
    files: files.map((path) => join(root, path)),
    cwd: root,
    // The service and the browser of a file wait for each other.
    concurrency: 2,
    timeout: FILE_TIMEOUT_MS,
  });
  events.on("test:fail", () => {
    process.exitCode = 1;
  });
  for await (const text of events.compose(spec)) process.stdout.write(text);
  if (images !== undefined) replaceImages(images, join(root, "docs", "images"));
} finally {
  await postgres?.stop();
}

/** Replaces each image by the one of the same name, if there is a new one. */
function replaceImages(from: string, folder: string): void {
  for (const name of readdirSync(folder)) {
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(folder, name));
  }
}
