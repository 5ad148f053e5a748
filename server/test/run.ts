/**
 * `npm test`: all tests of the server and the client, with the servers that they need. `npm test -- limits window.test` runs the files
 * whose path contains one of these texts or matches one of them as a glob.
 */
import { existsSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join, matchesGlob, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { fileURLToPath } from "node:url";
import { startPostgres } from "./services/postgres.ts";
import { startRedis } from "./services/redis.ts";
import type { Service } from "./services/service.ts";

/** A server whose variable is set is used as it is; the others are started. */
const services = [
  { variable: "LATCHKEY_TEST_POSTGRES_URL", start: startPostgres, needed: true },
  { variable: "LATCHKEY_TEST_REDIS_URL", start: startRedis, needed: true },
];
const patterns = ["server/src/**/*.test.ts", "server/test/**/*.test.ts", "sdk/test/**/*.test.ts"];
const comparison = "server/test/observed.last.ts";
const fileTimeoutMs = 15 * 60_000;

const root = fileURLToPath(new URL("../..", import.meta.url));
const filters = process.argv.slice(2);
const interruption = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    process.exitCode = 128 + constants.signals[signal];
    interruption.abort();
  });
}

const files = globSync(patterns, { cwd: root }).filter(isChosen).sort();
const running: Service[] = [];
const observations = mkdtempSync(join(tmpdir(), "latchkey-observations-"));
process.env.LATCHKEY_TEST_OBSERVATIONS = observations;
try {
  if (files.length === 0) throw new Error(`No test file matches ${filters.join(" ") || patterns.join(" ")}.`);
  for (const { variable, start } of services.filter(({ needed }) => needed)) {
    if (process.env[variable]) continue;
    const service = await start();
    running.push(service);
    process.env[variable] = service.url;
  }

  const counts = await runFiles(files);
  // The observations are complete only if every file has run.
  if (filters.length === 0 && existsSync(join(root, comparison))) {
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
  await Promise.all(running.map((service) => service.stop()));
  rmSync(observations, { recursive: true, force: true });
}

/** Runs test files, each in a process of its own, and prints their reports. A test that was cut off has failed. */
async function runFiles(paths: string[]): Promise<{ passed: number; failed: number }> {
  const counts = { passed: 0, failed: 0 };
  if (interruption.signal.aborted) return counts;
  const events = run({
    files: paths.map((path) => join(root, path)),
    cwd: root,
    concurrency: 2,
    timeout: fileTimeoutMs,
    signal: interruption.signal,
  });
  events.on("test:pass", ({ name, file }) => {
    // The runner reports a file without tests as a passed test with the file's name.
    if (name === file) counts.passed--;
  });
  events.on("test:summary", ({ file, success, counts: { tests, passed, skipped, todo } }) => {
    if (file !== undefined) return;
    counts.passed += passed;
    const failed = tests - passed - skipped - todo;
    // An error of a suite outside of its tests is no failed test, but it is a failure.
    counts.failed += success ? failed : Math.max(failed, 1);
  });
  for await (const text of events.compose(spec)) process.stdout.write(text);
  return counts;
}

function isChosen(path: string): boolean {
  if (filters.length === 0) return true;
  return filters.some((filter) => {
    const named = relative(root, resolve(filter));
    return path.includes(filter) || path === named || matchesGlob(path, filter) || matchesGlob(path, named);
  });
}
