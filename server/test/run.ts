/**
 * `npm test`: the quick tests of the server and the client. `npm run test:slow` runs the slow ones (`*.slow.test.ts`):
 * whole services that are killed, frozen, cut off and restarted. `npm test -- limits window.test` runs the files, quick or
 * slow, whose path contains one of these texts or matches one of them as a glob.
 *
 * The files run in a process group of their own. It is killed when this process ends, however it ends, so an interrupted
 * run leaves nothing running.
 */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";
import { makeDataFolder } from "./services/data-folder.ts";

const folder = makeDataFolder();
const files = spawn(
  process.execPath,
  [fileURLToPath(new URL("run-files.ts", import.meta.url)), ...process.argv.slice(2)],
  { detached: true, stdio: ["pipe", "inherit", "inherit"], env: { ...process.env, LATCHKEY_TEST_DATA: folder } },
);
// When the process has ended, its end of the pipe is closed; "exit" reports that.
files.stdin!.on("error", () => {});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    process.exitCode = 128 + constants.signals[signal];
    files.stdin!.end();
  });
}
files.once("exit", (code) => {
  process.exitCode ??= code ?? 1;
  try {
    process.kill(-files.pid!, "SIGKILL");
  } catch {
    // Nothing of the group is left.
  }
  // Servers of files that were interrupted stop now, and write until then.
  rmSync(folder, { recursive: true, force: true, maxRetries: 20 });
});
