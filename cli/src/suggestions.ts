import type { Command } from "commander";
import { didYouMean } from "../../engine/src/rules/spelling.ts";
import { UsageError } from "./output.ts";

/** @throws {UsageError} if the arguments name no command. It names those that are similar. */
export function checkCommand(program: Command, args: readonly string[]): void {
  const words: string[] = [];
  let place = program;
  for (const word of args) {
    if (word.startsWith("-") || place.commands.length === 0) return;
    words.push(word);
    const next = place.commands.find((command) => command.name() === word || command.aliases().includes(word));
    if (next) {
      place = next;
      continue;
    }
    // `help` is a command of every group.
    if (word === "help") return;
    // A command with arguments of its own, such as `backup FILE`.
    if (place.registeredArguments.length > 0) return;
    const similar = suggestion(program, args.slice(0, 2)) || suggestion(program, words);
    const all = `All commands: latchkey ${[...words.slice(0, -1), "--help"].join(" ")}`;
    throw new UsageError([`There is no command ${words.join(" ")}.`, similar, all].filter(Boolean).join(" "));
  }
}

/** A question for the commands whose words are similar. The name of an operation is one with a dot. */
function suggestion(program: Command, words: readonly string[]): string {
  return didYouMean(words.join(" ").replace(".", " "), pathsOf(program), (path) => `\`latchkey ${path}\``);
}

/** The words of every command, and those of short forms. */
function* pathsOf(command: Command, before = ""): Generator<string> {
  for (const child of command.commands) {
    for (const name of [child.name(), ...child.aliases()]) yield before + name;
    yield* pathsOf(child, `${before}${child.name()} `);
  }
}
