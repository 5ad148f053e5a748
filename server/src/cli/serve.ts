import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { keepProcessAlive } from "../clock/keep-alive.ts";
import { systemClock } from "../clock/system.ts";
import { openEvents } from "../log/events.ts";
import { openLog } from "../log/log.ts";
import { OperatorError } from "../log/operator-error.ts";
import { systemRandom } from "../random/system.ts";
import { openService, type Service } from "../service/service.ts";
import type { IssuedRootKey } from "../store/administration/procedures.ts";
import { banner, quoted } from "./banner.ts";
import type { Invocation } from "./output.ts";

/** How long a service that is told to stop serves on, for load balancers to notice. On a terminal there is none. */
const DRAIN_STANDARD = 5_000;
/** What a stop takes at most once the drain is over. */
const STOP_MAX = 10_000;

/** Starts the service and keeps it until it is told to stop. */
export async function serve({ config, secrets, json }: Invocation): Promise<void> {
  // What is kept here is nobody else's to read.
  process.umask(0o077);
  const log = openLog(config.logLevel);
  const events = openEvents(log, () => systemClock.monotonic());
  const starting = new AbortController();
  const releaseProcess = keepProcessAlive();
  const life = new Life(config.drain ?? (process.stdout.isTTY ? 0 : DRAIN_STANDARD), events, starting);
  let issued: IssuedRootKey | undefined;
  let isKept = false;
  let service: Service | undefined;
  try {
    service = await openService(config, secrets, {
      ...{ clock: systemClock, random: systemRandom, log, waits: starting.signal },
      // The root key is the only thing here that cannot be made again, so it is handed over before anything can fail.
      onIssued(rootKey) {
        issued = rootKey;
        if (process.stdout.isTTY) return;
        const file = writeRootKey(config.dataDirectory, rootKey);
        events.rootKeyWritten(file);
        isKept = true;
      },
      onFatal: (error) => life.fail(error),
    });
    life.service = service;
    if (starting.signal.aborted) throw new Error("The start was broken off");
    const { address, port } = await service.listen().catch((error: unknown) => {
      throw cannotListen(config, error);
    });
    const url = `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
    events.started({ address: url, database: config.database.kind });
    const kept = rootKeyFile(config.dataDirectory);
    if (json) return;
    console.log(
      banner({
        url,
        issued,
        rootKeyFile: secrets.rootKey !== undefined ? secrets.rootKeyFile : existsSync(kept) ? kept : undefined,
        given: secrets.rootKey !== undefined,
        program: programCall(),
      }),
    );
  } catch (error) {
    releaseProcess();
    if (issued && !isKept) console.error(`The administrator's root key, shown this once: ${issued.key}`);
    await service?.stop();
    if (!starting.signal.aborted) throw error;
    if (life.code === 0) events.stopped();
    process.exit(life.code);
  }
}

/** What starts this program from the folder in which it runs, whatever is installed there. */
function programCall(): string {
  return `node ${quoted(relative(process.cwd(), fileURLToPath(new URL("../../bin/latchkey.js", import.meta.url))))}`;
}

/** An address that cannot be listened on, by the setting that names it. */
function cannotListen({ host, port, metrics }: Invocation["config"], error: unknown): unknown {
  const { code, syscall, port: tried } = error as NodeJS.ErrnoException & { port?: number };
  if (syscall !== "listen" && syscall !== "bind" && syscall !== "getaddrinfo") return error;
  const own = typeof metrics === "object" && tried === metrics.port && tried !== port;
  const [name, at] = own
    ? ["LATCHKEY_METRICS", `${metrics.host}:${metrics.port}`]
    : code === "EADDRINUSE" || code === "EACCES"
      ? ["LATCHKEY_PORT", String(port)]
      : ["LATCHKEY_HOST", host];
  const reasons: Record<string, string> = {
    EADDRINUSE: `another process listens on ${host}:${port}. Stop it, or choose another port`,
    EACCES: "this account may not listen there. Choose a port from 1024 upwards",
    EADDRNOTAVAIL: "this machine does not have that address. Give one of its own, or 0.0.0.0 for all of them",
    ENOTFOUND: "this name leads to no address",
    EAI_AGAIN: "this name leads to no address",
  };
  return new OperatorError(`${name}=${at}: ${reasons[code ?? ""] ?? (error as Error).message} (${code})`, {
    cause: error,
  });
}

/** Terminals and process supervisors tell the group and its parent alike, so one wish may arrive twice. */
const SAME_SIGNAL_MS = 500;

/** How a service ends: by signals, or because it must not go on. */
class Life {
  /** What the process ends with. */
  code = 0;
  service: Service | undefined;
  readonly #drain: number;
  readonly #events: ReturnType<typeof openEvents>;
  readonly #starting: AbortController;
  #stoppingSince: number | undefined;

  /** Listens to signals from here on. First one: finish what is open. Second: end at once. */
  constructor(drain: number, events: ReturnType<typeof openEvents>, starting: AbortController) {
    this.#drain = drain;
    this.#events = events;
    this.#starting = starting;
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => this.#end(signal));
  }

  /** Stops at once, and with the error. */
  fail(error: Error): void {
    console.error(`latchkey: ${error.message}`);
    this.code = 1;
    this.#stop(0);
  }

  #end(signal: "SIGTERM" | "SIGINT"): void {
    if (this.#stoppingSince !== undefined) {
      if (systemClock.monotonic() - this.#stoppingSince > SAME_SIGNAL_MS) process.exit(signal === "SIGINT" ? 130 : 143);
      return;
    }
    this.#stoppingSince = systemClock.monotonic();
    this.#events.stopping(signal, this.#drain);
    this.#stop(this.#drain);
  }

  #stop(drain: number): void {
    this.#starting.abort();
    systemClock.schedule(drain + STOP_MAX, () => {
      this.#events.forcedStop();
      process.exit(1);
    });
    this.service?.stop(drain).then(
      () => {
        if (this.code === 0) this.#events.stopped();
        process.exit(this.code);
      },
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  }
}

/** Nobody watches: the root key goes into a file that only its owner may read, and never into a log. */
function writeRootKey(dataDirectory: string, issued: IssuedRootKey): string {
  const file = rootKeyFile(dataDirectory);
  mkdirSync(dataDirectory, { recursive: true, mode: 0o700 });
  writeFileSync(file, `${issued.key}\n`, { mode: 0o600 });
  return file;
}

function rootKeyFile(dataDirectory: string): string {
  return join(dataDirectory, "root-key");
}
