import { type Command, Option } from "commander";
import { CommandError, UsageError } from "./output.ts";
import { confirm } from "./prompt.ts";

/** Adds `--yes`. */
export function addConfirmation(command: Command): Command {
  return command.addOption(new Option("--yes", "delete without asking"));
}

/**
 * Asks before something is deleted, unless `--yes` is given.
 *
 * @param usesInput whether the command reads its input from the standard input, so that nobody can answer there.
 * @throws {UsageError} without a terminal to ask on.
 * @throws {CommandError} if the answer is not yes.
 */
export async function confirmDeletion(
  question: string,
  { yes, usesInput = false }: { yes?: true | undefined; usesInput?: boolean },
): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || usesInput) {
    throw new UsageError(`${question} Without a terminal to answer on, add --yes. Nothing was changed.`);
  }
  if (!(await confirm(question))) throw new CommandError("Nothing was changed.");
}
