import type { Command } from "commander";
import { addCompletion } from "./completion.ts";
import { addDeclaration } from "./declaration/command.ts";
import { addHealth } from "./health.ts";
import { addImport } from "./import/command.ts";
import { addLogin } from "./login.ts";
import { addOperationCommands } from "./operation-commands.ts";
import { addVerify } from "./verify.ts";

export { expandMembers } from "./operation-commands.ts";

/** Adds the commands that call a service over HTTP. */
export function addClientCommands(program: Command, environment: NodeJS.ProcessEnv): void {
  if (process.stdout.listenerCount("error") === 0) process.stdout.on("error", endWithReader);
  addLogin(program, environment);
  addVerify(program, environment);
  addHealth(program, environment);
  addImport(program, environment);
  addDeclaration(program, environment);
  addOperationCommands(program, environment);
  addCompletion(program);
}

/** Ends the program when a reader such as `head` has closed its end. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit();
}
