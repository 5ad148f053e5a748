import { execFileSync, spawn } from "node:child_process";
import { accessSync, chownSync, constants, globSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "./free-port.ts";
import type { Guarded } from "./guard.ts";

/** A server of one test run. */
export interface Service {
  url: string;
  /** Ends the server by a signal, and resolves when it is ready again with the same data at the same address. */
  restart(signal: NodeJS.Signals): Promise<void>;
  /** Resolves when the server has ended and its directory is removed. */
  stop(): Promise<void>;
}

/** The first folder of PATH or `places` (globs, the newest version first) that contains all of `programs`. */
export function findFolder(programs: string[], places: string[]): string | undefined {
  const byVersion = (a: string, b: string) => b.localeCompare(a, "en", { numeric: true });
  const folders = [...path(), ...places.flatMap((place) => globSync(place).sort(byVersion))];
  return folders.find((folder) => programs.every((program) => isExecutable(join(folder, program))));
}

/** Installs a Debian package. False if this is not Debian or the process is not root. */
export function installPackage(name: string): boolean {
  if (process.getuid?.() !== 0 || !path().some((folder) => isExecutable(join(folder, "apt-get")))) return false;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  execFileSync("apt-get", ["-q", "update"], { stdio: "inherit", env });
  execFileSync("apt-get", ["-q", "install", "-y", "--no-install-recommends", name], { stdio: "inherit", env });
  return true;
}

/** An empty directory for `account`, directly in `parent`, so that removing it removes everything. */
export function makeDirectory(name: string, account: Guarded["account"], parent = tmpdir()): string {
  const directory = mkdtempSync(join(parent, `latchkey-${name}-`));
  if (account) chownSync(directory, account.uid, account.gid);
  return directory;
}

/**
 * The account that runs a server: undefined for the present one; as root an unprivileged one, because servers reject
 * root.
 */
export function unprivilegedAccount(preferred: string): Guarded["account"] {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of [preferred, "nobody"]) {
    try {
      const id = (which: string) => Number(execFileSync("id", [which, name], { stdio: ["ignore", "pipe", "ignore"] }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // There is no such account here.
    }
  }
  throw new Error("The tests need an account to run servers with, `nobody` for instance, because servers reject root.");
}

/**
 * Starts a program under a guard, on a free port of the loopback address, and resolves when its output matches `ready`.
 * Another process may take the port in between, hence a few attempts.
 */
export async function startService(
  guarded: (port: number) => Guarded,
  ready: RegExp,
  url: (port: number) => string,
): Promise<Service> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const started = await startGuarded(guarded(port), ready);
    if ("stop" in started) return { url: url(port), ...started };
    if (attempt === 3 || !/address already in use/i.test(started.printed)) throw new Error(started.printed);
  }
}

function startGuarded(guarded: Guarded, ready: RegExp): Promise<Omit<Service, "url"> | { printed: string }> {
  const guard = spawn(
    process.execPath,
    [fileURLToPath(new URL("guard.ts", import.meta.url)), JSON.stringify(guarded)],
    {
      detached: true,
      stdio: "pipe",
    },
  );
  const closed = new Promise<void>((resolve) => guard.once("close", resolve));
  const stop = () => {
    guard.stdin.end();
    return closed;
  };
  // When a guard ends, its end of the pipe closes; "close" reports that.
  guard.stdin.on("error", () => {});

  let printed = "";
  let onReady: () => void;
  const isReady = () => {
    printed = "";
    return new Promise<void>((resolve) => {
      onReady = resolve;
    });
  };
  const ended = closed.then(() => `${guarded.program} did not start. Its output:\n${printed}`);
  const restart = async (signal: NodeJS.Signals) => {
    const readyAgain = isReady();
    guard.stdin.write(`${signal}\n`);
    const failure = await Promise.race([readyAgain, ended]);
    if (failure !== undefined) throw new Error(failure);
  };
  const listen = (text: string) => {
    // The pipe is read for as long as the server runs; a full pipe would block the server.
    printed = (printed + text).slice(-10_000);
    if (ready.test(printed)) onReady();
  };
  guard.stdout.setEncoding("utf8").on("data", listen);
  guard.stderr.setEncoding("utf8").on("data", listen);
  return Promise.race([isReady().then(() => ({ stop, restart })), ended.then((failure) => ({ printed: failure }))]);
}

function path(): string[] {
  return (process.env.PATH ?? "").split(delimiter).filter(Boolean);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
