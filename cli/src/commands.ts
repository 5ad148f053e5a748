import type { Command } from "commander";
import { addCompletion } from "./completion.ts";
import { addDeclaration } from "./declaration/command.ts";
import { addHealth } from "./health.ts";
import { addImport } from "./import/command.ts";
import { addLogin } from "./login.ts";
import { addOperationCommands } from "./operation-commands.ts";
import type { ServiceRules } from "./service-rules.ts";
import { addVerify } from "./verify.ts";

export { expandMembers } from "./operation-commands.ts";
export { checkCommand } from "./suggestions.ts";

/** What the commands need of the program that they are part of. */
export interface Surroundings {
  readonly environment: NodeJS.ProcessEnv;
  readonly loadRules: () => Promise<ServiceRules>;
}

/** Adds the commands that call a service over HTTP. */
export function addClientCommands(program: Command, { environment, loadRules }: Surroundings): void {
  addLogin(program, environment);
  addVerify(program, environment);
  addHealth(program, environment);
  addImport(program, environment, loadRules);
  addDeclaration(program, environment, loadRules);
  addOperationCommands(program, environment);
  addCompletion(program);
}
