import { existsSync, mkdirSync, readdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { keepProcessAlive } from "../../../../engine/src/clock/keep-alive.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { systemRandom } from "../../../../engine/src/random/system.ts";
import type { IssuedRootKey } from "../../features/workspaces/procedures.ts";
import { openEvents } from "../../log/events.ts";
import { openProcessLog } from "../../log/log.ts";
import { collectStartGarbage } from "../../platform/memory/collect-garbage.ts";
import { openService, type Service } from "../../service/service.ts";
import { banner, quoted } from "./banner.ts";
import { cannotListen } from "./cannot-listen.ts";
import type { Invocation } from "./invocation.ts";
import { Shutdown } from "./shutdown.ts";
import { signInUrl } from "./sign-in-link.ts";

/** Starts the service and runs it until a signal stops it. */
export async function serve({ config, secrets, json }: Invocation): Promise<void> {
  const { log, output } = openProcessLog(config.logLevel);
  const events = openEvents(log, () => systemClock.monotonic());
  const starting = new AbortController();
  const releaseProcess = keepProcessAlive();
  const shutdown = new Shutdown(config.drain, { events, output, starting });
  let issued: IssuedRootKey | undefined;
  let isWritten = false;
  let service: Service | undefined;
  try {
    service = await openService(config, secrets, {
      clock: systemClock,
      random: systemRandom,
      log,
      waits: starting.signal,
      dashboardFolder: dashboardFolder(),
      // The root key exists only here until it is written, so this comes before any step that can fail.
      onIssued(rootKey) {
        issued = rootKey;
        if (process.stdout.isTTY) return;
        const file = writeRootKey(config.dataDirectory, rootKey);
        events.rootKeyWritten(file);
        isWritten = true;
      },
      onFatal: (error) => shutdown.fail(error),
    });
    shutdown.service = service;
    if (starting.signal.aborted) throw new Error("The start was interrupted");
    const { address, port } = await service.listen().catch((error: unknown) => {
      throw cannotListen(config, error);
    });
    const url = `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
    events.started({ address: url, database: config.database.kind, threads: service.threads });
    collectStartGarbage({ clock: systemClock });
    const file = rootKeyFile(config.dataDirectory);
    if (json) return;
    // Only a terminal shows it: a log keeps it for others.
    const isShown = issued !== undefined && config.dashboard && process.stdout.isTTY;
    const link = isShown ? await service.createSignInLink(issued!.rootKeyId) : undefined;
    console.log(
      banner({
        url,
        issued,
        rootKeyFile: secrets.rootKey !== undefined ? secrets.rootKeyFile : existsSync(file) ? file : undefined,
        given: secrets.rootKey !== undefined,
        signInLink: link && signInUrl(url, link),
        program: programCall(),
      }),
    );
  } catch (error) {
    releaseProcess();
    if (issued && !isWritten) console.error(`The administrator's root key, shown only once: ${issued.key}`);
    await service?.stop();
    if (!starting.signal.aborted) throw error;
    if (shutdown.code === 0) events.stopped();
    shutdown.exit(shutdown.code);
  }
}

/** Where the files of the dashboard are: in the package, or in this clone. */
function dashboardFolder(): string | undefined {
  const [, program = ""] = process.argv;
  // A test can run the command line without a file of the program.
  if (!existsSync(program)) return undefined;
  // In both, the program is two folders below: `bin/latchkey.js`, or `src/main.ts`.
  const server = dirname(dirname(realpathSync(program)));
  const [packed, builds] = [join(server, "dist/dashboard"), join(server, "../dashboard/dist")];
  // A clone in which a package was made has both; its sources may have changed since.
  const isClone = existsSync(join(server, "../dashboard/vite.config.ts")) && existsSync(builds);
  return existsSync(packed) && !isClone ? packed : lastUsedBuild(builds);
}

/** A clone has a folder per build of the dashboard. Each start marks its own as used. */
function lastUsedBuild(folder: string): string {
  if (!existsSync(folder)) return folder;
  const builds = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && /^[0-9a-f]{32}$/.test(entry.name))
    .map(({ name }) => join(folder, name))
    .map((path) => ({ path, usedAt: statSync(path).mtimeMs }))
    .sort((a, b) => b.usedAt - a.usedAt);
  return builds[0]?.path ?? folder;
}

/** The shell command that starts this program from the current folder. It does not depend on installed programs. */
function programCall(): string {
  return `node ${quoted(relative(process.cwd(), process.argv[1]!))}`;
}

/** Without a terminal, the root key goes into a file that only its owner may read, and never into a log. */
function writeRootKey(dataDirectory: string, issued: IssuedRootKey): string {
  const file = rootKeyFile(dataDirectory);
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  writeFileSync(file, `${issued.key}\n`, { mode: 0o600 });
  return file;
}

function rootKeyFile(dataDirectory: string): string {
  return join(dataDirectory, "root-key");
}
