import { Command, CommanderError, Help, Option } from "commander";
import { readConfig, settingNames, settings } from "../config/config.ts";
import { readEnvironment, type Settings } from "../config/env.ts";
import { readSecrets } from "../config/secrets.ts";
import { version } from "../config/version.ts";
import { isOperatorError } from "../log/operator-error.ts";
import { addAdministration } from "./administration.ts";
import { migrateStatus, migrateUp } from "./migrate.ts";
import type { Invocation } from "./output.ts";
import { serve } from "./serve.ts";
import { rotateVault } from "./vault.ts";

/** Runs the command line; sets the exit code. */
export async function run(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const program = new Command("latchkey")
    .description("Issues, verifies and limits API keys.")
    .version(version)
    .enablePositionalOptions()
    .showHelpAfterError("(add --help for what is possible)")
    .exitOverride();

  /** A command with the flags of the configuration, and what it is given when it runs. */
  const command = (parent: Command, usage: string, description: string, act: CommandHandler): Command => {
    const made = parent.command(usage).description(description).exitOverride().configureHelp(settingsLast);
    for (const name of settingNames) {
      const flag = fileOnly.has(name) ? `${flagOf(name)}-file <file>` : `${flagOf(name)} <value>`;
      const help = fileOnly.has(name) ? `file with the ${settings[name].help}` : settings[name].help;
      made.addOption(new Option(`--${flag}`, `${help} (${settings[name].default})`).helpGroup(SETTINGS_GROUP));
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
  const vault = program.command("vault").description("the keys that can be shown again").exitOverride();
  command(vault, "rotate", "change the vault's master key while the service runs", (invocation) =>
    rotateVault(invocation),
  );

  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode;
    else {
      const message = forTheOperator(error);
      if (message === undefined) throw error;
      console.error(`latchkey: ${message.replaceAll(/\s*\n\s*/g, " ")}`);
      process.exitCode = 1;
    }
  }
}

/** Listed after a command's own options. */
const SETTINGS_GROUP = "Settings:";

const settingsLast: Partial<Help> = {
  groupItems(unsorted, visible, groupOf) {
    const groups = Help.prototype.groupItems.call(this, unsorted as never, visible as never, groupOf as never);
    const ofSettings = groups.get(SETTINGS_GROUP);
    if (ofSettings !== undefined && groups.delete(SETTINGS_GROUP)) groups.set(SETTINGS_GROUP, ofSettings);
    return groups as never;
  },
};

export type CommandHandler = (
  invocation: Invocation,
  options: Record<string, string>,
  given: unknown[],
) => Promise<void>;

/** Everybody on a machine can read the arguments of its processes, so these come in files. */
const fileOnly: ReadonlySet<string> = new Set(["ROOT_KEY", "VAULT_KEY"]);

function flagOf(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/** Flags before the environment. */
function settingsOf(flags: Record<string, string>, environment: NodeJS.ProcessEnv): Settings {
  const merged: NodeJS.ProcessEnv = { ...environment };
  for (const name of settingNames) {
    const flag = flagOf(name).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const [value, file] = [flags[flag], flags[`${flag}File`]];
    if (value === undefined && file === undefined) continue;
    delete merged[`LATCHKEY_${name}`];
    delete merged[`LATCHKEY_${name}_FILE`];
    if (value !== undefined) merged[`LATCHKEY_${name}`] = value;
    else merged[`LATCHKEY_${name}_FILE`] = file;
  }
  return readEnvironment(merged, settingNames);
}

/** What the person at the terminal needs of a failure that is not ours; undefined: it is a bug. */
function forTheOperator(error: unknown): string | undefined {
  if (isOperatorError(error)) return error.message;
  if (!(error instanceof Error) || error.name !== "StoreUnavailable") return undefined;
  const { message, cause } = error;
  return cause instanceof Error && !message.includes(cause.message) ? `${message}: ${cause.message}` : message;
}
