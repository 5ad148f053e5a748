import { type SpawnSyncOptions, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "./deploy/tools.ts";
import { installPackage } from "./services/service.ts";

/** The folder with the programs of a virtual environment in the cache, which is made if there is none with these requirements. */
export function pythonEnvironment(name: string, requirements: string): string {
  const hash = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
  const found = join(repository, ".cache", `${name}-${hash}`);
  const programs = join(found, "bin");
  if (existsSync(join(found, "complete"))) return programs;
  rmSync(found, { recursive: true, force: true });
  // Debian has the module that installs pip in a package of its own.
  const make = () => succeeds("python3", ["-m", "venv", found]);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements];
  if (!(make() || (installPackage("python3-venv") && make())) || !succeeds(join(programs, "python"), pip)) {
    throw new Error("The tests need Python 3.10 or newer with venv and PyPI (Debian: `apt-get install python3-venv`).");
  }
  writeFileSync(join(found, "complete"), "");
  return programs;
}

/** Whether a program succeeds. */
export function succeeds(program: string, args: readonly string[], options: SpawnSyncOptions = {}): boolean {
  const { status, error } = spawnSync(program, args, { stdio: "inherit", ...options });
  if (error && (error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  return status === 0;
}
