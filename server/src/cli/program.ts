import { Command, CommanderError } from "commander";
import { coloured } from "../../../cli/src/colours.ts";
import { CommandError, UsageError } from "../../../cli/src/output.ts";
import { printable } from "../../../cli/src/printable.ts";
import { isOperatorError } from "../log/operator-error.ts";
import { checkClientVariables } from "../platform/config/env.ts";
import { settings } from "../platform/config/settings.ts";
import { version } from "../platform/config/version.ts";
import { addOperatorCommands, operatorCommands } from "./operator/commands.ts";

/** Exit codes: 0 for a success, 1 for what failed or was rejected, 2 for a command line that is not valid. */
const [FAILED, MISUSED] = [1, 2];

/** The beginning of every message about an error. */
const errorPrefix = () => coloured("red", "latchkey:", process.stderr);

/** Flags of the program itself. Any other flag without a command is one of `serve`. */
const programFlags = ["-h", "--help", "-V", "--version"];

/** The rules of the service load its operations, so only commands that need them wait for that. */
const loadRules = async () => (await import("./service-rules.ts")).serviceRules;

/** Runs the command line and sets the exit code. Without a command, it starts the service. */
export async function run(given: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const hasCommand = given.some((argument) => programFlags.includes(argument)) || given[0]?.startsWith("-") === false;
  const args = hasCommand ? given : ["serve", ...given];
  const program = new Command("latchkey")
    .description("Issues, verifies and limits API keys.")
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(add --help for the commands and options)")
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, `${errorPrefix()} `)) })
    .exitOverride();
  // The service and edges go on without their first lines and their log.
  if (args[0] === "serve" || args[0] === "edge")
    for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
  else endWithOutput();
  addOperatorCommands(program, environment);
  try {
    // Starting the service does not load what calls it.
    if (operatorCommands.includes(args[0]!)) await program.parseAsync(args, { from: "user" });
    else {
      const { addClientCommands, checkCommand, expandMembers } = await import("../../../cli/src/commands.ts");
      addClientCommands(program, { environment, loadRules });
      checkCommand(program, args);
      program.hook("preAction", (_, { options }) => {
        // The other ones call no service, or the one that they are given.
        if (options.some(({ long }) => long === "--url")) checkClientVariables(environment, settings);
      });
      await program.parseAsync(expandMembers(args), { from: "user" });
    }
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : MISUSED;
    else if (error instanceof CommandError || isOperatorError(error)) {
      // Messages name what is in files and answers, which may come from strangers.
      console.error(`${errorPrefix()} ${printable(error.message.replaceAll(/\s*\n\s*/g, " "))}`);
      for (const line of error instanceof CommandError ? error.details : []) console.error(`  ${printable(line)}`);
      process.exitCode = error instanceof UsageError ? MISUSED : FAILED;
    } else throw error;
  }
}

/** Ends the program when its output cannot be written: without a word if a reader such as `head` has closed its end. */
function endWithOutput(): void {
  if (process.stdout.listenerCount("error") > 0) return;
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") process.exit();
    console.error(`${errorPrefix()} the output cannot be written (${code}).`);
    process.exit(FAILED);
  });
}
