import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Endpoint, getPage } from "./call.ts";
import { CommandError, UsageError } from "./output.ts";
import { findProfile, type Profile, profilesFile, readProfiles } from "./profiles.ts";

/** The flags of every command that calls a service. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly profile?: string;
}

/**
 * The service to call and the root key for it. `--profile` alone decides if it is given. Otherwise `--url` and
 * LATCHKEY_URL decide before the current profile. The root key of a profile is sent to the address of that profile only.
 *
 * @param needsRootKey false for operations that a service can allow without one.
 * @throws {CommandError} that says what to type if something is missing.
 */
export async function connect(
  flags: ConnectionFlags,
  environment: NodeJS.ProcessEnv,
  needsRootKey = true,
): Promise<Endpoint> {
  const { profile, url: known } = chosenService(flags, environment);
  if (flags.profile !== undefined && profile) return profile;
  const givenRootKey = rootKeyOf(environment);
  const url = known ?? (givenRootKey === undefined ? undefined : localUrl(environment));
  if (url === undefined) throw await missingLogin(environment);
  const rootKey = givenRootKey ?? (profile?.url === url ? profile.rootKey : undefined);
  if (rootKey === undefined && needsRootKey) {
    throw new CommandError(
      `There is no root key for ${url}. Type \`latchkey login ${url}\`, or set LATCHKEY_ROOT_KEY.`,
    );
  }
  return { url, rootKey };
}

/** The service that flags, variables or the current profile name. `profile` can be for another address than `url`. */
function chosenService(
  flags: ConnectionFlags,
  environment: NodeJS.ProcessEnv,
): { profile: Profile | undefined; url: string | undefined } {
  const stored = readProfiles(profilesFile(environment));
  if (flags.profile !== undefined) {
    if (flags.url !== undefined) throw new UsageError("Give either --profile or --url, not both.");
    const profile = findProfile(stored, flags.profile);
    return { profile, url: profile.url };
  }
  const name = environment.LATCHKEY_PROFILE || stored.current;
  const profile = name === undefined ? undefined : findProfile(stored, name);
  const given = flags.url ?? environment.LATCHKEY_URL;
  return { profile, url: given ? parseUrl(given) : profile?.url };
}

/** The address of the service, without a root key. It is one on this machine if nothing names another. */
export function addressOf(flags: ConnectionFlags, environment: NodeJS.ProcessEnv): string {
  return chosenService(flags, environment).url ?? localUrl(environment);
}

/** The root key of LATCHKEY_ROOT_KEY, or of the file that LATCHKEY_ROOT_KEY_FILE names. */
function rootKeyOf({ LATCHKEY_ROOT_KEY, LATCHKEY_ROOT_KEY_FILE }: NodeJS.ProcessEnv): string | undefined {
  if (LATCHKEY_ROOT_KEY) return checkRootKey(LATCHKEY_ROOT_KEY, "LATCHKEY_ROOT_KEY");
  if (!LATCHKEY_ROOT_KEY_FILE) return undefined;
  try {
    return checkRootKey(readFileSync(LATCHKEY_ROOT_KEY_FILE, "utf8").trim(), "LATCHKEY_ROOT_KEY_FILE");
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandError(`LATCHKEY_ROOT_KEY_FILE=${LATCHKEY_ROOT_KEY_FILE}: the file cannot be read (${code}).`);
  }
}

/** @throws {CommandError} on a text that no root key can be. The message does not repeat it. */
export function checkRootKey(text: string, source: string): string {
  if (/^[\x21-\x7e]{1,512}$/.test(text)) return text;
  throw new CommandError(
    `${source}: this is no root key. Root keys have visible ASCII characters only, without spaces.`,
  );
}

/** The address without a slash at the end. */
export function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new UsageError(
      `${text.replace(/\/\/.*@/, "//…@")} is no address of a service. Give one such as https://keys.example.com or http://127.0.0.1:3000.`,
    );
  }
  return (url.origin + url.pathname).replace(/\/+$/, "");
}

/** The address of a service on this machine, by the settings that it would have. */
export function localUrl({ LATCHKEY_HOST, LATCHKEY_PORT }: NodeJS.ProcessEnv): string {
  const [host, port] = [LATCHKEY_HOST || "127.0.0.1", LATCHKEY_PORT || "3000"];
  const reachable = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return parseUrl(`http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`);
}

/** The time that a service on this machine has for an answer, in milliseconds. */
const LOCAL_TIMEOUT = 1_000;

/** The error without a login. If a service runs on this machine, it has the line to type. */
async function missingLogin(environment: NodeJS.ProcessEnv): Promise<CommandError> {
  const url = localUrl(environment);
  const runs = await getPage(url, "/health/live", LOCAL_TIMEOUT).then(
    ({ status }) => status === 200,
    () => false,
  );
  if (!runs) {
    return new CommandError(
      "There is no login. Type `latchkey login URL` with the address of your service, or start one on this machine with `latchkey serve`.",
    );
  }
  const file = join(environment.LATCHKEY_DATA_DIR || "data", "root-key");
  return new CommandError(`There is no login. A service runs at ${url}. Type:`, {
    details: existsSync(file)
      ? [`latchkey login ${url} < ${file}`]
      : [
          `latchkey login ${url}`,
          "and paste the root key that its first start printed. If it is lost, this command creates another one, in the folder of the service:",
          "latchkey root-key create --name cli --permissions '*'",
        ],
  });
}
