import { join } from "node:path";
import { sharedService } from "./ask.ts";
import {
  findFolder,
  installPackage,
  makeDirectory,
  type Service,
  startService,
  unprivilegedAccount,
} from "./service.ts";

/**
 * The Redis of this test run, shared with other test files: a test that needs more than keys of its own starts its own.
 */
export function sharedRedis(): Promise<string> {
  return sharedService("redis", "LATCHKEY_TEST_REDIS_URL");
}

/**
 * Starts a Redis or Valkey for one test run or one test, from this machine, or as root on Debian newly installed.
 * `settings` are additional lines of its configuration, `environment` additional variables.
 */
export async function startRedis(
  settings: Readonly<Record<string, string>> = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<Service> {
  const program = findRedis() ?? (installPackage("redis-server") ? findRedis() : undefined);
  if (!program) {
    throw new Error(
      "The tests need Redis or Valkey: install one (Debian and Ubuntu: `apt-get install redis-server`, macOS: `brew install redis`), or set LATCHKEY_TEST_REDIS_URL to a server whose keys they may change.",
    );
  }

  const account = unprivilegedAccount("redis");
  return startService(
    (port) => {
      const directory = makeDirectory("redis", account);
      const ours = { bind: "127.0.0.1", port, dir: directory, save: "", appendonly: "no" };
      const args = Object.entries({ ...ours, "maxmemory-policy": "noeviction", ...settings });
      return {
        program,
        args: args.flatMap(([name, value]) => [`--${name}`, String(value)]),
        directory,
        account,
        environment,
        stopSignal: "SIGTERM",
      };
    },
    /ready to accept connections/i,
    (port) => `redis://127.0.0.1:${port}`,
  );
}

/** The program of `LATCHKEY_TEST_REDIS_SERVER`, or else of this machine. */
export function findRedis(): string | undefined {
  const chosen = process.env.LATCHKEY_TEST_REDIS_SERVER;
  if (chosen) return chosen;
  for (const name of ["redis-server", "valkey-server"]) {
    const folder = findFolder([name], ["/opt/homebrew/bin", "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin"]);
    if (folder) return join(folder, name);
  }
  return undefined;
}
