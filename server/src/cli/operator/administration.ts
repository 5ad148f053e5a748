import type { Command } from "commander";
import { systemClock } from "../../clock/system.ts";
import { parseGrant } from "../../rules/grants.ts";
import type { IssuedRootKey } from "../../store/administration/procedures.ts";
import { CommandError, type CommandHandler, print, table } from "../output.ts";
import { withPreparedStore } from "./store.ts";

type MakeCommand = (parent: Command, usage: string, description: string, handle: CommandHandler) => Command;

/** When and by whom a change is made, for the audit log. */
const auditFields = () => ({ now: systemClock.now(), actor: "cli" });

/**
 * Adds the commands `workspace …` and `root-key …`. They work on the database directly, and a running service applies
 * their changes within a second.
 */
export function addAdministration(program: Command, command: MakeCommand): void {
  const workspace = program
    .command("workspace")
    .description("create, list, disable and enable workspaces")
    .exitOverride();

  command(workspace, "create", "create a workspace and its administrator's root key", (invocation, { name }) =>
    withPreparedStore(invocation, async (store) => {
      const issued = await store.transact("createWorkspace", { ...auditFields(), name: name! });
      print(invocation.json, issued, () => [`Workspace ${issued.workspaceId}`, ...rootKeyLines(issued)]);
    }),
  ).requiredOption("--name <name>", "name of the workspace");

  command(workspace, "list", "list the workspaces", (invocation) =>
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
            new Date(row.createdAt).toISOString(),
          ]),
        ),
      );
    }),
  );

  for (const [usage, enabled] of [
    ["disable", false],
    ["enable", true],
  ] as const) {
    command(
      workspace,
      `${usage} <workspaceId>`,
      `${usage} a workspace with all its keys`,
      (invocation, _, [workspaceId]) =>
        withPreparedStore(invocation, async (store) => {
          const result = await store.transact("setWorkspaceEnabled", {
            ...auditFields(),
            workspaceId: workspaceId as string,
            enabled,
          });
          if ("rejected" in result) throw new CommandError(result.rejected);
          print(invocation.json, result, () => [`Workspace ${result.workspaceId} is ${usage}d.`]);
        }),
    );
  }

  const rootKey = program.command("root-key").description("create, list and delete root keys").exitOverride();
  const withWorkspaceOption = (added: Command) =>
    added.option("--workspace <workspaceId>", "workspace of the root key (the default workspace)");

  withWorkspaceOption(
    command(rootKey, "create", "create a root key; it is shown once", (invocation, options) =>
      withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
        const issued = await store.transact("createRootKey", {
          ...auditFields(),
          workspaceId: options.workspace ?? defaultWorkspaceId,
          name: options.name!,
          grants: grants(options.permissions!),
        });
        if ("rejected" in issued) throw new CommandError(issued.rejected);
        print(invocation.json, issued, () => rootKeyLines(issued));
      }),
    )
      .requiredOption("--name <name>", "name of the root key")
      .requiredOption(
        "--permissions <list>",
        "permissions separated by commas, such as apis.*.create_key,apis.*.verify_key; * for all",
      ),
  );

  withWorkspaceOption(
    command(rootKey, "list", "list the root keys of a workspace", (invocation, options) =>
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
              new Date(row.createdAt).toISOString(),
            ]),
          ),
        );
      }),
    ),
  );

  withWorkspaceOption(
    command(
      rootKey,
      "delete <rootKeyId>",
      "delete a root key; it stops working at once",
      (invocation, options, [rootKeyId]) =>
        withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
          const result = await store.transact("deleteRootKey", {
            ...auditFields(),
            workspaceId: options.workspace ?? defaultWorkspaceId,
            rootKeyId: rootKeyId as string,
          });
          if ("rejected" in result) throw new CommandError(result.rejected);
          print(invocation.json, result, () => [`Root key ${result.rootKeyId} is deleted.`]);
        }),
    ),
  );

  withWorkspaceOption(
    command(
      rootKey,
      "revoke-others",
      "delete the root keys of all other administrators; they stop working at once",
      (invocation, options) =>
        withPreparedStore(invocation, async (store, defaultWorkspaceId) => {
          const result = await store.transact("revokeOtherRootKeys", {
            ...auditFields(),
            workspaceId: options.workspace ?? defaultWorkspaceId,
            keep: options.keep,
          });
          if ("rejected" in result) throw new CommandError(result.rejected);
          print(invocation.json, result, () => revokedLines(result));
        }),
    ).option("--keep <rootKeyId>", "root key that stays (default: the one of LATCHKEY_ROOT_KEY)"),
  );
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
