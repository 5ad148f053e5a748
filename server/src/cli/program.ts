import { Command, CommanderError } from "commander";
import { isOperatorError } from "../log/operator-error.ts";
import { version } from "../platform/config/version.ts";
import { printable } from "./client/printable.ts";
import { addOperatorCommands, operatorCommands } from "./operator/commands.ts";
import { CommandError, UsageError } from "./output.ts";

/** Exit codes: 0 for a success, 1 for what failed or was rejected, 2 for a command line that is not valid. */
const [FAILED, MISUSED] = [1, 2];

/** Flags of the program itself. Any other flag without a command is one of `serve`. */
const programFlags = ["-h", "--help", "-V", "--version"];

/** Runs the command line and sets the exit code. Without a command, it starts the service. */
export async function run(given: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const hasCommand = given.some((argument) => programFlags.includes(argument)) || given[0]?.startsWith("-") === false;
  const args = hasCommand ? given : ["serve", ...given];
  const program = new Command("latchkey")
    .description("Issues, verifies and limits API keys.")
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(add --help for the commands and options)")
    .exitOverride();
  addOperatorCommands(program, environment);
  try {
    // Starting the service does not load what calls it.
    if (operatorCommands.includes(args[0]!)) await program.parseAsync(args, { from: "user" });
    else {
      const { addClientCommands, expandMembers } = await import("./client/commands.ts");
      addClientCommands(program, environment);
      await program.parseAsync(expandMembers(args), { from: "user" });
    }
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : MISUSED;
    else if (isOperatorError(error)) {
      // Messages name what is in files and answers, which may come from strangers.
      console.error(`latchkey: ${printable(error.message.replaceAll(/\s*\n\s*/g, " "))}`);
      for (const line of error instanceof CommandError ? error.details : []) console.error(`  ${printable(line)}`);
      process.exitCode = error instanceof UsageError ? MISUSED : FAILED;
    } else throw error;
  }
}
