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
let isRestarting = false;
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
      if (!isRestarting) return finish();
      isRestarting = false;
      child = run();
    })
    .on("error", finish);
}

function stop(): void {
  isRestarting = false;
  child.kill(stopSignal);
}

function finish(): void {
  rmSync(directory, { recursive: true, force: true });
  process.exit();
}
