import { chmodSync, copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findTool, tools } from "../deploy/tools.ts";

/**
 * The program of Valkey at a place where every account may run it: another account runs the server, which may not read the
 * folder of the repository. `remove` deletes it.
 *
 * @throws if Valkey is not on this machine and cannot be installed.
 */
export function placeValkey(): { program: string; remove(): void } {
  const found = findTool(tools.valkey);
  const folder = mkdtempSync(join(tmpdir(), "latchkey-valkey-"));
  chmodSync(folder, 0o755);
  const program = join(folder, "valkey-server");
  copyFileSync(found, program);
  chmodSync(program, 0o755);
  return { program, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
