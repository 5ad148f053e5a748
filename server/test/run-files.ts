/** Runs the files that `run.ts` was asked for, for as long as standard input stays open. */
import { existsSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, matchesGlob, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { SharedServices } from "./services/shared.ts";

const patterns = [
  "engine/src/**/*.test.ts",
  "server/src/**/*.test.ts",
  "server/test/**/*.test.ts",
  "sdk/test/**/*.test.ts",
];
const comparison = "server/test/observed.last.ts";
const fileTimeoutMs = 15 * 60_000;
/** Many files wait for processes and servers part of their time, so one more than the cores of a small machine. */
const concurrency = 3;
const slowestShown = 10;

const root = fileURLToPath(new URL("../..", import.meta.url));
const isSlowRun = process.argv.includes("--slow");
const filters = process.argv.slice(2).filter((argument) => argument !== "--slow");
const isWhole = filters.length === 0 && !isSlowRun;
const interruption = new AbortController();
process.stdin.once("end", () => interruption.abort()).resume();

const chosen = globSync(patterns, { cwd: root }).filter(isChosen).sort();
const observations = mkdtempSync(join(tmpdir(), "latchkey-observations-"));
const services = await SharedServices.open();
process.env.LATCHKEY_TEST_OBSERVATIONS = observations;
process.env.LATCHKEY_TEST_SERVICES = services.url;
// Types are stripped once for all processes of the run and the next ones.
process.env.NODE_COMPILE_CACHE ??= join(root, ".cache", "compiled");
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
  rmSync(observations, { recursive: true, force: true });
}
// Without this, services of interrupted files would run on if run.ts was killed and cannot end the group.
if (interruption.signal.aborted) process.kill(-process.pid, "SIGKILL");
process.exit();

/** Runs test files, each in a process of its own, and prints their reports. A test that was cut off has failed. */
async function runFiles(paths: string[]): Promise<{ passed: number; failed: number }> {
  const counts = { passed: 0, failed: 0 };
  if (interruption.signal.aborted) return counts;
  const seconds = new Map<string, number>();
  const events = run({
    files: paths.map((path) => join(root, path)),
    cwd: root,
    concurrency,
    timeout: fileTimeoutMs,
    signal: interruption.signal,
  });
  events.on("test:pass", ({ name, file }) => {
    // The runner reports a file without tests as a passed test with the file's name.
    if (name === file) counts.passed--;
  });
  events.on("test:summary", ({ file, success, duration_ms, counts: { tests, passed, skipped, todo } }) => {
    if (file !== undefined) {
      seconds.set(relative(root, file), duration_ms / 1_000);
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

function isChosen(path: string): boolean {
  if (filters.length === 0) return path.endsWith(".slow.test.ts") === isSlowRun;
  return filters.some((filter) => {
    const named = relative(root, resolve(filter));
    return path.includes(filter) || path === named || matchesGlob(path, filter) || matchesGlob(path, named);
  });
}
