import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/clock/system.ts";
import { findFolder, installPackage } from "./services/service.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const commandLine = new URL("../src/cli/program.ts", import.meta.url).href;
const DEADLINE_MS = 30_000;

/** What this test file started and has not seen end. */
const running = new Set<Program>();
process.once("exit", () => {
  for (const program of running) program.signal("SIGKILL");
});

/** An administrator's root key, for services that are given one. */
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
  /** A program in front of it, such as a tracer, that leaves it the process that was started. */
  under?: string[];
}

export interface ServeOptions extends RunOptions {
  /** Null: the settings give no root key. */
  rootKey?: null;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** The real program, or whatever else Node is to run, in a process of its own. */
export class Program {
  stdout = "";
  stderr = "";
  /** Resolves when it has ended and everything it said was read. */
  readonly ended: Promise<Ended>;
  hasEnded = false;
  readonly directory: string;
  readonly #child: ChildProcess;

  constructor(args: readonly string[], { settings = {}, environment = {}, directory, under = [] }: RunOptions) {
    this.directory = directory;
    const command = [...under, process.execPath, ...args];
    this.#child = spawn(command[0]!, command.slice(1), {
      cwd: directory,
      env: { ...inherited(), ...environment, ...prefixed(settings) },
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

  /** The first line of the log with this message, once it is there. */
  async logged(message: string): Promise<Record<string, unknown>> {
    let line: Record<string, unknown> | undefined;
    await eventually(`the log line "${message}"`, () => {
      line = this.log.find(({ msg }) => msg === message);
      if (!line && this.hasEnded) throw new Error(`The program ended without "${message}". It said:\n${this.output}`);
      return line !== undefined;
    });
    return line!;
  }

  /** The lines of its log so far. */
  get log(): Record<string, unknown>[] {
    // The last one may not be complete yet.
    const lines = this.stdout.split("\n").slice(0, -1);
    return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  }
}

/** A service in a process of its own, and a way to call it. */
export class Server extends Program {
  address = "";

  /** Calls an operation: with the administrator's root key that was given, with another one, or with none (null). */
  async call(
    operation: string,
    body: unknown,
    rootKey: string | null = ROOT_KEY,
    // biome-ignore lint/suspicious/noExplicitAny: whoever calls knows what is answered.
  ): Promise<{ status: number; body: any }> {
    const response = await fetch(`${this.address}/v2/${operation}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(rootKey !== null && { authorization: `Bearer ${rootKey}` }) },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  /** The `data` of a call that succeeds. */
  // biome-ignore lint/suspicious/noExplicitAny: whoever calls knows what is answered.
  async ok(operation: string, body: unknown, rootKey?: string | null): Promise<any> {
    const answer = await this.call(operation, body, rootKey);
    if (answer.status !== 200) throw new Error(`${operation} answered ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body.data;
  }
}

/** Runs the program to its end. */
export async function run(args: readonly string[], options: RunOptions): Promise<Program & Ended> {
  const ran = new Program([main, ...args, ...(options.args ?? [])], options);
  return Object.assign(ran, await ran.ended);
}

/** What one of many runs gave. */
export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs the command line many times, one after another in one process beside ours: most of what a run costs is its start.
 */
export async function runMany(
  runs: readonly { args: readonly string[]; settings?: Record<string, string> }[],
  options: RunOptions,
): Promise<Ran[]> {
  const given = runs.map(({ args, settings = {} }) => ({
    args,
    environment: prefixed({ ...options.settings, ...settings }),
  }));
  // Told to be a module it would tell its threads to be one too.
  const code = `
    const { run } = await import(${JSON.stringify(commandLine)});
    const told = process.stdout.write.bind(process.stdout);
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
    told(JSON.stringify(results));`;
  const ran = new Program(["--eval", `void (async () => {${code}})()`], { directory: options.directory });
  await ran.ended;
  try {
    return JSON.parse(ran.stdout);
  } catch {
    throw new Error(`The runs broke off:\n${ran.output}`);
  }
}

/** Starts the service on a free port and waits until it listens. */
export async function start(options: ServeOptions): Promise<Server> {
  const server = launch(options);
  server.address = (await server.logged("latchkey is listening")).address as string;
  return server;
}

/** Starts the service and does not wait. */
export function launch(options: ServeOptions): Server {
  const settings = {
    ...(options.rootKey !== null && { ROOT_KEY }),
    DATA_DIR: join(options.directory, "data"),
    // No load balancer has to notice that a test stops its service.
    DRAIN: "0",
    ...options.settings,
  };
  return new Server([main, "serve", "--port", "0", ...(options.args ?? [])], { ...options, settings });
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

/** Asks again and again until it is so. Only for what another process does; whatever happens here can be awaited. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = systemClock.monotonic() + DEADLINE_MS;
  while (!(await isSo())) {
    if (systemClock.monotonic() > deadline) throw new Error(`Waited ${DEADLINE_MS / 1000} s for ${what}.`);
    await setTimeout(5);
  }
}

/** The path of a program of this machine, installed when it is missing and may be. */
export async function needProgram(name: string): Promise<string> {
  if (!findFolder([name], [])) {
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
  const folder = findFolder([name], []);
  if (!folder) throw new Error(`This test needs ${name}: install it (Debian and Ubuntu: \`apt-get install ${name}\`).`);
  return join(folder, name);
}

/** Our own environment without settings of Latchkey and without what a test runner tells its children. */
function inherited(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(LATCHKEY_|NODE_TEST_CONTEXT$|NODE_OPTIONS$)/.test(name)),
  );
}

function prefixed(settings: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [`LATCHKEY_${name}`, value]));
}
