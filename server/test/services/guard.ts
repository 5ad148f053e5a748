/**
 * Runs one program for as long as standard input stays open, then stops it and removes its directory. The pipe closes
 * however the test runner ends, including kill -9, so no server outlives the tests. A line with the name of a signal ends
 * the program by this signal and starts it again. The guard leads a session of its own, so that Ctrl-C does not reach it
 * or the program.
 */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";

/** The guarded program: its arguments, directory, account, and the signal that stops it. */
export interface Guarded {
  program: string;
  args: string[];
  directory: string;
  account: { uid: number; gid: number } | undefined;
  /** Variables beside those of this process. */
  environment?: Readonly<Record<string, string>>;
  stopSignal: NodeJS.Signals;
}

const { program, args, directory, account, environment, stopSignal } = JSON.parse(process.argv[2]!) as Guarded;
/**
 * A program that ends again so soon after a restart is started once more: the processes of a killed PostgreSQL hold its
 * shared memory until they have noticed, and a new one does not start before.
 */
const RESTART = { within: 10_000, pause: 20 } as const;
/** Whether the next end is that of a restart. It can take long: PostgreSQL waits a minute for a connection that says nothing. */
let isRestarting = false;
let restartUntil = 0;
let child = run();

process.stdin
  .setEncoding("utf8")
  .on("data", (line: string) => {
    isRestarting = true;
    child.kill(line.trim() as NodeJS.Signals);
  })
  .on("close", stop);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, stop);

function run() {
  const env = { ...process.env, ...environment };
  return spawn(program, args, { cwd: directory, stdio: ["ignore", "inherit", "inherit"], env, ...account })
    .on("exit", () => {
      if (isRestarting) restartUntil = performance.now() + RESTART.within;
      isRestarting = false;
      if (performance.now() > restartUntil) return finish();
      setTimeout(() => {
        child = run();
      }, RESTART.pause);
    })
    .on("error", finish);
}

function stop(): void {
  isRestarting = false;
  restartUntil = 0;
  // Between two starts there is nothing to kill.
  if (!child.kill(stopSignal)) finish();
}

function finish(): void {
  rmSync(directory, { recursive: true, force: true });
  process.exit();
}
