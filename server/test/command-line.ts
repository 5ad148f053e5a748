import { type ChildProcess, spawn } from "node:child_process";
import { systemClock } from "../../engine/src/clock/system.ts";
import type { Ran } from "./process.ts";

const program = new URL("../src/cli/program.ts", import.meta.url).href;
const DEADLINE_MS = 120_000;

export interface Command {
  args: readonly string[];
  /** The whole environment of the command. */
  environment?: Record<string, string>;
  directory?: string;
}

/**
 * The command line in one separate process, for many commands one after another, because most of the cost of a command
 * is the start of its process. Commands have no standard input and no terminal.
 */
export class CommandLine {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #last: Promise<unknown> = Promise.resolve();

  constructor() {
    const code = `
      const { run } = await import(${JSON.stringify(program)});
      process.on("message", async ({ args, environment, directory }) => {
        const result = { code: 0, stdout: "", stderr: "" };
        process.exitCode = undefined;
        process.chdir(directory);
        const [out, err] = [process.stdout.write, process.stderr.write];
        for (const stream of ["stdout", "stderr"]) {
          process[stream].write = (text) => {
            result[stream] += text;
            return true;
          };
        }
        try {
          await run(args, environment);
          result.code = process.exitCode ?? 0;
        } catch (error) {
          result.code = 70;
          result.stderr += error.stack;
        }
        [process.stdout.write, process.stderr.write] = [out, err];
        process.exitCode = 0;
        process.send(result);
      });
      process.send("ready");`;
    this.#child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#ended = new Promise((resolve) => this.#child.once("close", () => resolve()));
    this.#last = new Promise((resolve) => this.#child.once("message", resolve));
  }

  /** Runs one command to its end, after all commands before it. */
  run({ args, environment = {}, directory = process.cwd() }: Command): Promise<Ran> {
    const ran = this.#last.then(
      () =>
        new Promise<Ran>((resolve, reject) => {
          const timer = systemClock.schedule(DEADLINE_MS, () => reject(new Error(`${args.join(" ")} did not end.`)));
          this.#child.once("message", (result) => {
            timer.cancel();
            resolve(result as Ran);
          });
          this.#ended.then(() => reject(new Error(`The process ended during ${args.join(" ")}.`)));
          this.#child.send({ args, environment, directory });
        }),
    );
    this.#last = ran.catch(() => {});
    return ran;
  }

  close(): Promise<void> {
    this.#child.kill("SIGKILL");
    return this.#ended;
  }
}
