import assert from "node:assert/strict";
import { Command } from "commander";
import { addOperatorCommands } from "../../src/cli/operator/commands.ts";

/** The options that a file gives to `latchkey edge`. Each is one of the command. */
export function edgeOptions([name, ...args]: readonly string[]): Record<string, unknown> {
  assert.equal(name, "edge");
  const program = new Command();
  addOperatorCommands(program, {});
  const command = program.commands.find((one) => one.name() === name)!;
  assert.deepEqual(command.parseOptions([...args]), { operands: [], unknown: [] });
  return command.opts();
}
