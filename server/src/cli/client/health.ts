import type { Command } from "commander";
import { CommandError } from "../output.ts";
import { localUrl, parseUrl } from "./connection.ts";
import { request } from "./http.ts";
import { addAddressOptions, timeoutOf } from "./operation-commands.ts";
import { printable } from "./printable.ts";

/** Adds `health`. */
export function addHealth(program: Command, environment: NodeJS.ProcessEnv): void {
  const health = program
    .command("health")
    .description("check a service: exit code 0 if it can do its work, else 1")
    .helpGroup("Commands that call a service:")
    .exitOverride()
    .option("--live", "only check that the process answers, not its database and its other services")
    .addHelpText(
      "after",
      "\nThe address is --url, else that of LATCHKEY_HOST and LATCHKEY_PORT (http://127.0.0.1:3000). A login is not used.",
    );
  addAddressOptions(health);
  health.action(async () => {
    const options = health.opts<{ url?: string; live?: true; timeout?: string }>();
    const url = options.url === undefined ? localUrl(environment) : parseUrl(options.url);
    const { status, text } = await request(`${url}/health/${options.live ? "live" : "ready"}`, timeoutOf(options), {});
    const state = printable(text.slice(0, 1_000));
    if (status !== 200) throw new CommandError(`${url} is not healthy: status ${status} ${state}`);
    console.log(`${url} ${state}`);
  });
}
