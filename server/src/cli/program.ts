import { Command, CommanderError, Option } from "commander";
import { readConfig, settingNames, settings } from "../config/config.ts";
import { ConfigurationError, readEnvironment, type Settings } from "../config/env.ts";
import { readSecrets } from "../config/secrets.ts";
import { NewerSchema } from "../store/migrate.ts";
import { addAdministration } from "./administration.ts";
import { migrateStatus, migrateUp } from "./migrate.ts";
import type { Invocation } from "./output.ts";
import { serve } from "./serve.ts";
import { version } from "./version.ts";

/** Runs the command line; sets the exit code. */
export async function run(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const program = new Command("latchkey")
    .description("Issues, verifies and limits API keys.")
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(add --help for what is possible)")
    .exitOverride();

  /** A command with the flags of the configuration, and what it is given when it runs. */
  const command = (parent: Command, usage: string, description: string, act: Act): Command => {
    const made = parent.command(usage).description(description).exitOverride();
    for (const name of settingNames) {
      if (name === "ROOT_KEY")
        made.addOption(new Option("--root-key-file <file>", "file that holds the administrator's root key"));
      else
        made.addOption(new Option(`--${flagOf(name)} <value>`, `${settings[name].help} (${settings[name].standard})`));
    }
    made.option("--json", "print JSON, for programs");
    made.action(async (...given) => {
      const options = made.opts<Record<string, string>>();
      const values = settingsOf(options, environment);
      await act(
        { config: readConfig(values), secrets: readSecrets(values), json: options.json !== undefined },
        options,
        given,
      );
    });
    return made;
  };

  command(program, "serve", "start the service", (invocation) => serve(invocation));
  const migrate = program.command("migrate").description("look at and run the database's migrations").exitOverride();
  command(migrate, "status", "say which migrations have run", (invocation) => migrateStatus(invocation));
  command(migrate, "up", "run the migrations that have not run; serve does this by itself", (invocation) =>
    migrateUp(invocation),
  );
  addAdministration(program, command);

  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode;
    else if (isForTheOperator(error)) {
      console.error(`latchkey: ${error.message}`);
      process.exitCode = 1;
    } else throw error;
  }
}

export type Act = (invocation: Invocation, options: Record<string, string>, given: unknown[]) => Promise<void>;

function flagOf(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/** Flags before the environment. */
function settingsOf(flags: Record<string, string>, environment: NodeJS.ProcessEnv): Settings {
  const merged: NodeJS.ProcessEnv = { ...environment };
  if (flags.rootKeyFile !== undefined) {
    delete merged.LATCHKEY_ROOT_KEY;
    merged.LATCHKEY_ROOT_KEY_FILE = flags.rootKeyFile;
  }
  for (const name of settingNames) {
    const flag = flags[flagOf(name).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())];
    if (flag !== undefined) merged[`LATCHKEY_${name}`] = flag;
  }
  return readEnvironment(merged, settingNames);
}

/** Failures whose message is all that the person at the terminal needs. */
function isForTheOperator(error: unknown): error is Error {
  if (error instanceof ConfigurationError || error instanceof NewerSchema) return true;
  const { code, name } = error as NodeJS.ErrnoException;
  return (
    name === "Refused" ||
    name === "StoreUnavailable" ||
    code === "EADDRINUSE" ||
    code === "EACCES" ||
    code === "EADDRNOTAVAIL"
  );
}
