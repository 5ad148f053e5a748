/**
 * Runs one program for as long as standard input stays open, then stops it and removes its directory.
 *
 * The pipe closes however the test runner ends, kill -9 included, so a server of the tests never outlives them. The guard
 * leads a session of its own, where the Ctrl-C that ends the tests reaches neither it nor the program.
 */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";

/** What to guard: the program, its arguments, its directory, the account to run as, the signal that stops it. */
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
