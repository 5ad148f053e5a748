import type { Command } from "commander";
import { getPage } from "./call.ts";
import { addressOf, type ConnectionFlags } from "./connection.ts";
import { addConnectionOptions, timeoutOf } from "./operation-commands.ts";
import { CommandError } from "./output.ts";
import { jsonText, printable } from "./printable.ts";

/** Adds `health`. */
export function addHealth(program: Command, environment: NodeJS.ProcessEnv): void {
  const health = program
    .command("health")
    .description("check a service: exit code 0 if it can do its work, else 1")
    .helpGroup("Commands that call a service:")
    .exitOverride()
    .option("--live", "only check that the process answers, not its database and its other services")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      "\nWithout a profile and an address, it checks the service on this machine: the address is that of LATCHKEY_HOST and\n" +
        "LATCHKEY_PORT (http://127.0.0.1:3000). No root key is sent.",
    );
  addConnectionOptions(health);
  health.action(async () => {
    const options = health.opts<ConnectionFlags & { live?: true; json?: true; timeout?: string }>();
    const url = addressOf(options, environment);
    const path = `/health/${options.live ? "live" : "ready"}`;
    const answer = await getPage(url, path, timeoutOf(options)).catch((error: unknown) => {
      if (!options.json || !(error instanceof CommandError)) throw error;
      console.log(jsonText({ url, healthy: false, error: error.message }));
      process.exitCode = 1;
    });
    if (!answer) return;
    const { status, text = "" } = answer;
    const isHealthy = status === 200;
    if (options.json) {
      console.log(jsonText({ url, healthy: isHealthy, status, answer: parse(text) }));
      if (!isHealthy) process.exitCode = 1;
      return;
    }
    const state = printable(text.slice(0, 1_000));
    if (!isHealthy) throw new CommandError(`${url} is not healthy: status ${status} ${state}`);
    console.log(`${url} ${state}`);
  });
}

/** The answer of a service, or the beginning of what else is there. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text.slice(0, 1_000);
  }
}
