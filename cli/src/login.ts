import type { Command } from "commander";
import { call, type Endpoint, ServiceError } from "./call.ts";
import { checkRootKey, parseUrl } from "./connection.ts";
import { readInput } from "./input.ts";
import { CommandError, print, table, UsageError } from "./output.ts";
import { printable } from "./printable.ts";
import { findProfile, profilesFile, readProfiles, writeProfiles } from "./profiles.ts";
import { askSecret } from "./prompt.ts";

const DEFAULT_PROFILE = "default";
const INPUT_BYTES_MAX = 64 * 1024;

/** Adds `login`, `logout` and `profiles`. */
export function addLogin(program: Command, environment: NodeJS.ProcessEnv): void {
  const file = profilesFile(environment);
  const group = "Commands that call a service:";

  const login = program
    .command("login <url>")
    .description("save the address and a root key of a service, if they work")
    .helpGroup(group)
    .exitOverride()
    .option("--profile <name>", "name of the profile", DEFAULT_PROFILE)
    .option(
      "--root-key <text>",
      "root key; without this flag it is read from standard input, which keeps it out of the process list and the shell history",
    )
    .addHelpText(
      "after",
      `\nThe profiles are in ${file}, with mode 0600.\n\nExamples:\n  latchkey login http://127.0.0.1:3000\n  latchkey login http://127.0.0.1:3000 < data/root-key`,
    );
  login.action(async (given: string) => {
    const { profile, rootKey } = login.opts<{ profile: string; rootKey?: string }>();
    if (!/^[\w.@:-]{1,64}$/.test(profile)) {
      throw new UsageError(`--profile ${profile}: give 1 to 64 letters, digits and the characters _ . @ : -`);
    }
    const url = parseUrl(given);
    warnOfPlainText(url);
    const text =
      rootKey ??
      (process.stdin.isTTY ? await askSecret(`Root key for ${url}: `) : await readInput("-", INPUT_BYTES_MAX));
    if (text.trim() === "") {
      throw new CommandError(
        `The root key: none given. Type \`latchkey login ${url}\` on a terminal, or give a file: latchkey login ${url} < data/root-key`,
      );
    }
    const endpoint = { url, rootKey: checkRootKey(text.trim(), "The root key") };
    await check(endpoint);
    const stored = readProfiles(file);
    writeProfiles(file, { current: profile, profiles: { ...stored.profiles, [profile]: endpoint } });
    console.log(`Logged in to ${url} as profile ${profile}.`);
  });

  const logout = program
    .command("logout")
    .description("remove a profile with its root key")
    .helpGroup(group)
    .exitOverride()
    .option("--profile <name>", "name of the profile (default: the current one)");
  logout.action(() => {
    const stored = readProfiles(file);
    const name = logout.opts<{ profile?: string }>().profile ?? stored.current;
    if (name === undefined) throw new CommandError("There is no profile to remove.");
    findProfile(stored, name);
    const { [name]: _, ...profiles } = stored.profiles;
    const current = stored.current === name ? Object.keys(profiles)[0] : stored.current;
    writeProfiles(file, { current, profiles });
    console.log(
      `Profile ${name} is removed. Its root key still works: \`latchkey root-keys delete-root-key\` deletes it.`,
    );
    if (current !== undefined && current !== stored.current) console.log(`The current profile is ${current} now.`);
  });

  const profiles = program
    .command("profiles")
    .description("list the profiles, without their root keys")
    .helpGroup(group)
    .exitOverride()
    .option("--json", "print JSON");
  profiles.action(() => {
    const { current, profiles: stored } = readProfiles(file);
    const rows = Object.entries(stored).map(([name, { url }]) => ({ name, url, current: name === current }));
    print(profiles.opts().json !== undefined, rows, () =>
      rows.length === 0
        ? ["There is no profile. Create one with: latchkey login URL"]
        : table(
            ["profile", "url", ""],
            rows.map((row) => [printable(row.name), printable(row.url), row.current ? "current" : ""]),
          ),
    );
  });
  profiles
    .command("use <name>")
    .description("make a profile the current one")
    .exitOverride()
    .action((name: string) => {
      const stored = readProfiles(file);
      findProfile(stored, name);
      writeProfiles(file, { ...stored, current: name });
      console.log(`The current profile is ${name}.`);
    });
}

/** Fails if the address or the root key does not work. A root key without permissions works. */
async function check(endpoint: Endpoint): Promise<void> {
  try {
    await call(endpoint, "apis.listApis", '{"limit":1}', { repeatable: "always" });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status !== 403) throw error;
  }
}

function warnOfPlainText(url: string): void {
  const { protocol, hostname } = new URL(url);
  const isLocal = hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
  if (protocol === "http:" && !isLocal) {
    console.error(
      `latchkey: warning: ${url} is not encrypted. Others on the network can read the root key. Use https://.`,
    );
  }
}
