/** Runs the files that `run.ts` was asked for, for as long as standard input stays open. */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, matchesGlob, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath, pathToFileURL } from "node:url";
import { FILE_TIMEOUT } from "./file-group.ts";
import { SharedServices } from "./services/shared.ts";
import { useBundle } from "./tested-bundle.ts";

const patterns = [
  "engine/src/**/*.test.ts",
  "cli/src/**/*.test.ts",
  "server/src/**/*.test.ts",
  "server/test/**/*.test.ts",
  "sdk/test/**/*.test.ts",
  "dashboard/build/**/*.test.ts",
  "bench/**/*.test.ts",
];
const comparison = "server/test/observed.last.ts";
/** A process of many files that takes longer hangs. Each of them has the time of one file. */
const groupTimeoutMs = 60 * 60_000;
/** Many files wait for processes and servers part of their time, so one more than the cores of a small machine. */
const concurrency = 3;
const slowestShown = 10;

/**
 * Files that take longest, the first one most, in processes of their own. They start first, so that the run does not end with
 * one of them alone.
 */
const longest = [
  "server/test/cli.test.ts",
  "server/test/sweep.test.ts",
  "server/test/tenancy.test.ts",
  "server/test/scenarios/retention.test.ts",
  "server/test/vault.test.ts",
  "server/test/partitions.test.ts",
  "server/test/storage.test.ts",
  "server/test/fuzz.test.ts",
  "server/test/adversary/dashboard-sessions.test.ts",
  "server/test/cli-operations.test.ts",
  // Its servers have edges, those of other files have none.
  "server/test/edge-suites.test.ts",
];
/** Files that measure the CPU time, the memory or the asynchronous work of their process have one of their own. */
const measures = /cpu-time\.ts|memoryUsage|resourceUsage|createHook|getHeapStatistics/;
/** Files of one process, at most. */
const groupMax = 20;

const root = fileURLToPath(new URL("../..", import.meta.url));
const isSlowRun = process.argv.includes("--slow");
const filters = process.argv.slice(2).filter((argument) => argument !== "--slow");
const isWhole = filters.length === 0 && !isSlowRun;
const interruption = new AbortController();
process.stdin.once("end", () => interruption.abort()).resume();

const chosen = globSync(patterns, { cwd: root }).filter(isChosen).sort();
const { LATCHKEY_TEST_DATA: folder = "" } = process.env;
if (folder === "") throw new Error("run.ts makes the folder for this.");
const observations = join(folder, "observations");
mkdirSync(observations);
const services = await SharedServices.open();
process.env.LATCHKEY_TEST_OBSERVATIONS = observations;
process.env.LATCHKEY_TEST_SERVICES = services.url;
// Types are stripped once for all processes of the run and the next ones.
process.env.NODE_COMPILE_CACHE ??= join(root, ".cache", "compiled");
// A run of few files builds it when one of them starts the program.
if (filters.length === 0) useBundle();
try {
  if (chosen.length === 0) throw new Error(`No test file matches ${filters.join(" ") || patterns.join(" ")}.`);
  const counts = await runFiles(chosen);
  // The observations are complete only if every quick file has run.
  if (isWhole && existsSync(join(root, comparison))) {
    const { passed, failed } = await runFiles([comparison]);
    counts.passed += passed;
    counts.failed += failed;
  }
  if (counts.failed > 0 || counts.passed === 0) process.exitCode ??= 1;
  console.log(`\n${counts.passed} passed, ${counts.failed} failed`);
} catch (problem) {
  console.error(problem instanceof Error ? problem.message : problem);
  process.exitCode ??= 1;
} finally {
  await services.stop();
}
if (interruption.signal.aborted) removeAll(folder);
process.exit();

/** Does what run.ts does at the end, which may have been killed: otherwise services of interrupted files would run on. */
function removeAll(data: string): void {
  try {
    rmSync(data, { recursive: true, force: true, maxRetries: 5 });
  } finally {
    process.kill(-process.pid, "SIGKILL");
  }
}

/** Runs test files in a few processes, and prints their reports. A test that was cut off has failed. */
async function runFiles(paths: string[]): Promise<{ passed: number; failed: number }> {
  const counts = { passed: 0, failed: 0 };
  if (interruption.signal.aborted) return counts;
  const seconds = new Map<string, number>();
  const { alone, shared } = divided(paths);
  const events = run({
    files: [...alone.map((path) => join(root, path)), ...groupsOf(shared)],
    cwd: root,
    concurrency,
    execArgv: ["--import", new URL("properties.ts", import.meta.url).href],
    timeout: shared.length === 0 ? FILE_TIMEOUT : groupTimeoutMs,
    signal: interruption.signal,
  });
  events.on("test:pass", ({ name, file }) => {
    // The runner reports a file without tests as a passed test with the file's name.
    if (name === file) counts.passed--;
  });
  for (const type of ["test:pass", "test:fail"] as const) {
    events.on(type, ({ name, nesting, details }) => {
      if (nesting === 0 && paths.includes(name)) seconds.set(name, details.duration_ms / 1_000);
    });
  }
  events.on("test:summary", ({ file, success, duration_ms, counts: { tests, passed, skipped, todo } }) => {
    if (file !== undefined) {
      const path = relative(root, file);
      if (paths.includes(path)) seconds.set(path, duration_ms / 1_000);
      return;
    }
    counts.passed += passed;
    const failed = tests - passed - skipped - todo;
    // An error of a suite outside of its tests is no failed test, but it is a failure.
    counts.failed += success ? failed : Math.max(failed, 1);
  });
  for await (const text of events.compose(spec)) process.stdout.write(text);
  if (seconds.size > slowestShown) {
    const slowest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, slowestShown);
    console.log(
      `\nThe slowest files:${slowest.map(([path, time]) => `\n${time.toFixed(1).padStart(8)} s  ${path}`).join("")}`,
    );
  }
  return counts;
}

/** The files that run alone, the longest first, and those that share processes. */
function divided(paths: string[]): { alone: string[]; shared: string[] } {
  const isAlone = (path: string) =>
    paths.length <= concurrency ||
    path.endsWith(".slow.test.ts") ||
    longest.includes(path) ||
    measures.test(readFileSync(join(root, path), "utf8"));
  const rank = (path: string) => (longest.indexOf(path) + longest.length + 1) % (longest.length + 1);
  const alone = paths.filter(isAlone).sort((a, b) => rank(a) - rank(b));
  return { alone, shared: paths.filter((path) => !isAlone(path)) };
}

/** Writes files that define the tests of several ones, so that these load the modules of the service once. */
function groupsOf(shared: string[]): string[] {
  const groups = Math.max(Math.min(shared.length, concurrency), Math.ceil(shared.length / groupMax));
  return Array.from({ length: groups }, (_, i) => {
    const files = shared
      .filter((_, position) => position % groups === i)
      .map((name) => ({ name, url: pathToFileURL(join(root, name)).href }));
    const start = join(folder, `group-${i + 1}.test.mjs`);
    const module = new URL("file-group.ts", import.meta.url).href;
    writeFileSync(
      start,
      `import { describeFiles } from ${JSON.stringify(module)};\ndescribeFiles(${JSON.stringify(files)});\n`,
    );
    return start;
  });
}

function isChosen(path: string): boolean {
  if (filters.length === 0) return path.endsWith(".slow.test.ts") === isSlowRun;
  return filters.some((filter) => {
    const named = relative(root, resolve(filter));
    return path.includes(filter) || path === named || matchesGlob(path, filter) || matchesGlob(path, named);
  });
}
