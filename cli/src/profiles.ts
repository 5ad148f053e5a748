import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError } from "./output.ts";

/** The address of a service, and a root key for it. */
export interface Profile {
  readonly url: string;
  readonly rootKey: string;
}

/** The profiles of one user. */
export interface Profiles {
  /** The name of the profile that commands use. */
  current?: string | undefined;
  profiles: Record<string, Profile>;
}

const FILE_BYTES_MAX = 1024 * 1024;

/** The file of the profiles: in `XDG_CONFIG_HOME` or `~/.config`, on Windows in `APPDATA`. */
export function profilesFile(environment: NodeJS.ProcessEnv): string {
  const { XDG_CONFIG_HOME, APPDATA, HOME } = environment;
  const folder =
    XDG_CONFIG_HOME || (process.platform === "win32" && APPDATA) || join(HOME || homeOfAccount(), ".config");
  return join(folder, "latchkey", "profiles.json");
}

function homeOfAccount(): string {
  try {
    return homedir();
  } catch {
    // An account that the machine does not know, as in a container. Container engines use the root folder then.
    return "/";
  }
}

/** @throws {CommandError} when the file cannot be read, or other users can read it. */
export function readProfiles(file: string): Profiles {
  let text: string;
  try {
    const { mode, size } = statSync(file);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new CommandError(`Other users can read the root keys in ${file}. Protect it with: chmod 600 ${file}`);
    }
    if (size > FILE_BYTES_MAX) throw new CommandError(`${file} is no file of profiles: it is too large. Remove it.`);
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { profiles: {} };
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${file} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
  const read = parse(text);
  if (read === undefined) {
    throw new CommandError(`${file} is damaged. Remove it, and log in again with \`latchkey login\`.`);
  }
  return read;
}

function parse(text: string): Profiles | undefined {
  try {
    const { current, profiles } = JSON.parse(text);
    const isValid =
      (current === undefined || typeof current === "string") &&
      Object.values<Profile>(profiles).every(
        ({ url, rootKey }) => URL.canParse(url) && typeof rootKey === "string" && /^[\x21-\x7e]+$/.test(rootKey),
      );
    return isValid ? { current, profiles } : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the file with mode 0600. A reader gets the former content or the new one. */
export function writeProfiles(file: string, profiles: Profiles): void {
  const draft = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    rmSync(draft, { force: true });
    writeFileSync(draft, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new CommandError(`${file} cannot be written: ${(error as Error).message}.`, { cause: error });
  }
}

/** @throws {CommandError} on an unknown name. */
export function findProfile({ profiles }: Profiles, name: string): Profile {
  if (Object.hasOwn(profiles, name)) return profiles[name]!;
  const names = Object.keys(profiles);
  throw new CommandError(
    `There is no profile ${name}. ` +
      (names.length > 0
        ? `The profiles are ${names.join(", ")}.`
        : `Make it with: latchkey login URL --profile ${name}`),
  );
}
