/**
 * Runs one program for as long as standard input stays open, then stops it and removes its directory. The pipe closes
 * however the test runner ends, including kill -9, so no server outlives the tests. The guard leads a session of its
 * own, so that Ctrl-C does not reach it or the program.
 */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";

/** The guarded program: its arguments, directory, account, and the signal that stops it. */
export interface Guarded {
  program: string;
  args: string[];
  directory: string;
  account: { uid: number; gid: number } | undefined;
  stopSignal: NodeJS.Signals;
}

const { program, args, directory, account, stopSignal } = JSON.parse(process.argv[2]!) as Guarded;
const child = spawn(program, args, { cwd: directory, stdio: ["ignore", "inherit", "inherit"], ...account });

process.stdin.resume().on("close", () => child.kill(stopSignal));
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => child.kill(stopSignal));

function finish(): void {
  rmSync(directory, { recursive: true, force: true });
  process.exit();
}
child.on("exit", finish).on("error", finish);
