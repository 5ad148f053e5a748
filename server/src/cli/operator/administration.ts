import type { Command } from "commander";
import { CommandError, print, table } from "../../../../cli/src/output.ts";
import { fromNow } from "../../../../cli/src/times.ts";
import { systemClock } from "../../../../engine/src/clock/system.ts";
import { parseGrant } from "../../../../engine/src/rules/grants.ts";
import type { IssuedRootKey, Rejection } from "../../features/workspaces/procedures.ts";
import type { CommandHandler } from "./invocation.ts";
import { withPreparedStore } from "./store.ts";

const YES = ["--yes", "delete without asking"] as const;

type MakeCommand = (parent: Command, usage: string, description: string, handle: CommandHandler) => Command;

/**
 * Adds the commands `workspace …` and `root-key …`. They work on the database directly, and a running service applies
 * their changes within a second.
 */
export function addAdministration(program: Command, command: MakeCommand): void {
  addWorkspaceCommands(program, command);
  addRootKeyCommands(program, command);
}

function addWorkspaceCommands(program: Command, command: MakeCommand): void {
  const workspace = program
    .command("workspace")
    .description("create, list, disable and enable workspaces")
    .exitOverride();
  command(workspace, "create", "create a workspace and its administrator's root key", createWorkspace).requiredOption(
    "--name <name>",
    "name of the workspace",
  );
  command(workspace, "list", "list the workspaces", listWorkspaces);
  command(workspace, "disable <workspaceId>", "disable a workspace with all its keys", setWorkspaceEnabled(false));
  command(workspace, "enable <workspaceId>", "enable a workspace with all its keys", setWorkspaceEnabled(true));
}

function addRootKeyCommands(program: Command, command: MakeCommand): void {
  const rootKey = program.command("root-key").description("create, list and delete root keys").exitOverride();
  const withWorkspaceOption = (added: Command) =>
    added.option("--workspace <workspaceId>", "workspace of the root key (the default workspace)");
  withWorkspaceOption(
    command(rootKey, "create", "create a root key; it is shown once", createRootKey)
      .requiredOption("--name <name>", "name of the root key")
      .requiredOption(
        "--permissions <list>",
        "permissions separated by commas, such as apis.*.create_key,apis.*.verify_key; * for all",
      ),
  );
  withWorkspaceOption(command(rootKey, "list", "list the root keys of a workspace", listRootKeys));
  withWorkspaceOption(
    command(rootKey, "delete <rootKeyId>", "delete a root key; it stops working at once", deleteRootKey).option(...YES),
  );
  withWorkspaceOption(
    command(
      rootKey,
      "revoke-others",
      "delete the root keys of all other administrators; they stop working at once",
      revokeOtherRootKeys,
    )
      .option("--keep <rootKeyId>", "root key that stays (default: the one of LATCHKEY_ROOT_KEY)")
      .option(...YES),
  );
}

const createWorkspace: CommandHandler = (invocation, { name }) =>
  withPreparedStore(invocation, async (store) => {
    const issued = await store.transact("createWorkspace", { ...auditFields(), name: name! });
    print(invocation.json, issued, () => [`Workspace ${issued.workspaceId}`, ...rootKeyLines(issued)]);
  });

const listWorkspaces: CommandHandler = (invocation) =>
  withPreparedStore(invocation, async (store) => {
    const workspaces = (await store.read("listWorkspaces", null)).map((row) => ({
      id: row.id,
      name: row.name,
      enabled: row.enabled === 1,
      default: row.is_default === 1,
      createdAt: row.created_at,
    }));
    print(invocation.json, workspaces, () =>
      table(
        ["id", "name", "state", "created"],
        workspaces.map((row) => [
          row.id,
          row.name + (row.default ? " (default)" : ""),
          row.enabled ? "enabled" : "disabled",
          fromNow(row.createdAt, systemClock.now()),
        ]),
      ),
    );
  });

const setWorkspaceEnabled =
  (enabled: boolean): CommandHandler =>
  (invocation, _, [workspaceId]) =>
    withPreparedStore(invocation, async (store) => {
      const result = accepted(
        await store.transact("setWorkspaceEnabled", {
          ...auditFields(),
          workspaceId: workspaceId as string,
          enabled,
        }),
      );
      print(invocation.json, result, () => [`Workspace ${result.workspaceId} is ${enabled ? "enabled" : "disabled"}.`]);
    });

const createRootKey: CommandHandler = (invocation, options) =>
  withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
    const issued = accepted(
      await store.transact("createRootKey", {
        ...auditFields(),
        workspaceId: options.workspace ?? defaultWorkspaceId,
        name: options.name!,
        grants: grants(options.permissions!),
      }),
    );
    print(invocation.json, issued, () => rootKeyLines(issued));
  });

const listRootKeys: CommandHandler = (invocation, options) =>
  withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
    const rows = await store.read("listRootKeys", { workspaceId: options.workspace ?? defaultWorkspaceId });
    const rootKeys = rows.map((row) => ({
      id: row.id,
      name: row.name,
      start: row.start,
      permissions: JSON.parse(row.grants) as string[],
      createdAt: row.created_at,
    }));
    print(invocation.json, rootKeys, () =>
      table(
        ["id", "name", "start", "permissions", "created"],
        rootKeys.map((row) => [
          row.id,
          row.name,
          row.start,
          row.permissions.join(","),
          fromNow(row.createdAt, systemClock.now()),
        ]),
      ),
    );
  });

const deleteRootKey: CommandHandler = async (invocation, options, [rootKeyId]) => {
  await confirmDeletion(`Delete the root key ${rootKeyId}?`, options);
  await withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
    const result = accepted(
      await store.transact("deleteRootKey", {
        ...auditFields(),
        workspaceId: options.workspace ?? defaultWorkspaceId,
        rootKeyId: rootKeyId as string,
      }),
    );
    print(invocation.json, result, () => [
      `Root key ${result.rootKeyId} is deleted.`,
      ...(result.livingDescendants === 0
        ? []
        : [
            `Root keys that it created, directly or indirectly, still work: ${result.livingDescendants}. ` +
              `\`latchkey root-keys delete-root-key --root-key-id ${result.rootKeyId} --descendants\` deletes them.`,
          ]),
    ]);
  });
};

const revokeOtherRootKeys: CommandHandler = async (invocation, options) => {
  await confirmDeletion("Delete the root keys of all other administrators?", options);
  await withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
    const result = accepted(
      await store.transact("revokeOtherRootKeys", {
        ...auditFields(),
        workspaceId: options.workspace ?? defaultWorkspaceId,
        keep: options.keep,
      }),
    );
    print(invocation.json, result, () => revokedLines(result));
  });
};

/** Asks before root keys are deleted. The module is loaded only when it is needed. */
async function confirmDeletion(question: string, { yes }: Record<string, unknown>): Promise<void> {
  const { confirmDeletion: ask } = await import("../../../../cli/src/confirmation.ts");
  await ask(question, { yes: yes === true ? yes : undefined });
}

/** The time and the actor of a change, for the audit log. */
const auditFields = () => ({ now: systemClock.now(), actor: "cli" });

/** @throws {CommandError} with the reason of a rejection. */
function accepted<Result extends object>(result: Result | Rejection): Result {
  if ("rejected" in result) throw new CommandError(result.rejected);
  return result;
}

function revokedLines({ kept, revoked }: { kept: string; revoked: readonly { id: string; name: string }[] }): string[] {
  if (revoked.length === 0) return [`${kept} is the only administrator's root key; nothing was revoked.`];
  return [
    ...revoked.map(({ id, name }) => `Root key ${id} (${name}) is deleted.`),
    `${kept} is the only administrator's root key now.`,
  ];
}

function rootKeyLines({ rootKeyId, key }: IssuedRootKey): string[] {
  return [`Root key ${rootKeyId}, shown this once:`, `  ${key}`];
}

function grants(list: string): string[] {
  return list.split(",").map((text) => {
    const grant = parseGrant(text.trim());
    if (grant === null) throw new CommandError(`"${text.trim()}" is no permission. They look like apis.*.create_key.`);
    return grant;
  });
}
