import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { SimulatedClock } from "../../engine/src/clock/simulated.ts";
import { systemClock } from "../../engine/src/clock/system.ts";
import { findFolder, installPackage } from "./services/service.ts";
import { useBundle } from "./tested-bundle.ts";

const main = fileURLToPath(new URL("program.ts", import.meta.url));
const commandLine = new URL("../src/cli/program.ts", import.meta.url).href;
const DEADLINE_MS = 120_000;
/** Characters of the output of a program that an error shows. */
const OUTPUT_SHOWN = 4_000;

/** Processes that this test file started and that have not ended. */
const running = new Set<Program>();
process.once("exit", () => {
  for (const program of running) program.signal("SIGKILL");
});

/** An administrator's root key, for services with a configured one. */
export const ROOT_KEY = "lk_root_of_a_test_8J2kQwZx41";

export interface RunOptions {
  /** Settings by name, as in the environment without the prefix. */
  settings?: Record<string, string>;
  /** Variables beside the settings. */
  environment?: Record<string, string>;
  /** Flags. */
  args?: string[];
  /** Where it runs. */
  directory: string;
  /** A program that executes it, such as a tracer, and keeps its process id. */
  under?: string[];
  /** What runs instead of Node. */
  program?: string;
}

interface ReleaseOptions extends RunOptions {
  /** The entry point of another revision of the program. */
  main?: string;
}

export interface ServeOptions extends ReleaseOptions {
  /** Null: no root key in the settings. */
  rootKey?: null;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** The real program, or another script of Node, in a process of its own. */
export class Program {
  stdout = "";
  stderr = "";
  /** Resolves when the process has ended and all of its output was read. */
  readonly ended: Promise<Ended>;
  hasEnded = false;
  readonly directory: string;
  readonly #child: ChildProcess;

  constructor(args: readonly string[], options: RunOptions) {
    const { settings = {}, environment = {}, directory, under = [], program = process.execPath } = options;
    this.directory = directory;
    const command = [...under, program, ...args];
    this.#child = spawn(command[0]!, command.slice(1), {
      cwd: directory,
      env: {
        ...inherited(),
        // A preloaded module may change modules of the program, which the bundle does not have as such.
        ...(environment.NODE_OPTIONS !== undefined && { TESTED_BUNDLE: undefined }),
        ...environment,
        ...prefixed(settings),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    running.add(this);
    this.ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        this.hasEnded = true;
        running.delete(this);
        resolve({ code, signal });
      });
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get output(): string {
    return this.stdout + this.stderr;
  }

  /** Sends a signal, as `kill` does. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Sends a signal and waits for the end. */
  kill(signal: NodeJS.Signals): Promise<Ended> {
    this.signal(signal);
    return this.ended;
  }

  /** Waits for the first line of the log with this message. */
  async logged(message: string): Promise<Record<string, unknown>> {
    let line: Record<string, unknown> | undefined;
    await eventually(`the log line "${message}"`, () => {
      line = this.log.find(({ msg }) => msg === message);
      if (!line && this.hasEnded)
        throw new Error(`The program ended without "${message}". Its output:\n${this.output}`);
      return line !== undefined;
    }).catch((error: Error) => {
      if (this.hasEnded) throw error;
      throw new Error(`${error.message} Its last output:\n${this.output.slice(-OUTPUT_SHOWN)}`, { cause: error });
    });
    return line!;
  }

  /** The lines of its log so far. */
  get log(): Record<string, unknown>[] {
    // The last line may be incomplete.
    const lines = this.stdout.split("\n").slice(0, -1);
    return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  }
}

/** A service in a process of its own, and a way to call it. */
export class Server extends Program {
  address = "";

  /** Calls an operation with the given administrator's root key, with another one, or with none (null). */
  async call(
    operation: string,
    body: unknown,
    rootKey: string | null = ROOT_KEY,
    // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
  ): Promise<{ status: number; body: any }> {
    const response = await fetch(`${this.address}/v2/${operation}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(rootKey !== null && { authorization: `Bearer ${rootKey}` }) },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  /** The `data` of a call that succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: the caller knows the shape of the answer.
  async ok(operation: string, body: unknown, rootKey?: string | null): Promise<any> {
    const answer = await this.call(operation, body, rootKey);
    if (answer.status !== 200) throw new Error(`${operation} answered ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body.data;
  }
}

/** The file of the program, for Node. */
export function programFile(): string {
  useBundle();
  return main;
}

/** Runs the program to its end. */
export async function run(args: readonly string[], options: RunOptions): Promise<Program & Ended> {
  const ran = new Program([programFile(), ...args, ...(options.args ?? [])], options);
  return Object.assign(ran, await ran.ended);
}

/** The result of one of many runs. */
export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs the command line many times, one after another in one separate process, because most of the cost of a run is the
 * start of Node.
 */
export async function runMany(
  runs: readonly { args: readonly string[]; settings?: Record<string, string> }[],
  options: RunOptions,
): Promise<Ran[]> {
  const given = runs.map(({ args, settings = {} }) => ({
    args,
    environment: prefixed({ ...options.settings, ...settings }),
  }));
  // If it were started as a module, its threads would be modules too.
  const code = `
    const { run } = await import(${JSON.stringify(commandLine)});
    const write = process.stdout.write.bind(process.stdout);
    const results = [];
    for (const { args, environment } of ${JSON.stringify(given)}) {
      const result = { code: 0, stdout: "", stderr: "" };
      process.exitCode = undefined;
      for (const stream of ["stdout", "stderr"]) {
        process[stream].write = (text) => {
          result[stream] += text;
          return true;
        };
      }
      await run(args, environment);
      result.code = process.exitCode ?? 0;
      results.push(result);
    }
    process.exitCode = 0;
    write(JSON.stringify(results));`;
  const ran = new Program(["--eval", `void (async () => {${code}})()`], { directory: options.directory });
  await ran.ended;
  try {
    // The log is in front of it.
    return JSON.parse(ran.stdout.slice(ran.stdout.indexOf('[{"code"')));
  } catch {
    throw new Error(`The runs ended early:\n${ran.output}`);
  }
}

/** Starts the service on a free port and waits until it listens. */
export async function start(options: ServeOptions): Promise<Server> {
  const server = launch(options);
  server.address = (await server.logged("latchkey is listening")).address as string;
  return server;
}

/** Starts the service and does not wait. `LATCHKEY_WORKERS` of the tests is the number of its threads. */
export function launch(options: ServeOptions): Server {
  const { LATCHKEY_WORKERS: WORKERS } = process.env;
  const settings = {
    // Threads beside the first one have the fast lane only.
    ...(WORKERS !== undefined && options.settings?.FAST_LANE !== "off" && { WORKERS }),
    ...(options.rootKey !== null && { ROOT_KEY }),
    DATA_DIR: join(options.directory, "data"),
    // No load balancer needs time to notice the stop.
    DRAIN: "0",
    ...options.settings,
  };
  return new Server([options.main ?? programFile(), "serve", "--port", "0", ...(options.args ?? [])], {
    ...options,
    settings,
  });
}

/** Starts `latchkey edge` of a service on a free port and waits until it listens. */
export async function startEdge(
  home: Pick<Server, "address">,
  rootKey: string,
  options: ReleaseOptions,
): Promise<Server> {
  const edge = launchEdge(home, rootKey, options);
  edge.address = (await edge.logged("the edge is listening")).address as string;
  return edge;
}

/** Starts an edge and does not wait. */
export function launchEdge(home: Pick<Server, "address">, rootKey: string, options: ReleaseOptions): Server {
  const settings = { ROOT_KEY: rootKey, DATA_DIR: join(options.directory, "edge"), DRAIN: "0", ...options.settings };
  const args = ["edge", "--port", "0", "--upstream", home.address, ...(options.args ?? [])];
  return new Server([options.main ?? programFile(), ...args], { ...options, settings });
}

/** An empty folder for one test. At its end, programs that still run there are killed, and the folder is removed. */
export function makeFolder(t: { after(undo: () => void | Promise<void>): void }): string {
  const folder = mkdtempSync(join(tmpdir(), "latchkey-test-"));
  t.after(async () => {
    const left = [...running].filter(({ directory }) => directory === folder);
    await Promise.all(left.map((program) => program.kill("SIGKILL")));
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** Polls a condition. Only for other processes; what happens in this process can be awaited. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = systemClock.monotonic() + DEADLINE_MS;
  while (!(await isSo())) {
    if (systemClock.monotonic() > deadline) throw new Error(`Waited ${DEADLINE_MS / 1000} s for ${what}.`);
    await setTimeout(5);
  }
}

/**
 * Polls a condition that needs both a simulated clock and another process: the clock advances as fast as the time of the
 * machine, so that a busy machine has the time that the limits of the code under test give it.
 */
export async function eventuallyWith(clock: SimulatedClock, what: string, isSo: () => boolean): Promise<void> {
  const startedAt = systemClock.monotonic() - clock.monotonic();
  await eventually(what, () => {
    clock.advance(Math.max(0, Math.floor(systemClock.monotonic() - startedAt) - clock.monotonic()));
    return isSo();
  });
}

/** Where Debian has the programs of servers: not in the PATH of a user. */
const SERVER_FOLDERS = ["/usr/sbin"];

/** The path of a program of this machine. Installs it if it is missing and that is possible. */
export async function needProgram(name: string): Promise<string> {
  const find = () => findFolder([name], SERVER_FOLDERS);
  if (!find()) {
    await eventually(`apt-get to install ${name}`, () => {
      try {
        installPackage(name);
        return true;
      } catch {
        // Another test file is installing something.
        return false;
      }
    });
  }
  const folder = find();
  if (!folder) throw new Error(`This test needs ${name}: install it (Debian and Ubuntu: \`apt-get install ${name}\`).`);
  return join(folder, name);
}

/** The environment of this process without settings of Latchkey and without variables of the test runner. */
function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(LATCHKEY_|NODE_TEST_CONTEXT$|NODE_OPTIONS$)/.test(name)),
  );
}

function prefixed(settings: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [`LATCHKEY_${name}`, value]));
}
