import { type Command, Help, Option } from "commander";
import { print } from "../../../../cli/src/output.ts";
import { readConfig } from "../../platform/config/config.ts";
import { readEnvironment, type SettingTexts } from "../../platform/config/env.ts";
import { readSecrets } from "../../platform/config/secrets.ts";
import { settings } from "../../platform/config/settings.ts";
import { addAdministration } from "./administration.ts";
import type { CommandHandler } from "./invocation.ts";

/** The commands that work on the configuration and the database of this machine. */
export const operatorCommands: readonly string[] = [
  "serve",
  "edge",
  "migrate",
  "migrate-store",
  "workspace",
  "root-key",
  "sign-in-link",
  "demo",
  "vault",
  "backup",
  "restore",
  "verify-store",
  "settings",
];

/** Adds the commands of `operatorCommands`. What a command needs is loaded when it runs. */
export function addOperatorCommands(program: Command, environment: NodeJS.ProcessEnv): void {
  /** Adds a command. It accepts every setting as a flag, and its handler gets the configuration. */
  const command = (parent: Command, usage: string, description: string, handle: CommandHandler): Command => {
    const added = parent.command(usage).description(description).exitOverride().configureHelp(settingsLast);
    const isService = usage === "serve";
    for (const { name, flag, help, shownDefault } of settings) {
      const [option, text] =
        flag === "file"
          ? [`--${flagOf(name)}-file <file>`, `file with the ${help}`]
          : [`--${flagOf(name)} <value>`, help];
      const setting = new Option(option, `${text} (${shownDefault})`).helpGroup(SETTINGS_GROUP);
      added.addOption(isService ? setting : setting.hideHelp());
    }
    if (!isService) added.addHelpText("after", "\nThe settings of the service are flags too: see `latchkey settings`.");
    added.option("--json", "print JSON, for programs");
    added.action(async (...given) => {
      // Files that a command creates, such as a restored database, are readable by their owner only.
      process.umask(0o077);
      const options = added.opts<Record<string, string>>();
      const texts = readTexts(options, environment);
      await handle(
        { config: readConfig(texts), secrets: readSecrets(texts), json: options.json !== undefined },
        options,
        given,
      );
    });
    return added;
  };

  program
    .command("settings")
    .description("list the settings of the service: variables, flags and defaults")
    .exitOverride()
    .option("--json", "print JSON, for programs")
    .action(({ json }: { json?: true }) => {
      const listed = settings.map(({ name, flag, help, shownDefault, range }) => ({
        variable: `LATCHKEY_${name}`,
        flag: `--${flagOf(name)}${flag === "file" ? "-file" : ""}`,
        help,
        default: shownDefault,
        ...(range !== undefined && { range }),
      }));
      print(json === true, listed, () =>
        listed.map(({ variable, flag, help, default: shown }) => `${variable}\n  ${flag}  ${help} (${shown})`),
      );
    });
  command(program, "serve", "start the service", async (invocation) => {
    const { serve } = await import("./serve.ts");
    await serve(invocation);
  });
  command(
    program,
    "edge",
    "verify keys on this machine, for a service that runs elsewhere",
    async (invocation, options) => {
      const { edge } = await import("./edge.ts");
      await edge(invocation, { upstream: environment.LATCHKEY_URL, ...options });
    },
  )
    .option("--upstream <url>", "address of the service (LATCHKEY_URL)")
    .option("--socket <path>", "Unix socket on which to listen too, for its user and group")
    .option("--name <name>", "name by which the service shows the edge")
    .option("--stale <duration>", "how long cached keys are verified while the service does not answer (0)")
    .option("--no-leases", "let the service charge each call of a busy limit");
  const migrate = program.command("migrate").description("show and run the migrations of the database").exitOverride();
  command(migrate, "status", "show which migrations have run", async (invocation) => {
    const { migrateStatus } = await import("./migrate.ts");
    await migrateStatus(invocation);
  });
  command(migrate, "up", "run the migrations that have not run; serve does this at start", async (invocation) => {
    const { migrateUp } = await import("./migrate.ts");
    await migrateUp(invocation);
  });
  command(program, "migrate-store", "move the database to another one while the service runs", async (...given) => {
    const { migrateStore } = await import("./migrate-store.ts");
    await migrateStore(...given);
  })
    .option("--to <database>", "postgres://user:password@host/database or sqlite:FOLDER; empty, or an unfinished copy")
    .option("--to-file <file>", "file with the value of --to")
    .option("--new-vault-key-file <file>", "file with the vault's master key on the target (it stays the same)")
    .option("--rate <number>", "rows per second that are copied (50000)")
    .option("--stop-max <duration>", "how long the last step may reject writes (10s)")
    .option("--undo", "forget a move of this database, which then accepts writes");
  addAdministration(program, command);
  command(
    program,
    "sign-in-link",
    "print a link that signs in to the dashboard once, on this machine",
    async (...given) => {
      const { signInLink } = await import("./sign-in-link.ts");
      await signInLink(...given);
    },
  )
    .option("--workspace <workspaceId>", "workspace (the default workspace)")
    .option("--root-key <rootKeyId>", "root key that the session stands for (the first administrator)");
  command(program, "demo", "fill a workspace of its own with 30 days of traffic, to look at", async (...given) => {
    const { demo } = await import("./demo.ts");
    await demo(...given);
  })
    .option("--keys <number>", "keys, 100 to 1000000, each with about 120 verifications", "100000")
    .option("--seed <number>", "the same number makes the same data", "1");
  const vault = program
    .command("vault")
    .description("manage the master key that encrypts recoverable keys")
    .exitOverride();
  command(vault, "rotate", "change the master key of the vault while the service runs", async (invocation) => {
    const { rotateVault } = await import("./vault.ts");
    await rotateVault(invocation);
  });
  addBackup(program, command);
}

/** The commands `backup …`, `restore` and `verify-store`. */
function addBackup(
  program: Command,
  command: (parent: Command, usage: string, description: string, handle: CommandHandler) => Command,
): void {
  const backup = command(program, "backup <file>", "copy the embedded database to one file", async (...given) => {
    const { backup } = await import("./backup.ts");
    await backup(...given);
  })
    .option("--include-vault-key", "add the master key of the vault, which decrypts every recoverable key")
    .option("--rate <number>", "MiB per second that are read and written (64)")
    .option("--force", "replace the file if it exists");
  command(backup, "verify <file>", "check a backup: digests, integrity, rows, recoverable keys", async (...given) => {
    const { verifyBackupFile } = await import("./backup.ts");
    await verifyBackupFile(...given);
  });
  command(program, "restore <file>", "restore a backup into an empty data folder", async (...given) => {
    const { restore } = await import("./backup.ts");
    await restore(...given);
  });
  command(
    program,
    "verify-store",
    "check the database after a restore or a failover: schema, references, balances, recoverable keys",
    async (...given) => {
      const { verifyStore } = await import("./verify-store.ts");
      await verifyStore(...given);
    },
  );
}

/** The group of options in help texts that holds the settings. */
const SETTINGS_GROUP = "Settings:";

/** Lists the settings after the options of the command itself. */
const settingsLast: Partial<Help> = {
  groupItems(unsorted, visible, groupOf) {
    const groups = Help.prototype.groupItems.call(this, unsorted as never, visible as never, groupOf as never);
    const ofSettings = groups.get(SETTINGS_GROUP);
    if (ofSettings !== undefined && groups.delete(SETTINGS_GROUP)) groups.set(SETTINGS_GROUP, ofSettings);
    return groups as never;
  },
};

function flagOf(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/** The settings of flags and environment. A flag takes precedence over a variable. */
function readTexts(flags: Record<string, string>, environment: NodeJS.ProcessEnv): SettingTexts {
  const merged: NodeJS.ProcessEnv = { ...environment };
  for (const { name } of settings) {
    const flag = flagOf(name).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const [value, file] = [flags[flag], flags[`${flag}File`]];
    if (value === undefined && file === undefined) continue;
    delete merged[`LATCHKEY_${name}`];
    delete merged[`LATCHKEY_${name}_FILE`];
    if (value !== undefined) merged[`LATCHKEY_${name}`] = value;
    else merged[`LATCHKEY_${name}_FILE`] = file;
  }
  return readEnvironment(merged, settings);
}
